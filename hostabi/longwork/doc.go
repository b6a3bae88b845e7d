// Package longwork bounds the computations of the host that take tens of milliseconds or more
// and cannot be interrupted: hashes of passwords, RSA key pairs.
//
// Each takes one of a fixed number of slots, which handlers and callers share fairly. So many
// computations at once leave processors to other requests, and need a known amount of memory.
// A computation that waits holds nothing; it waits for a limited time.
//
// The package does not know what is computed. Slots.Close waits for all goroutines.
package longwork
