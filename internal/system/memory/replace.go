package memory

// Replace replaces the pages of a mapped file by memory with what fill writes into it. It is done in one step, and only
// if fill returns nil: others may read the pages meanwhile, at the same addresses. Later changes of the file do not
// appear there. The pages begin and end at a page boundary and must stay mapped until Replace returns. They can only
// be read.
func Replace(pages []byte, fill func([]byte) error) error { return replace(pages, fill) }

// Release removes the pages of a mapped file from the memory of the process. Who reads them later gets them
// from the file again. It is a hint.
func Release(pages []byte) { release(pages) }
