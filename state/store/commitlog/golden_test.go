package commitlog_test

import (
	"fmt"
	"testing"

	"runner.example/internal/level"
	"runner.example/internal/level/leveltest"
	"runner.example/state/store/commitlog"
)

func TestEntriesHaveTheFormOfTheirLevel(t *testing.T) {
	e := sample()
	e.Level = level.Known().Newest
	for i, o := range []commitlog.Outcome{commitlog.Committed, commitlog.Conflict, commitlog.TooLarge} {
		e.Proposals[i].Verdict.Outcome = o
	}
	digest, _ := e.Digest(nil)
	leveltest.Golden(t, "entry", fmt.Sprintf("%+q\nits digest %x\nlinked to itself %x\noutcomes %d %d\n",
		e.Encode(nil), digest, commitlog.Link(digest, digest), commitlog.TooOld, commitlog.Duplicate))
}

// The newest level has a format of its own in a runner that the tests build, and entries of all levels can
// be read.
func TestEntriesOfAllLevelsAreRead(t *testing.T) {
	for l := level.Known().Oldest; l <= level.Known().Newest; l++ {
		e := sample()
		e.Level = l
		encoded := e.Encode([]byte("before "))[len("before "):]
		decoded, err := commitlog.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded.Encode(nil); string(got) != string(encoded) {
			t.Errorf("level %d: it encodes to other bytes", l)
		}
		for n := range encoded {
			if _, err := commitlog.Decode(encoded[:n]); err == nil {
				t.Fatalf("level %d: the first %d of %d bytes are an entry", l, n, len(encoded))
			}
		}
	}
}
