// Package tree has read-only trees of files: the files that a release gives a program.
//
// A tree is a list of files with their sizes and digests. The contents are read when they are asked for, from a
// local directory (OpenDir) or from wherever the caller keeps them (New). A tree has no empty directories, no links,
// and no modes or times. It does not change.
//
// # Listing
//
// The listing of a tree is one blob. Equal trees have equal listings, so the digest of the listing is that of the
// whole tree:
//
//	runner tree\n
//	<SHA-256, 64 hexadecimal digits> <size, decimal> <path>\0      for each file, sorted by the bytes of the path
//
// A path has the elements of a relative path with slashes between them. Its bytes are those of the file system: it
// need not be UTF-8, and it may have line ends. Parse accepts what Listing writes, and nothing else.
package tree
