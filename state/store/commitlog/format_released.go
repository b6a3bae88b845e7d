//go:build !level_next

package commitlog

// next are the formats that no release writes: none.
var next []format
