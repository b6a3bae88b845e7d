//go:build !level_next

package level

// newest is the newest level of this release. A change of what the level covers raises it; see
// docs/decisions/levels.md.
const newest = 1
