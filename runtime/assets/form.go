package assets

import (
	"os"
	"path"
	"sync/atomic"

	"runner.example/runtime/content"
)

// The limits of contents that are kept in memory.
const (
	// MemoryBytes is that of all files of a release together.
	MemoryBytes = 32 << 20
	// maxKept is that of one.
	maxKept = 64 << 10
)

// Memory is the memory for contents of small files of a release.
type Memory struct{ used atomic.Int64 }

// take reserves n bytes, and reports whether there are as many.
func (m *Memory) take(n int64) bool {
	if m.used.Add(n) > MemoryBytes {
		m.used.Add(-n)
		return false
	}
	return true
}

// Form is a file as it is, or compressed.
type Form struct {
	Encoding Encoding
	// Content is what is sent; its Open opens the bytes.
	Content content.Content

	file *File
	name string // of the file in the cache; empty: it is the content of the release
	kept atomic.Pointer[content.Memory]
}

// set describes the form.
func (f *Form) set(file *File, e Encoding, size int64, media, etag string) {
	f.file, f.Encoding = file, e
	f.Content = content.Content{Size: size, Type: media, ETag: etag, Encoding: e.String(), Open: f.open}
}

// open opens the content. Small ones are kept in memory after the first time. A compressed form that cannot be opened, as
// someone else has removed or damaged it, is none of the file's forms from then on.
func (f *Form) open() (content.Source, error) {
	if kept := f.kept.Load(); kept != nil {
		return kept, nil
	}
	source, err := f.openFile()
	if err != nil && f.name != "" {
		f.file.forms[f.Encoding].CompareAndSwap(f, nil)
	}
	return source, err
}

func (f *Form) openFile() (content.Source, error) {
	size := f.Content.Size
	if size <= maxKept && f.file.site.opt.Memory.take(size) {
		data, err := f.read()
		if err != nil {
			f.file.site.opt.Memory.take(-size)
			return nil, err
		}
		mine := content.NewMemory(data)
		if !f.kept.CompareAndSwap(nil, mine) { // another request was faster
			f.file.site.opt.Memory.take(-size)
		}
		return mine, nil
	}
	switch open := f.file.site.opt.Open; {
	case f.name != "":
		file, err := os.Open(f.name)
		if err != nil {
			return nil, err
		}
		return file, nil
	case open != nil:
		if source, err := open(f.file.file); source != nil || err != nil {
			return source, err
		}
	}
	data, err := f.read()
	if err != nil {
		return nil, err
	}
	return content.NewMemory(data), nil
}

// read reads the whole content, and compares it with its digest or checksum.
func (f *Form) read() ([]byte, error) {
	if f.name != "" {
		return readCached(path.Dir(f.name), path.Base(f.name))
	}
	return f.file.site.tree.ReadFile(f.file.file.Path)
}
