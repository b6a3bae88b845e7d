//go:build patched

package space

import "github.com/dgraph-io/ristretto/v2/z"

// Waiting returns why a table could not be written; nil: none waits.
func (s *Reserver) Waiting() error { return z.Waiting(s.Dir) }
