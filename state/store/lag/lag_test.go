package lag_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/store/lag"
)

// The plain model: all that was asked so far. A store lags behind by the time since the last moment at which
// the log was asked for its newest entry, and that entry is applied.
func TestTheLagIsTheTimeSinceAnAskedEntryThatIsApplied(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		synctest.Test(t, func(t *testing.T) {
			type question struct {
				revision uint64
				asked    time.Time
			}
			var l lag.Lag
			var model []question
			newest, applied := uint64(1), uint64(0)
			var done []string
			for range 200 {
				switch random.IntN(4) {
				case 0:
					newest += random.Uint64N(3)
				case 1:
					applied += random.Uint64N(newest - applied + 1)
				case 2:
					asked := time.Now()
					time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond) // the answer takes a while
					l.Add(applied, newest, asked)
					model = append(model, question{newest, asked})
					done = append(done, fmt.Sprint("asked ", newest))
				case 3:
					time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
				}
				want := time.Duration(math.MaxInt64)
				for _, q := range model {
					if q.revision <= applied {
						want = time.Since(q.asked)
					}
				}
				if got := l.Of(applied); got != want {
					t.Fatalf("seed %d: with %d of %d applied the lag is %v, want %v: %v", seed, applied, newest, got, want, done)
				}
			}
		})
	}
}

// A store that applies nothing for long keeps the first questions.
func TestTheMemoryOfQuestionsIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lag.Lag
		start := time.Now()
		const most = 4096
		for revision := uint64(1); revision <= 2*most; revision++ {
			l.Add(0, revision, time.Now())
			time.Sleep(time.Second)
		}
		if got := l.Of(0); got != math.MaxInt64 {
			t.Errorf("nothing is applied, and the lag is %v", got)
		}
		if got, want := l.Of(10), time.Since(start.Add(9*time.Second)); got != want {
			t.Errorf("with ten applied the lag is %v, want %v", got, want)
		}
		if got, want := l.Of(2*most), time.Since(start.Add((most-1)*time.Second)); got != want {
			t.Errorf("with all applied the lag is %v, want %v, of the last question that was kept", got, want)
		}
	})
}
