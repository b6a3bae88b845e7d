package tokenindex_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"runner.example/keystore/tokenindex"
)

type mac = [sha256.Size]byte

// chained is an HMAC of a chain that all numbers share, in a table of any size.
func chained(n int) (m mac) {
	binary.BigEndian.PutUint32(m[8:], uint32(n))
	return m
}

// spread is an HMAC as tokens have it.
func spread(n int) mac { return sha256.Sum256(fmt.Append(nil, n)) }

type owner struct{ name string }

// Random changes are compared with a map: with tokens that are spread over the table while it grows, and
// with tokens that are all in one chain.
func TestTheIndexAgreesWithAMap(t *testing.T) {
	for name, macOf := range map[string]func(int) mac{"spread": spread, "one chain": chained} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			type entry struct {
				until int64
				of    *owner
			}
			x, model := tokenindex.New[owner](), map[mac]entry{}
			owners := make([]*owner, 20)
			for i := range owners {
				owners[i] = &owner{fmt.Sprint(i)}
			}
			check := func() {
				t.Helper()
				got, want := map[*owner]int{}, map[*owner]int{}
				x.Each(func(of *owner) { got[of]++ })
				for _, e := range model {
					want[e.of]++
				}
				if !maps.Equal(got, want) {
					t.Fatalf("Each visits %v, want %v", got, want)
				}
				for n := range 700 {
					m := macOf(n)
					e, there := model[m]
					node := x.Find(m)
					if (node != nil) != there || there && (node.Until != e.until || node.Of != e.of) {
						t.Fatalf("token %d is %+v, want %+v (%v)", n, node, e, there)
					}
				}
			}
			tokens := 600 // the table begins with 64 buckets
			if name == "one chain" {
				tokens = 30
			}
			check()
			for step := range 3000 {
				m := macOf(random.IntN(tokens))
				switch random.IntN(8) {
				default:
					e := entry{int64(step), owners[random.IntN(len(owners))]}
					x.Put(m, e.until, e.of)
					model[m] = e
				case 6:
					x.Remove(m)
					delete(model, m)
				case 7:
					if step%10 != 0 {
						break
					}
					gone := owners[random.IntN(len(owners))]
					drop := func(of *owner) bool { return of == gone }
					x.RemoveIf(drop)
					maps.DeleteFunc(model, func(_ mac, e entry) bool { return drop(e.of) })
				}
				if step%300 == 0 {
					check()
				}
			}
			check()
			x.RemoveIf(func(*owner) bool { return true })
			clear(model)
			check()
		})
	}
}

// An HMAC is compared whole: one that differs in any of its bits is another token.
func TestATokenIsFoundByAllBitsOfItsHMAC(t *testing.T) {
	x := tokenindex.New[owner]()
	m := spread(1)
	x.Put(m, 1, &owner{"first"})
	for bit := range 8 * len(m) {
		other := m
		other[bit/8] ^= 1 << (bit % 8)
		if node := x.Find(other); node != nil {
			t.Errorf("found with the wrong bit %d: %+v", bit, node)
		}
		x.Remove(other)
		if x.Find(m) == nil {
			t.Fatalf("the token is removed by one that differs in bit %d", bit)
		}
		x.Put(other, 2, &owner{"second"})
		if node := x.Find(m); node == nil || node.Until != 1 {
			t.Fatalf("the token is replaced by one that differs in bit %d", bit)
		}
		x.Remove(other)
	}
}

// A node that a reader has found stays as it was, whatever is changed.
func TestANodeNeverChanges(t *testing.T) {
	x := tokenindex.New[owner]()
	before := &owner{"before"}
	var nodes []*tokenindex.Node[owner]
	for n := range 10 {
		x.Put(chained(n), int64(n), before)
		nodes = append(nodes, x.Find(chained(n)))
	}
	for n := range 10 {
		x.Put(chained(n), 100, &owner{"after"})
		x.Remove(chained(n / 2))
	}
	for n, node := range nodes {
		if node.Until != int64(n) || node.Of != before {
			t.Errorf("node %d is now %+v", n, node)
		}
	}
}

// While one goroutine replaces a token, changes others of its chain and lets the table grow, readers find the
// token at every moment, and never an older state than the one that they have seen.
func TestReadersFindATokenWhileItIsReplaced(t *testing.T) {
	x := tokenindex.New[owner]()
	const steps = 5_000
	token := chained(0)
	x.Put(token, 0, &owner{"0"})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for last := int64(0); ; {
				node := x.Find(token)
				if node == nil || node.Until < last {
					t.Errorf("found %+v after %d", node, last)
					return
				}
				last = node.Until
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for step := range int64(steps) {
		x.Put(token, step, &owner{"of"})
		x.Put(chained(1+int(step%5)), step, &owner{"neighbour"})
		x.Put(spread(int(step%1000)), step, &owner{"other"}) // and the table grows
		x.Remove(chained(1 + int((step+2)%5)))
	}
	close(done)
	readers.Wait()
	var all []string
	x.RemoveIf(func(of *owner) bool {
		all = append(all, of.name)
		return of.name != "of"
	})
	if x.Find(token) == nil || !slices.Contains(all, "other") {
		t.Error("RemoveIf removes other tokens than it was told to")
	}
}
