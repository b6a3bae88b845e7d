package ids

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// New returns an id of that time. It may be called by several goroutines.
func New(at time.Time) string {
	id, err := ulid.New(timestamp(at), rand.Reader)
	if err != nil {
		panic("BUG: make an id: " + err.Error())
	}
	return strings.ToLower(id.String())
}

// TimeOf returns the time of an id, to the millisecond; the zero time for what is not an id.
func TimeOf(id string) time.Time {
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(parsed.Time())
}

// timestamp returns the milliseconds since 1970 that a ULID of that time holds.
func timestamp(at time.Time) uint64 {
	return min(uint64(max(0, at.UnixMilli())), ulid.MaxTime())
}

// Sequence makes ids of which each is greater than the one before, if their times are in order. The
// zero value is ready. It is for one goroutine.
type Sequence struct{ entropy *ulid.MonotonicEntropy }

// Next returns the next id. It fails if the millisecond has no greater one: by chance, once in many
// billions of milliseconds with several ids.
func (s *Sequence) Next(at time.Time) (string, error) {
	if s.entropy == nil {
		s.entropy = ulid.Monotonic(rand.Reader, 0)
	}
	id, err := ulid.New(timestamp(at), s.entropy)
	if err != nil {
		return "", err
	}
	return strings.ToLower(id.String()), nil
}
