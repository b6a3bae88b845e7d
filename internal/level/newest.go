//go:build !level_next

package level

// newest is the newest level that this program knows.
const newest = released
