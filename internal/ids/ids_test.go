package ids_test

import (
	"regexp"
	"testing"
	"time"

	"runner.example/internal/ids"
)

var form = regexp.MustCompile(`^[0-7][0-9a-hjkmnp-tv-z]{25}$`)

func TestIdsAreInTheOrderOfTheirTimes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	seen, last := map[string]bool{}, ""
	for range 100 {
		id, same := ids.New(at), ids.New(at)
		if !form.MatchString(id) || id[:10] != same[:10] {
			t.Errorf("%q and %q", id, same)
		}
		if id <= last || seen[id] || seen[same] || id == same {
			t.Errorf("%q after %q", id, last)
		}
		seen[id], seen[same], last = true, true, max(id, same)
		at = at.Add(time.Millisecond)
	}
}

func TestAnIdOfAnyTimeIsMade(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, "0000000000"},
		{time.UnixMilli(-1), "0000000000"},
		{time.UnixMilli(0), "0000000000"},
		{time.UnixMilli(31), "000000000z"},
		{time.UnixMilli(1<<48 - 1), "7zzzzzzzzz"},
		{time.UnixMilli(1 << 48), "7zzzzzzzzz"},
		{time.UnixMilli(1<<63 - 1), "7zzzzzzzzz"},
	} {
		var s ids.Sequence
		next, err := s.Next(c.at)
		if err != nil {
			t.Error(err)
		}
		one, other := ids.New(c.at), ids.New(c.at)
		for _, id := range []string{one, other, next} {
			if !form.MatchString(id) || id[:10] != c.want {
				t.Errorf("the id of %v is %q; want %s", c.at, id, c.want)
			}
		}
		if one == other {
			t.Error("two ids are equal")
		}
	}
}

func TestASequenceAscendsWithinAMillisecond(t *testing.T) {
	var s ids.Sequence
	at, last := time.Now(), ""
	for n := range 1000 {
		id, err := s.Next(at.Add(time.Duration(n/100) * time.Millisecond))
		if err != nil || !form.MatchString(id) || id <= last {
			t.Fatalf("%q, %v after %q", id, err, last)
		}
		last = id
	}
}
