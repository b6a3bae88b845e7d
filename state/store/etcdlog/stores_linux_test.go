package etcdlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

// openStore opens a store whose log is that of the servers.
func openStore(t *testing.T, dir string, servers []string) *store.Store {
	t.Helper()
	client, err := etcdlog.Dial(servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(store.Options{Dir: dir, Log: func(after uint64, deliver func(uint64, []byte) error) store.SharedLog {
		return etcdlog.Open(etcdlog.Options{Client: client, After: after, Deliver: deliver})
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		client.Close()
	})
	return s
}

// content returns all keys and values of a store after what any node has acknowledged.
func content(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Barrier(ctx); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	err := s.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			all[string(item.Key)] = string(item.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const counters = 20

// add increments a counter and writes the key of the operation, in one transaction.
func add(ctx context.Context, s *store.Store, counter int, operation string) error {
	_, err := s.Update(ctx, func(tx *store.Tx) error {
		key := fmt.Appendf(nil, "counter/%02d", counter)
		n := 0
		value, err := tx.Get(key)
		if err == nil {
			n, err = strconv.Atoi(string(value))
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := tx.Set(key, strconv.AppendInt(nil, int64(n+1), 10)); err != nil {
			return err
		}
		return tx.Set([]byte(operation), key)
	})
	return err
}

// Stores that share the log lose no acknowledged transaction, do none twice, and are equal.
func TestStoresThatShareTheLogAgreeAfterFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := startCluster(t)
	var stores []*store.Store
	for i := range c.servers {
		stores = append(stores, openStore(t, t.TempDir(), c.addresses(i)))
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var mu sync.Mutex
	acknowledged, uncertain := map[string]bool{}, 0
	done := newProgress()
	for w := range 9 {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				operation := fmt.Sprintf("operation/%d/%d", w, n)
				err := add(t.Context(), stores[w%3], random.IntN(counters), operation)
				mu.Lock()
				switch {
				case err == nil:
					acknowledged[operation] = true
					done.add()
				case errors.Is(err, store.ErrUnknown):
					uncertain++
				case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnavailable):
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	done.more(t, 100)
	for _, fault := range faults() {
		c.fail(fault, func() { done.more(t, 20) })
		done.more(t, 100)
	}
	stop()
	writers.Wait()

	want := content(t, stores[0])
	for i, s := range stores[1:] {
		if got := content(t, s); !maps.Equal(got, want) {
			t.Errorf("store %d has %d keys, store 0 has %d, and they differ", i+1, len(got), len(want))
		}
	}
	operations := map[string]int{}
	for key, value := range want {
		if strings.HasPrefix(key, "operation/") {
			operations[value]++
			delete(acknowledged, key)
		}
	}
	for operation := range acknowledged {
		t.Errorf("%s was acknowledged and is not there", operation)
	}
	for counter, n := range operations {
		if want[counter] != strconv.Itoa(n) {
			t.Errorf("%s is %s after %d operations", counter, want[counter], n)
		}
	}
	t.Logf("%d transactions were acknowledged, %d are uncertain", done.done.Load(), uncertain)
}

func TestAStoreThatLacksTruncatedEntriesStopsItsWrites(t *testing.T) {
	t.Parallel()
	servers := []string{oneServer(t)}
	dir := t.TempDir()
	t.Run("away", func(t *testing.T) { openStore(t, dir, servers) })
	s := openStore(t, t.TempDir(), servers)
	for n := range 50 {
		if err := add(t.Context(), s, 1, fmt.Sprintf("operation/%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	n := open(t, servers, 0)
	tip, err := n.Tip(t.Context())
	if err == nil {
		err = n.Truncate(t.Context(), tip-5)
	}
	if err != nil {
		t.Fatal(err)
	}
	late := openStore(t, dir, servers)
	err = add(t.Context(), late, 1, "operation/late")
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("it writes with %v", err)
	}
	if h := late.Health(); h.Writable || !errors.Is(h.Reason, etcdlog.ErrTruncated) {
		t.Errorf("its state is %+v", h)
	}
}

// A store whose log is full refuses writes, and takes them again after a truncation.
func TestAStoreWithAFullLogRefusesWritesUntilItIsTruncated(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir(), 1)[0]
	o.QuotaBytes = 8 << 20
	start(t, o)
	s := openStore(t, t.TempDir(), []string{o.ClientURL})
	value := bytes.Repeat([]byte("v"), 500<<10)
	set := func(n int) error {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Set(fmt.Appendf(nil, "key/%d", n), value) })
		return err
	}
	stored := 0
	var err error
	for ; err == nil && stored < 100; stored++ {
		err = set(stored)
	}
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
		t.Fatalf("write %d ends with %v", stored, err)
	}
	if h := s.Health(); !h.Writable || h.Reason != nil {
		t.Errorf("its state is %+v", h)
	}
	n := open(t, []string{o.ClientURL}, 0)
	tip, err := n.Tip(t.Context())
	if err == nil {
		n.wait(t, func(got []delivered) bool { return len(got) > 0 && got[len(got)-1].revision == tip })
		err = n.Truncate(t.Context(), tip)
	}
	if err != nil {
		t.Fatal(err)
	}
	for more := range 3 {
		if err := set(stored + more); err != nil {
			t.Fatalf("after the truncation: %v", err)
		}
	}
	if got := len(content(t, s)); got != stored-1+3 {
		t.Errorf("it has %d keys, want %d", got, stored-1+3)
	}
}
