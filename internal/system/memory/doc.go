// Package memory has pages outside of Go's heap, and files in memory.
//
//	                                   Linux          macOS                  Windows
//	Allocate, Free: pages              mapped         mapped                 in the heap: no part can be freed
//	Map: the bytes of a file           mapped         mapped                 read
//	MoveCode: native code to a file    yes            no                     no
//	Replace: mapped pages by memory    yes            errors.ErrUnsupported  errors.ErrUnsupported
//	Release: pages of a mapped file    yes            yes                    does nothing
//
// All functions may be called by all goroutines.
package memory
