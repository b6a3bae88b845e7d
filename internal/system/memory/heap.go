package memory

import "os"

// PageBytes is the size of a page.
var PageBytes = os.Getpagesize()

// Allocate returns n bytes of zeros, a multiple of PageBytes; nil: the system has no memory. The caller frees them.
func Allocate(n int) []byte { return allocate(n) }

// Free frees whole pages, which may be a part of what Allocate returned. Nobody may use them any more.
func Free(pages []byte) { free(pages) }
