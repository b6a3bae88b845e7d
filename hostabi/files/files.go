package files

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Node is a directory or a file. It is safe for concurrent use once it is built.
type Node struct {
	Name string
	// ID differs among the nodes of one root. That of the root is 1.
	ID uint64
	// Host: it is the file through which programs call the host.
	Host bool

	directory bool
	children  []*Node // sorted by name
	size      int64
	read      func() ([]byte, error)
	once      sync.Once
	content   []byte
	err       error
}

// File is a file for Add. Read returns its content, of Size bytes. It is called once, by the first reader,
// and the bytes are not changed.
type File struct {
	Path string // with slashes, from the root: "app/main.py"
	Size int64
	Read func() ([]byte, error)
	Host bool
}

// Root is a directory that contains all others.
type Root struct {
	Node
	last uint64
}

// NewRoot returns an empty root.
func NewRoot() *Root { return &Root{Node: Node{Name: "/", ID: 1, directory: true}, last: 1} }

// Add adds a file, and the directories that it is in. It is an error if the path is not clean or already
// taken. Files are added in any order, before the root is used.
func (r *Root) Add(f File) error {
	at := &r.Node
	elements := strings.Split(f.Path, "/")
	for _, name := range elements {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
			return fmt.Errorf("the path %q has an element %q", f.Path, name)
		}
	}
	for i, name := range elements {
		place, found := at.search(name)
		last := i == len(elements)-1
		if found {
			if at = at.children[place]; last || !at.directory {
				return fmt.Errorf("the path %q is already taken by another file", f.Path)
			}
			continue
		}
		r.last++
		next := &Node{Name: name, ID: r.last, directory: !last}
		if last {
			next.size, next.read, next.Host = f.Size, f.Read, f.Host
		}
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

// Content returns what a file contains. The caller must not change the bytes.
func (n *Node) Content() ([]byte, error) {
	n.once.Do(func() {
		if n.read == nil {
			return
		}
		if n.content, n.err = n.read(); n.err == nil && int64(len(n.content)) != n.size {
			n.err = fmt.Errorf("file %s has %d bytes, not %d", n.Name, len(n.content), n.size)
		}
	})
	return n.content, n.err
}
