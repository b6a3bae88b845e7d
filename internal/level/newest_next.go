//go:build level_next

package level

// newest is one above that of the release. The tests build such a runner, and upgrade to it.
const newest = 2
