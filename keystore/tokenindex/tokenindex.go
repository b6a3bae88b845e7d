package tokenindex

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"
)

// Index finds a token by its HMAC. Any number of goroutines may read it while
// one changes it. Readers take no lock, and see the old or the new node of a token that is
// being replaced, never none.
//
//	table ─► [ bucket | bucket | bucket | … ]     power of two, by the first
//	             │                                8 bytes of the HMAC
//	             ▼
//	           node ─► node ─► nil                nodes never change: a change
//	                                              builds a new chain and swaps it in
//
// A client cannot choose an HMAC under the pepper, so chains stay short.
type Index[T any] struct {
	table atomic.Pointer[table[T]]
	count int // tokens; for the goroutine that changes the index
}

type table[T any] struct{ buckets []atomic.Pointer[Node[T]] }

// Node is one token and its key or session. It is immutable.
type Node[T any] struct {
	mac [sha256.Size]byte
	// Until is what Put got: the end of the token.
	Until int64
	Of    *T
	next  *Node[T]
}

const smallestTable = 64

// New returns an index without tokens.
func New[T any]() *Index[T] {
	x := &Index[T]{}
	x.table.Store(newTable[T](smallestTable))
	return x
}

func newTable[T any](size int) *table[T] { return &table[T]{make([]atomic.Pointer[Node[T]], size)} }

func (t *table[T]) bucket(mac [sha256.Size]byte) *atomic.Pointer[Node[T]] {
	return &t.buckets[binary.LittleEndian.Uint64(mac[:8])&uint64(len(t.buckets)-1)]
}

// Find returns the token's node, nil when there is none.
func (x *Index[T]) Find(mac [sha256.Size]byte) *Node[T] {
	for n := x.table.Load().bucket(mac).Load(); n != nil; n = n.next {
		if subtle.ConstantTimeCompare(n.mac[:], mac[:]) == 1 {
			return n
		}
	}
	return nil
}

// Put adds a token, in place of the one with the same HMAC.
func (x *Index[T]) Put(mac [sha256.Size]byte, until int64, of *T) {
	t := x.table.Load()
	bucket := t.bucket(mac)
	rest, found := without(bucket.Load(), mac)
	bucket.Store(&Node[T]{mac, until, of, rest})
	if found {
		return
	}
	x.count++
	if x.count > len(t.buckets) {
		x.grow(t)
	}
}

// Remove removes a token if it is there.
func (x *Index[T]) Remove(mac [sha256.Size]byte) {
	bucket := x.table.Load().bucket(mac)
	rest, found := without(bucket.Load(), mac)
	if found {
		bucket.Store(rest)
		x.count--
	}
}

// Each calls visit with the key or session of every token.
func (x *Index[T]) Each(visit func(*T)) {
	t := x.table.Load()
	for i := range t.buckets {
		for n := t.buckets[i].Load(); n != nil; n = n.next {
			visit(n.Of)
		}
	}
}

// RemoveIf removes the tokens of the keys or sessions for which drop returns true.
func (x *Index[T]) RemoveIf(drop func(*T) bool) {
	t := x.table.Load()
	for i := range t.buckets {
		for n := t.buckets[i].Load(); n != nil; n = n.next {
			if drop(n.Of) {
				x.Remove(n.mac)
			}
		}
	}
}

// without returns the chain without the node of that HMAC. The nodes before it are copied,
// those after it shared.
func without[T any](chain *Node[T], mac [sha256.Size]byte) (rest *Node[T], found bool) {
	if chain == nil {
		return nil, false
	}
	if chain.mac == mac {
		return chain.next, true
	}
	next, found := without(chain.next, mac)
	if !found {
		return chain, false
	}
	return &Node[T]{chain.mac, chain.Until, chain.Of, next}, true
}

// grow doubles the table. A reader of the old one began before the current change, and may
// see the state before it.
func (x *Index[T]) grow(old *table[T]) {
	t := newTable[T](2 * len(old.buckets))
	for i := range old.buckets {
		for n := old.buckets[i].Load(); n != nil; n = n.next {
			bucket := t.bucket(n.mac)
			bucket.Store(&Node[T]{n.mac, n.Until, n.Of, bucket.Load()})
		}
	}
	x.table.Store(t)
}
