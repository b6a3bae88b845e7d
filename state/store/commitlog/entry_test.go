package commitlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"runner.example/state/store/commitlog"
)

// sample is an entry with everything that an entry may have.
func sample() *commitlog.Entry {
	return &commitlog.Entry{
		ID: commitlog.ID{Proposer: 1<<64 - 1, Batch: 300}, Base: 299,
		Proposals: []*commitlog.Proposal{
			{
				Snapshot: 299, Reads: []string{"a", "", "b\xff"},
				Spans:  []commitlog.Span{{Lo: []byte("a"), Hi: []byte("b")}, {Lo: []byte{}, Hi: nil}, {Lo: []byte("c"), Hi: []byte{}}},
				Writes: []commitlog.Write{{Key: "a", Value: []byte("1")}, {Key: "b", Deleted: true}, {Key: "c", Value: []byte{}}},
			},
			{Writes: []commitlog.Write{{Key: "\x00", Value: bytes.Repeat([]byte("v"), 300)}}},
			{},
		},
	}
}

func TestADecodedEntryIsTheOneThatWasEncoded(t *testing.T) {
	encoded := sample().Encode(nil)
	e, err := commitlog.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	p := e.Proposals[0]
	if e.ID != sample().ID || e.Base != 299 || len(e.Proposals) != 3 || len(p.Reads) != 3 || p.Reads[2] != "b\xff" {
		t.Errorf("decoded %+v with %+v", e, p)
	}
	if p.Spans[1].Hi != nil || p.Spans[2].Hi == nil || string(p.Spans[0].Hi) != "b" {
		t.Errorf("spans are %q", p.Spans)
	}
	if w := p.Writes; w[0].Deleted || string(w[0].Value) != "1" || !w[1].Deleted || w[2].Deleted || w[2].Value == nil {
		t.Errorf("writes are %+v", w)
	}
	if !bytes.Equal(e.Encode(nil), encoded) {
		t.Error("it encodes to other bytes")
	}
	for n := range encoded {
		if _, err := commitlog.Decode(encoded[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are an entry", n, len(encoded))
		}
	}
}

func TestBytesThatAreNotCanonicalAreNotAnEntry(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":            {},
		"an older format":    {1, 1, 1, 0, 0},
		"a byte too many":    {2, 1, 1, 0, 0, 0},
		"a long number":      {2, 0x81, 0, 1, 0, 0},
		"an endless number":  bytes.Repeat([]byte{2, 0xff}, 20),
		"an empty key":       {2, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1},
		"a key twice":        {2, 1, 1, 0, 1, 0, 0, 0, 2, 1, 'a', 1, 1, 'a', 1},
		"a length too large": {2, 1, 1, 0, 1, 0, 0, 0, 1, 200, 1, 'a', 1},
		"too many proposals": {2, 1, 1, 0, 200, 1},
	} {
		if e, err := commitlog.Decode(b); err == nil || errors.Is(err, commitlog.ErrFormat) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := commitlog.Decode([]byte{3}); !errors.Is(err, commitlog.ErrFormat) {
		t.Errorf("a newer format: %v", err)
	}
}

func TestTheDigestDependsOnTheVerdicts(t *testing.T) {
	e := sample()
	a, buf := e.Digest(nil)
	if again, _ := e.Digest(buf); again != a {
		t.Error("the digest changes from one call to the next")
	}
	e.Proposals[1].Verdict.Outcome = commitlog.Conflict
	b, _ := e.Digest(nil)
	e.Proposals[1].Verdict.Clash = "k"
	c, _ := e.Digest(nil)
	if a == b || b != c {
		t.Errorf("committed %x, conflict %x, with a key %x", a[:4], b[:4], c[:4])
	}
}

// The hashes must not change: nodes of other versions must compute the same.
func TestHashesStayAsTheyAre(t *testing.T) {
	const digest = "3c59d44b880fb5f14c609a9c84a31e228938013b642513224aec577f9cc0cac6"
	const chain = "d0ffd503f2b231a52431745cf00946e12b5bb54cd2763b87651680093ddf0f58"
	e := sample()
	e.Proposals[2].Verdict.Outcome = commitlog.TooOld
	d, _ := e.Digest(nil)
	if c := commitlog.Link(commitlog.Digest{1}, d); fmt.Sprintf("%x", d) != digest || fmt.Sprintf("%x", c) != chain {
		t.Errorf("the digest is %x and the chain %x, want %s and %s", d, c, digest, chain)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample().Encode(nil))
	f.Add([]byte{2, 1, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := commitlog.Decode(b)
		if err != nil {
			return
		}
		if !bytes.Equal(e.Encode(nil), b) {
			t.Errorf("%x encodes to %x", b, e.Encode(nil))
		}
		w := commitlog.NewWindow(4, 0)
		for seq := commitlog.Seq(1); seq < 3; seq++ { // no entry makes deciding panic
			w.Decide(e, func(*commitlog.Proposal) bool { return true })
			w.Add(seq, e)
		}
	})
}
