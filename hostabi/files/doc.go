// Package files has the read-only files that a program sees: directories in memory, with files that are read
// when they are first used.
//
// A Root is built once for a module, by Add. Then it does not change, and all sandboxes of the module share it. Paths
// are resolved by the caller, element by element, so that none leaves the root. There are no links.
package files
