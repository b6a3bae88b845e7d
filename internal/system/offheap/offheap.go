package offheap

import "os"

// PageBytes is the size of a page.
var PageBytes = os.Getpagesize()
