package tokenindex_test

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"time"

	"runner.example/keystore/tokenindex"
)

// All bytes of an HMAC count, also those after the first ones, which choose the place of a token in
// the index.
func TestATokenIsFoundByAllBytesOfItsHMAC(t *testing.T) {
	stored := sha256.Sum256([]byte("a token"))
	for i := range stored {
		other := stored
		other[i] ^= 1
		x := tokenindex.New[string]()
		one, two := "one", "two"
		x.Put(stored, 1, &one)
		if n := x.Find(other); n != nil {
			t.Errorf("an HMAC that differs in byte %d finds the token", i)
		}
		x.Remove(other)
		if n := x.Find(stored); n == nil || n.Of != &one {
			t.Errorf("the token is removed by an HMAC that differs in byte %d", i)
		}
		x.Put(other, 2, &two)
		if n := x.Find(stored); n == nil || n.Of != &one || n.Until != 1 {
			t.Errorf("the token is replaced by one that differs in byte %d", i)
		}
		if n := x.Find(other); n == nil || n.Of != &two || n.Until != 2 {
			t.Errorf("a second token, which differs in byte %d, is not found", i)
		}
		x.Remove(stored)
		if x.Find(stored) != nil || x.Find(other) == nil {
			t.Errorf("the wrong one of two tokens is removed; they differ in byte %d", i)
		}
	}
}

// The index is compared with a map, for tokens of which many have the same place.
func TestTheIndexIsLikeAMap(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	type token struct {
		until int64
		of    *int
	}
	x, model := tokenindex.New[int](), map[[sha256.Size]byte]token{}
	mac := func() (m [sha256.Size]byte) {
		m[0], m[7], m[sha256.Size-1] = byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(60))
		return m
	}
	sum := func(add func(func(*int))) (all int) {
		add(func(n *int) { all += *n })
		return all
	}
	for step := range 20_000 {
		m := mac()
		switch n := r.IntN(1000); {
		case n == 0:
			odd := r.IntN(7)
			x.RemoveIf(func(n *int) bool { return *n%7 == odd })
			for k, v := range model {
				if *v.of%7 == odd {
					delete(model, k)
				}
			}
		case n < 200:
			x.Remove(m)
			delete(model, m)
		default:
			v := token{r.Int64(), new(int)}
			*v.of = r.IntN(1000)
			x.Put(m, v.until, v.of)
			model[m] = v
		}
		m = mac()
		want, there := model[m]
		if n := x.Find(m); (n != nil) != there || there && (n.Of != want.of || n.Until != want.until) {
			t.Fatalf("step %d: found %+v, want %+v, %v", step, n, want, there)
		}
	}
	if got, want := sum(x.Each), sum(func(visit func(*int)) {
		for _, v := range model {
			visit(v.of)
		}
	}); got != want || len(model) < 100 {
		t.Errorf("the sum of %d tokens is %d, want %d", len(model), got, want)
	}
	for m, want := range model {
		if n := x.Find(m); n == nil || n.Of != want.of {
			t.Fatal("a token is lost")
		}
	}
}
