package harness

import (
	"bytes"
	"os"
	"sync"
	"testing"
)

// logFile is a file that a process writes its log to. Unlike a pipe it needs no reader, and
// holds each line as soon as it is written.
type logFile struct{ *os.File }

func newLogFile(t testing.TB) logFile {
	t.Helper()
	file, err := os.CreateTemp(Scratch, "log-")
	if err != nil {
		t.Fatal(err)
	}
	return logFile{file}
}

// String returns the text written so far.
func (f logFile) String() string {
	if f.File == nil {
		return ""
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LockedBuffer is a bytes.Buffer that a process writes to while a test reads it.
type LockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *LockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *LockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
