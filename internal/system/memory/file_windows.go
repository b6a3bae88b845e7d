package memory

import "os"

// Map returns the bytes of a file, which must not be written, and which the file must keep until Unmap. Windows
// removes no file that is mapped, so it is read.
func Map(path string) ([]byte, error) { return os.ReadFile(path) }

// Unmap ends the use of what Map returned.
func Unmap([]byte) error { return nil }
