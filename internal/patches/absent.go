//go:build !patched

package patches

// Applied reports whether the changes are in this program.
const Applied = false
