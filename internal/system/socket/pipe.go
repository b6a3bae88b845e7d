package socket

import "os"

// WriteNow writes what f accepts at once, and returns how many bytes that were: 0 if f is full. ok is false if
// the system cannot write to this file without waiting, or if the write failed: then nothing was written. It is true
// only on Linux, for pipes since Linux 6.4 and not for terminals.
func WriteNow(f *os.File, p []byte) (n int, ok bool) { return writeNow(f, p) }
