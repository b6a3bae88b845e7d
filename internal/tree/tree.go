package tree

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The limits of a tree.
const (
	MaxFiles     = 20_000
	MaxFileBytes = 32 << 20
	// MaxBytes limits the contents of all files together.
	MaxBytes     = 256 << 20
	MaxPathBytes = 1024
	// MaxNameBytes limits an element of a path, MaxDepth their number.
	MaxNameBytes = 255
	MaxDepth     = 32
	// MaxListingBytes is the size of the largest listing within these limits.
	MaxListingBytes = len(header) + MaxFiles*(2*sha256.Size+1+len("33554432")+1+MaxPathBytes+1)
)

// File is a file of a tree.
type File struct {
	// Path is relative, with slashes. It may have any bytes but zero.
	Path   string
	Size   int64 // bytes
	SHA256 [sha256.Size]byte
}

// Tree is a tree of files. It is safe for concurrent use if the function that reads it is.
type Tree struct {
	files []File // sorted by path
	bytes int64
	read  func(File) ([]byte, error)
}

// New returns the tree of the files, in any order. read returns the content of one of them; New does not call it. The
// error is an *InvalidError if they are not a valid tree.
func New(files []File, read func(File) ([]byte, error)) (*Tree, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	if problems := check(files); len(problems) > 0 {
		return nil, &InvalidError{problems}
	}
	t := &Tree{files: files, read: read}
	for _, f := range files {
		t.bytes += f.Size
	}
	return t, nil
}

// List returns the files, sorted by the bytes of their paths. The caller must not change them.
func (t *Tree) List() []File { return t.files }

// Digest returns the SHA-256 of the listing, which is that of the whole tree. It is computed in each call.
func (t *Tree) Digest() [sha256.Size]byte { return sha256.Sum256(t.Listing()) }

// Bytes returns the size of all files together.
func (t *Tree) Bytes() int64 { return t.bytes }

// Lookup returns the file with that path.
func (t *Tree) Lookup(path string) (File, bool) {
	i, found := slices.BinarySearchFunc(t.files, path, func(f File, path string) int { return cmp.Compare(f.Path, path) })
	if !found {
		return File{}, false
	}
	return t.files[i], true
}

// ReadFile returns the content of the file with that path, which the caller may change. Each call reads it again. The
// bytes have the file's digest. The error matches fs.ErrNotExist if the tree has no such file.
func (t *Tree) ReadFile(path string) ([]byte, error) {
	f, ok := t.Lookup(path)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	data, err := t.read(f)
	if err == nil && (int64(len(data)) != f.Size || sha256.Sum256(data) != f.SHA256) {
		err = ErrChanged
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, nil
}

// InvalidError says what is wrong with a tree.
type InvalidError struct {
	// Problems are sentences that name their file and what to do. They are sorted, and not empty.
	Problems []string
}

func (e *InvalidError) Error() string { return strings.Join(e.Problems, "; ") }

// maxProblems limits the problems of an error: a wrong directory may have one for each file.
const maxProblems = 20

// problems collects what is wrong.
type problems struct {
	all  []string
	more int
}

func (p *problems) add(format string, args ...any) {
	if len(p.all) == maxProblems {
		p.more++
		return
	}
	p.all = append(p.all, fmt.Sprintf(format, args...))
}

func (p *problems) list() []string {
	slices.Sort(p.all)
	if p.more > 0 {
		return append(p.all, fmt.Sprintf("and %d more problems", p.more))
	}
	return p.all
}

// check returns what is wrong with files, which are sorted.
func check(files []File) []string {
	var wrong problems
	if len(files) == 0 {
		wrong.add("there are no files")
	}
	if len(files) > MaxFiles {
		wrong.add("there are %d files, and the limit is %d", len(files), MaxFiles)
		return wrong.list()
	}
	total, directories := int64(0), map[string]bool{}
	for i, f := range files {
		if problem := CheckPath(f.Path); problem != "" {
			wrong.add("%s %s", Quoted(f.Path), problem)
			continue
		}
		if f.Size < 0 || f.Size > MaxFileBytes {
			wrong.add("%s has %d bytes, and the limit is %d", Quoted(f.Path), f.Size, MaxFileBytes)
		}
		total += max(0, min(f.Size, MaxFileBytes))
		if i > 0 && files[i-1].Path == f.Path {
			wrong.add("%s is listed twice", Quoted(f.Path))
		}
		for at := strings.LastIndexByte(f.Path, '/'); at > 0 && !directories[f.Path[:at]]; at = strings.LastIndexByte(f.Path[:at], '/') {
			directories[f.Path[:at]] = true
		}
	}
	for _, f := range files {
		if directories[f.Path] {
			wrong.add("%s is a file and a directory", Quoted(f.Path))
		}
	}
	if total > MaxBytes {
		wrong.add("the files have %d bytes together, and the limit is %d", total, MaxBytes)
	}
	return wrong.list()
}

// CheckPath returns what is wrong with the path of a file or a directory in a tree, or an empty text. It continues the
// path.
func CheckPath(path string) string {
	switch {
	case path == "":
		return "is empty"
	case len(path) > MaxPathBytes:
		return fmt.Sprintf("has %d bytes, and the limit of a path is %d", len(path), MaxPathBytes)
	case strings.IndexByte(path, 0) >= 0:
		return "has a zero byte"
	case path[0] == '/':
		return "is absolute"
	}
	depth := 0
	for element := range strings.SplitSeq(path, "/") {
		depth++
		switch {
		case element == "":
			return "has an empty element"
		case element == "." || element == "..":
			return fmt.Sprintf("has the element %q", element)
		case len(element) > MaxNameBytes:
			return fmt.Sprintf("has an element of %d bytes, and the limit is %d", len(element), MaxNameBytes)
		}
	}
	if depth > MaxDepth {
		return fmt.Sprintf("has %d elements, and the limit is %d", depth, MaxDepth)
	}
	return ""
}
