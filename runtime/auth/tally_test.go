package auth_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/runtime/auth"
	"runner.example/state/store"
)

func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// flush has the counts written, as at shutdown.
func (w *world) flush(a *auth.Authenticator) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	a.Run(ctx)
}

// TestRefusalsFromManyAddressesAreFewRecords compares with exact counts. Some addresses
// have many refusals between those of many others that have a few each.
func TestRefusalsFromManyAddressesAreFewRecords(t *testing.T) {
	const minutes, loud = 3, 5
	many := 20_000
	if os.Getenv("RUNNER_SOAK") != "" {
		many = 700_000 // in each minute: two million in all
	}
	w := newWorld(t)
	silent := auth.New(w.store, w.keys, auth.Options{})
	reasons := map[string]auth.Presented{"malformed": bearer("Bearer junk"), "wrong_kind": bearer("Basic x"), "unknown": bearer("Bearer " + goodToken)}
	rng := rand.New(rand.NewPCG(1, 2))
	records := 0
	for minute := range minutes {
		exact, totals := map[string]int{}, map[string]int{}
		refuse := func(address netip.Addr, reason string) {
			p := reasons[reason]
			p.Address = address
			_, _ = silent.Check(context.Background(), w.schema, nil, w.route("read"), p, w.now)
			exact[address.String()+reason]++
			totals[reason]++
		}
		all := []string{"malformed", "unknown", "wrong_kind"}
		for i := range many {
			refuse(addressOf(rng.IntN(10_000_000)), all[i%3])
			if i%100 == 0 {
				for l := range loud {
					for range l + 1 {
						refuse(netip.AddrFrom4([4]byte{192, 0, 2, byte(l)}), "unknown")
					}
				}
			}
		}
		sum := totals["malformed"] + totals["unknown"] + totals["wrong_kind"]
		w.flush(silent)
		w.now = w.now.Add(time.Minute)

		written := w.audit()[records:]
		records += len(written)
		if limit := 8 + len(all); len(written) > limit {
			t.Errorf("minute %d: %d records, want at most %d", minute, len(written), limit)
		}
		found := 0
		for _, r := range written {
			totals[r.Reason] -= r.Count
			if r.Address == "" {
				continue
			}
			want := exact[r.Address+r.Reason]
			if r.Count > want || r.Count < want-sum/1025 {
				t.Errorf("minute %d: %d refusals of %s are recorded, want %d and at most %d less", minute, r.Count, r.Address, want, sum/1025)
			}
			if strings.HasPrefix(r.Address, "192.0.2.") {
				found++
			}
		}
		if found != loud {
			t.Errorf("minute %d: %d of the %d loudest addresses are recorded", minute, found, loud)
		}
		for reason, left := range totals {
			if left != 0 {
				t.Errorf("minute %d: the records of %s miss %d refusals", minute, reason, left)
			}
		}
	}
}

// A store that takes nothing must not let what waits grow, nor lose a count.
func TestPendingCountsAreLimited(t *testing.T) {
	w := newWorld(t)
	gone, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	broken := auth.New(gone, w.keys, auth.Options{})
	const minutes, each = 600, 10
	for minute := range minutes {
		for i := range each {
			p := bearer("Bearer junk")
			p.Address = addressOf(minute*each + i)
			_, _ = broken.Check(context.Background(), w.schema, nil, w.route("read"), p, w.now)
		}
		w.flush(broken)
		w.now = w.now.Add(time.Minute)
	}
	broken.WriteTo(w.store)
	w.flush(broken)
	records, sum := w.audit(), 0
	for _, r := range records {
		sum += r.Count
	}
	if len(records) > 2000 || sum != minutes*each {
		t.Errorf("%d records of %d refusals, want at most 2000 of %d", len(records), sum, minutes*each)
	}
}

func TestRepeatedRefusalsAreSampledInTheLog(t *testing.T) {
	w := newWorld(t)
	lines := func() int { return strings.Count(w.log.String(), "\n") }
	for range 1000 {
		_, _ = w.check("read", bearer("Bearer "+goodToken))
	}
	if got := lines(); got != 5+7 { // 1 to 5; 8, 16 … 512
		t.Errorf("%d lines about 1000 refusals of one address, want 12:\n%s", got, w.log.String())
	}
	if last := w.log.String()[strings.LastIndex(strings.TrimSpace(w.log.String()), "\n")+1:]; !strings.Contains(last, `"repeated":512`) {
		t.Errorf("the last line is %s", last)
	}
	other := bearer("Bearer " + goodToken)
	other.Address = netip.MustParseAddr("192.0.2.2")
	before := lines()
	_, _ = w.check("read", other)
	w.now = w.now.Add(time.Minute)
	_, _ = w.check("read", bearer("Bearer "+goodToken))
	if got := lines() - before; got != 2 {
		t.Errorf("%d lines about another address and the next minute, want 2", got)
	}
	if strings.Contains(w.log.String(), goodToken) {
		t.Error("the log has the token")
	}
}
