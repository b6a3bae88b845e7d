// Package files has the read-only files of a program: directories in memory, and files whose contents are read
// when they are first used.
//
// A Root is built once for a module, by Add. Then it does not change, and all sandboxes of the module share it. Walk
// resolves paths element by element, so that none leaves its directory. Links are not supported.
package files
