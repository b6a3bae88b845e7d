package keystore

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"
)

// index finds a token by its HMAC. Any number of goroutines may read it while
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
type index[T any] struct {
	table atomic.Pointer[table[T]]
	count int // tokens; for the goroutine that changes the index
}

type table[T any] struct{ buckets []atomic.Pointer[node[T]] }

// node is one token and its key or session. It is immutable.
type node[T any] struct {
	mac [sha256.Size]byte
	// until is the end of the token, in ms; endless for one that ends with its key.
	until int64
	of    *T
	next  *node[T]
}

const smallestTable = 64

func newIndex[T any]() *index[T] {
	x := &index[T]{}
	x.table.Store(newTable[T](smallestTable))
	return x
}

func newTable[T any](size int) *table[T] { return &table[T]{make([]atomic.Pointer[node[T]], size)} }

func (t *table[T]) bucket(mac [sha256.Size]byte) *atomic.Pointer[node[T]] {
	return &t.buckets[binary.LittleEndian.Uint64(mac[:8])&uint64(len(t.buckets)-1)]
}

// find returns the token's node, nil when there is none.
func (x *index[T]) find(mac [sha256.Size]byte) *node[T] {
	for n := x.table.Load().bucket(mac).Load(); n != nil; n = n.next {
		if subtle.ConstantTimeCompare(n.mac[:], mac[:]) == 1 {
			return n
		}
	}
	return nil
}

// put adds a token, in place of the one with the same HMAC.
func (x *index[T]) put(mac [sha256.Size]byte, until int64, of *T) {
	t := x.table.Load()
	bucket := t.bucket(mac)
	rest, found := without(bucket.Load(), mac)
	bucket.Store(&node[T]{mac, until, of, rest})
	if found {
		return
	}
	x.count++
	if x.count > len(t.buckets) {
		x.grow(t)
	}
}

// remove removes a token if it is there.
func (x *index[T]) remove(mac [sha256.Size]byte) {
	bucket := x.table.Load().bucket(mac)
	rest, found := without(bucket.Load(), mac)
	if found {
		bucket.Store(rest)
		x.count--
	}
}

// each calls visit with the key or session of every token.
func (x *index[T]) each(visit func(*T)) {
	t := x.table.Load()
	for i := range t.buckets {
		for n := t.buckets[i].Load(); n != nil; n = n.next {
			visit(n.of)
		}
	}
}

// removeIf removes the tokens of the keys or sessions for which drop returns true.
func (x *index[T]) removeIf(drop func(*T) bool) {
	t := x.table.Load()
	for i := range t.buckets {
		for n := t.buckets[i].Load(); n != nil; n = n.next {
			if drop(n.of) {
				x.remove(n.mac)
			}
		}
	}
}

// without returns the chain without the node of that HMAC. The nodes before it are copied,
// those after it shared.
func without[T any](chain *node[T], mac [sha256.Size]byte) (rest *node[T], found bool) {
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
	return &node[T]{chain.mac, chain.until, chain.of, next}, true
}

// grow doubles the table. A reader of the old one began before the current change, and may
// see the state before it.
func (x *index[T]) grow(old *table[T]) {
	t := newTable[T](2 * len(old.buckets))
	for i := range old.buckets {
		for n := old.buckets[i].Load(); n != nil; n = n.next {
			bucket := t.bucket(n.mac)
			bucket.Store(&node[T]{n.mac, n.until, n.of, bucket.Load()})
		}
	}
	x.table.Store(t)
}
