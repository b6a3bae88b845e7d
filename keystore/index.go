package keystore

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"
)

// index finds a token by its HMAC. Any number of goroutines may read it while
// one changes it: readers take no lock, and see of every token the old or the
// new node, never none of a token that was there before and after.
//
//	table ─► [ bucket | bucket | bucket | … ]     power of two, by the first
//	             │                                8 bytes of the HMAC
//	             ▼
//	           node ─► node ─► nil                nodes never change: a change
//	                                              builds a new chain and swaps it in
//
// Nobody can choose an HMAC under the pepper, so chains stay short.
type index struct {
	table atomic.Pointer[table]
	count int // tokens; only the changer reads it
}

type table struct{ buckets []atomic.Pointer[node] }

// node is one token of a key. It is immutable.
type node struct {
	mac [sha256.Size]byte
	// until is when the token dies, in ms; endless unless it is in grace.
	until int64
	key   *entry
	next  *node
}

const smallestTable = 64

func newIndex() *index {
	x := &index{}
	x.table.Store(newTable(smallestTable))
	return x
}

func newTable(size int) *table { return &table{make([]atomic.Pointer[node], size)} }

func (t *table) bucket(mac [sha256.Size]byte) *atomic.Pointer[node] {
	return &t.buckets[binary.LittleEndian.Uint64(mac[:8])&uint64(len(t.buckets)-1)]
}

// find returns the token's node, nil when no key has it.
func (x *index) find(mac [sha256.Size]byte) *node {
	for n := x.table.Load().bucket(mac).Load(); n != nil; n = n.next {
		if subtle.ConstantTimeCompare(n.mac[:], mac[:]) == 1 {
			return n
		}
	}
	return nil
}

// put adds a token, in place of the one with the same HMAC.
func (x *index) put(mac [sha256.Size]byte, until int64, key *entry) {
	t := x.table.Load()
	bucket := t.bucket(mac)
	rest, found := without(bucket.Load(), mac)
	bucket.Store(&node{mac, until, key, rest})
	if found {
		return
	}
	x.count++
	if x.count > len(t.buckets) {
		x.grow(t)
	}
}

// remove takes a token out; one that is not there is no matter.
func (x *index) remove(mac [sha256.Size]byte) {
	bucket := x.table.Load().bucket(mac)
	rest, found := without(bucket.Load(), mac)
	if found {
		bucket.Store(rest)
		x.count--
	}
}

// without returns a chain that has all nodes but the one of that HMAC. The
// nodes in front of it are copied, those behind it shared.
func without(chain *node, mac [sha256.Size]byte) (rest *node, found bool) {
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
	return &node{chain.mac, chain.until, chain.key, next}, true
}

// grow doubles the table. A reader that still holds the old one began before
// the change that is being made, and may see the state before it.
func (x *index) grow(old *table) {
	t := newTable(2 * len(old.buckets))
	for i := range old.buckets {
		for n := old.buckets[i].Load(); n != nil; n = n.next {
			bucket := t.bucket(n.mac)
			bucket.Store(&node{n.mac, n.until, n.key, bucket.Load()})
		}
	}
	x.table.Store(t)
}
