//go:build level_next

package level

// newest is one above the release: the tests build such a runner, and upgrade to it.
const newest = released + 1
