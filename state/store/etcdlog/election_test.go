package etcdlog_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"runner.example/state/store/etcdlog"
)

func campaign(t *testing.T, c *etcdlog.Client, name string, ttl time.Duration) *etcdlog.Ownership {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel() // which does not end the ownership
	o, err := c.Campaign(ctx, name, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// is fails the test if the servers have another owner.
func isOwner(t *testing.T, c *etcdlog.Client, want string) {
	t.Helper()
	if name, err := c.Owner(t.Context()); name != want || err != nil {
		t.Errorf("the owner is %q, %v, want %q", name, err, want)
	}
}

func TestThereIsOneOwner(t *testing.T) {
	t.Parallel()
	address := oneServer(t)
	one, two := dial(t, nil, address), dial(t, nil, address)
	isOwner(t, one, "")
	first := campaign(t, one, "one", 15*time.Second)
	isOwner(t, two, "one")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := two.Campaign(ctx, "two", 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second one gets %v", err)
	}
	won := make(chan *etcdlog.Ownership)
	go func() {
		o, err := two.Campaign(t.Context(), "two", 2*time.Second)
		if err != nil {
			t.Error(err)
		}
		won <- o
	}()
	// It is renewed every five seconds.
	for last := int64(math.MaxInt64); ; <-time.After(100 * time.Millisecond) {
		left, err := two.Etcd().TimeToLive(t.Context(), first.Lease())
		if err != nil || left.TTL < 0 {
			t.Fatalf("the ownership lasts for %d s: %v", left.TTL, err)
		}
		if left.TTL > last {
			break
		}
		last = left.TTL
	}
	select {
	case <-first.Done():
		t.Error("the first one has lost it")
	case <-won:
		t.Error("two have won")
	default:
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	<-first.Done()
	second := <-won
	isOwner(t, one, "two")

	// A node that ends without resigning is followed after its time.
	go two.Close()
	<-second.Done()
	third := campaign(t, one, "three", time.Minute)
	isOwner(t, one, "three")
	if err := third.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	isOwner(t, one, "")
}

// A node that cannot reach the servers knows that it is not the owner any more.
func TestAnOwnerThatIsCutOffLosesIt(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir(), 1)[0]
	s := start(t, o)
	c := dial(t, nil, o.ClientURL)
	owner := campaign(t, c, "one", 2*time.Second)
	s.Close()
	<-owner.Done()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := owner.Resign(ctx); err == nil {
		t.Error("it resigned without a server")
	}
	if _, err := c.Campaign(ctx, "one", 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a server a campaign ends with %v", err)
	}
	start(t, o)
	campaign(t, c, "one", time.Minute)
	isOwner(t, c, "one")
}
