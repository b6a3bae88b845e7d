//go:build !patched

package space

// Waiting returns nil: without the changes in third_party/ristretto no table waits.
func (s *Reserver) Waiting() error { return nil }
