// Package filemap has the bytes of files in memory, as far as a system can without copies.
//
//	                  Linux                   macOS       Windows
//	Map               mapped                  mapped      read into memory
//	Replace           by pages of the file    not done    not done
//
// All functions may be called by all goroutines.
package filemap
