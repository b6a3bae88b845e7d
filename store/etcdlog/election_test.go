package etcdlog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"runner.example/store/etcdlog"
)

func campaign(t *testing.T, c *etcdlog.Client, name string) *etcdlog.Ownership {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel() // which does not end the ownership
	o, err := c.Campaign(ctx, name, 2*time.Second)
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
	first := campaign(t, one, "one")
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
	select {
	case <-first.Done():
		t.Error("the first one has lost it")
	case <-won:
		t.Error("two have won")
	case <-time.After(3 * time.Second): // longer than an ownership that is not renewed
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
	isOwner(t, one, "two")
	third := campaign(t, one, "three")
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
	owner := campaign(t, c, "one")
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
	campaign(t, c, "one")
	isOwner(t, c, "one")
}
