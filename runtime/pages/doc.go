// Package pages has the memories of guests: address space that begins as a copy of an image, and is that again after a
// restore.
//
//	0 ............ image ............ size ............ len(Bytes())
//	private copy of the image | zeros, as grown | not accessible to the guest
//
// A System is one way to do it. Native is that of Linux; Portable needs nothing but address space, and is what there is
// on other systems. Both leave the same bytes.
//
//	                    Native                               Portable
//	an image is         a sealed memory file                 memory that can only be read
//	a memory has        a private mapping of that file       a copy of its bytes
//	written pages are   found by the kernel                  found by comparing all bytes with the image
//	pages behind it     are cleared, and kept for a while    are released
//	a trim              releases all private pages           releases all pages, and copies the image again
//	the guest's code    may leave faults to runtime/guard    compares addresses with the size
//
// Memories and images lie outside of the Go heap, so the garbage collector does not scan them.
//
// The package does not decide how much memory a guest may have (runtime/sandbox).
package pages
