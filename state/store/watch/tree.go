package watch

import (
	"math/rand/v2"

	"runner.example/state/store/commitlog"
)

// tree is an interval tree: it has the members of ranges in the order of compareSpans, and each node has the greatest end
// of its subtree. It is also a treap, a heap by random priorities, so its depth is logarithmic for any order of insertions.
type tree[T any] struct{ root *node[T] }

type node[T any] struct {
	members[T]
	span        commitlog.Span
	end         []byte // the greatest end in the subtree of this node; nil: a range in it has no end
	priority    uint32
	left, right *node[T]
}

// insert adds span if it is not in the tree, and returns its members.
func (t *tree[T]) insert(span commitlog.Span) (m *members[T]) {
	t.root, m = t.root.insert(span)
	return m
}

func (n *node[T]) insert(span commitlog.Span) (top *node[T], m *members[T]) {
	if n == nil {
		n = &node[T]{span: span, end: span.Hi, priority: rand.Uint32()}
		return n, &n.members
	}
	switch c := compareSpans(span, n.span); {
	case c == 0:
		return n, &n.members
	case c < 0:
		n.left, m = n.left.insert(span)
		if below := n.left; below.priority > n.priority {
			n.left, below.right = below.right, n
			n.update()
			n = below
		}
	default:
		n.right, m = n.right.insert(span)
		if below := n.right; below.priority > n.priority {
			n.right, below.left = below.left, n
			n.update()
			n = below
		}
	}
	n.update()
	return n, m
}

// remove removes span, which is in the tree.
func (t *tree[T]) remove(span commitlog.Span) { t.root = t.root.remove(span) }

func (n *node[T]) remove(span commitlog.Span) *node[T] {
	switch c := compareSpans(span, n.span); {
	case c == 0:
		return merge(n.left, n.right)
	case c < 0:
		n.left = n.left.remove(span)
	default:
		n.right = n.right.remove(span)
	}
	n.update()
	return n
}

// merge returns one tree of two. All ranges of the first one must come before those of the second one.
func merge[T any](a, b *node[T]) *node[T] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		a.right = merge(a.right, b)
		a.update()
		return a
	default:
		b.left = merge(a, b.left)
		b.update()
		return b
	}
}

// update computes the end of n from those of its children.
func (n *node[T]) update() {
	n.end = n.span.Hi
	for _, below := range [...]*node[T]{n.left, n.right} {
		if below != nil && commitlog.CompareEnds(below.end, n.end) > 0 {
			n.end = below.end
		}
	}
}

// match appends the entries whose range has key to found.
func (t *tree[T]) match(key string, found []*Entry[T]) []*Entry[T] { return t.root.match(key, found) }

func (n *node[T]) match(key string, found []*Entry[T]) []*Entry[T] {
	for n != nil && (n.end == nil || key < string(n.end)) {
		found = n.left.match(key, found)
		if key < string(n.span.Lo) {
			break
		}
		if n.span.Hi == nil || key < string(n.span.Hi) {
			found = n.appendTo(found)
		}
		n = n.right
	}
	return found
}
