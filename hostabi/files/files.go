package files

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Node is a directory or a file. It is safe for concurrent use once it is built.
type Node struct {
	Name string
	// ID differs among all nodes of the process.
	ID uint64
	// Host: it is the file through which programs call the host.
	Host bool

	directory bool
	children  []*Node // sorted by name
	size      int64
	read      func() ([]byte, error)
	content   atomic.Pointer[[]byte] // nil: it is not read
	reading   sync.Mutex
}

// File is a file for Add. Read returns its content, of Size bytes. It is called until it succeeds, by one
// reader at a time, and the bytes are not changed.
type File struct {
	Path string // with slashes, from the root: "app/main.py"
	Size int64
	Read func() ([]byte, error)
	Host bool
}

// Root is a directory that contains all others.
type Root struct{ Node }

// lastID is the ID of the newest node.
var lastID atomic.Uint64

// NewRoot returns an empty root.
func NewRoot() *Root { return &Root{Node{Name: "/", ID: lastID.Add(1), directory: true}} }

// Add adds a file, and the directories that it is in. It is an error if the path is not clean or already
// taken. Files are added in any order, before the root is used.
func (r *Root) Add(f File) error {
	return r.put(f.Path, &Node{size: f.Size, read: f.Read, Host: f.Host})
}

// Mount adds a directory with the entries of another root. Several roots may share them.
func (r *Root) Mount(path string, of *Root) error {
	return r.put(path, &Node{directory: true, children: of.children})
}

// put adds a node at a path, and sets its name and ID.
func (r *Root) put(path string, n *Node) error {
	at := &r.Node
	elements := strings.Split(path, "/")
	for _, name := range elements {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
			return fmt.Errorf("the path %q has an element %q", path, name)
		}
	}
	for i, name := range elements {
		place, found := at.search(name)
		last := i == len(elements)-1
		if found {
			if at = at.children[place]; last || !at.directory {
				return fmt.Errorf("the path %q is already taken by another file", path)
			}
			continue
		}
		next := &Node{directory: true}
		if last {
			next = n
		}
		next.Name, next.ID = name, lastID.Add(1)
		at.children = slices.Insert(at.children, place, next)
		at = next
	}
	return nil
}

func (n *Node) search(name string) (int, bool) {
	return slices.BinarySearchFunc(n.children, name, func(c *Node, name string) int { return cmp.Compare(c.Name, name) })
}

// IsDirectory reports whether the node is a directory.
func (n *Node) IsDirectory() bool { return n.directory }

// Size is the length of a file's content.
func (n *Node) Size() int64 { return n.size }

// Children returns the entries of a directory, sorted by name. The caller must not change the slice.
func (n *Node) Children() []*Node { return n.children }

// Child returns an entry of a directory; nil: there is none.
func (n *Node) Child(name string) *Node {
	if i, ok := n.search(name); ok {
		return n.children[i]
	}
	return nil
}

// The errors of Walk.
var (
	ErrMissing      = errors.New("the file does not exist")
	ErrNotDirectory = errors.New("a part of the path is not a directory")
	ErrOutside      = errors.New("the path leaves the directory")
)

// Walk returns the nodes on the way to a path, which is relative to the last node of from, a directory, and must not
// leave it. Those of from are the first ones. It does not change from.
func Walk(from []*Node, path string) ([]*Node, error) {
	if strings.HasPrefix(path, "/") {
		return nil, ErrOutside
	}
	base := len(from)
	from = slices.Clip(from)
	for name := range strings.SplitSeq(path, "/") {
		at := from[len(from)-1]
		switch {
		case !at.IsDirectory():
			return nil, ErrNotDirectory
		case name == "" || name == ".":
		case name == "..":
			if len(from) == base {
				return nil, ErrOutside
			}
			from = slices.Clip(from[:len(from)-1])
		default:
			next := at.Child(name)
			if next == nil {
				return nil, ErrMissing
			}
			from = append(from, next)
		}
	}
	return from, nil
}

// Content returns what a file contains. The caller must not change the bytes. After an error the next call
// reads again: the disk or another node may be back.
func (n *Node) Content() ([]byte, error) {
	if c := n.content.Load(); c != nil {
		return *c, nil
	}
	if n.read == nil {
		return nil, nil
	}
	n.reading.Lock()
	defer n.reading.Unlock()
	if c := n.content.Load(); c != nil {
		return *c, nil
	}
	content, err := n.read()
	if err == nil && int64(len(content)) != n.size {
		err = fmt.Errorf("file %s has %d bytes, not %d", n.Name, len(content), n.size)
	}
	if err != nil {
		return nil, err
	}
	n.content.Store(&content)
	return content, nil
}
