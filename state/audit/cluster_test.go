package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/state/audit"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// nodes opens the stores and logs of two nodes. The first one is the owner.
func nodes(t *testing.T) (stores []*store.Store, logs []*audit.Log) {
	t.Helper()
	stores = storetest.NewLog().Nodes(t, "a", "b")
	for _, st := range stores {
		storetest.CatchUp(t, st)
		logs = append(logs, openLog(t, st))
	}
	return stores, logs
}

// sealedRecords returns how many records are sealed.
func sealedRecords(t *testing.T, st *store.Store) (n int) {
	t.Helper()
	storetest.CatchUp(t, st)
	err := st.View(t.Context(), func(tx *store.Tx) error {
		for _, err := range tx.Scan([]byte("auditlog/"), nil, false) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestARecordNamesTheNode(t *testing.T) {
	stores, logs := nodes(t)
	for i, st := range []*store.Store{stores[0], stores[1], stores[1]} {
		add(t, st, fmt.Sprint(i))
	}
	update(t, stores[0], func(tx *store.Tx) error { // the caller cannot choose it
		return audit.Append(tx, audit.Record{Action: "apiKeys.create", Target: "3", Result: audit.OK, Node: "other"})
	})
	for _, sealed := range []bool{false, true} {
		for i, st := range stores {
			storetest.CatchUp(t, st)
			entries, err := audit.List(t.Context(), st, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Target+e.Node)
			}
			if !slices.Equal(got, []string{"0a", "1b", "2b", "3a"}) {
				t.Errorf("on node %d, sealed %v: %v", i, sealed, got)
			}
			if _, err := audit.Verify(t.Context(), st, logs[0].Head()); err != nil {
				t.Error(err)
			}
		}
		seal(t, logs[0])
	}
	// The chain covers the name.
	forged := false
	update(t, stores[1], func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("auditlog/"), nil, false) {
			if err != nil {
				return err
			}
			value := strings.Replace(string(item.Value), `"node":"b"`, `"node":"c"`, 1)
			if forged = value != string(item.Value); forged {
				return tx.Set(slices.Clone(item.Key), []byte(value))
			}
		}
		return nil
	})
	if _, err := audit.Verify(t.Context(), stores[1]); !forged || err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("forged %v: %v", forged, err)
	}
}

func TestARecordOfAStoreAloneHasNoNode(t *testing.T) {
	st := openStore(t, "")
	add(t, st, "t")
	entries, err := audit.List(t.Context(), st, 0, 10)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	text, err := json.Marshal(entries[0].Record)
	if err != nil || strings.Contains(string(text), "node") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestOnlyTheOwnerSealsAndExpires(t *testing.T) {
	stores, logs := nodes(t)
	refuse := func(st *store.Store) {
		t.Helper()
		update(t, st, func(tx *store.Tx) error {
			return audit.Append(tx, audit.Record{Action: audit.RefuseCredentials, Result: "invalid_token", Count: 3})
		})
	}
	for round, owner := range []int{0, 1, 0} {
		other := 1 - owner
		storetest.Own(t, stores[owner])
		storetest.CatchUp(t, stores...)
		before := sealedRecords(t, stores[0])
		refuse(stores[other])
		refuse(stores[owner])
		storetest.CatchUp(t, stores...)
		seal(t, logs[other])
		if n := sealedRecords(t, stores[0]); n != before {
			t.Errorf("round %d: the other node has sealed %d records", round, n-before)
		}
		seal(t, logs[owner])
		if n := sealedRecords(t, stores[0]); n != before+2 {
			t.Errorf("round %d: the owner has sealed %d records", round, n-before)
		}
		storetest.CatchUp(t, stores...)
		seal(t, logs[other]) // which drops them from memory
		later := time.Now().Add(time.Hour)
		if n, err := logs[other].Expire(t.Context(), later, later); n != 0 || err != nil {
			t.Errorf("round %d: the other node has removed %d records, %v", round, n, err)
		}
		if n, err := logs[owner].Expire(t.Context(), later, later); n != 2 || err != nil {
			t.Errorf("round %d: the owner has removed %d records, %v", round, n, err)
		}
		seal(t, logs[owner])
		storetest.CatchUp(t, stores...)
		if a, b := logs[0].Head(), logs[1].Head(); a != b {
			t.Errorf("round %d: the heads are %v and %v", round, a, b)
		}
		for _, st := range stores {
			if _, err := audit.Verify(t.Context(), st, logs[0].Head()); err != nil && !errors.Is(err, audit.ErrExpired) {
				t.Error(err)
			}
		}
	}
}

// A transaction of Expire that conflicts runs again, and counts its records once.
func TestAnExpiryThatRunsAgainCountsItsRecordsOnce(t *testing.T) {
	var once atomic.Pointer[func()]
	st := storetest.NewLog().Open(t, store.Options{Name: "a", Clock: func() time.Time { // read in the transaction
		if do := once.Swap(nil); do != nil {
			(*do)()
		}
		return time.Now()
	}})
	storetest.Own(t, st)
	log := openLog(t, st)
	for range 2 {
		for range 3 {
			refuse(t, st, time.Now().Add(-31*day))
		}
		add(t, st, "kept")
	}
	seal(t, log)
	again := func() { storetest.Own(t, st) } // which Expire has read
	once.Store(&again)
	n, err := log.Expire(t.Context(), time.Now().Add(-30*day), time.Now())
	if n != 6 || err != nil || once.Load() != nil {
		t.Errorf("removed %d records, %v; conflict %v", n, err, once.Load() == nil)
	}
	entries, err := audit.List(t.Context(), st, 1, 100)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%+v, %v", entries, err)
	}
	if r := entries[2].Record; r.Action != "audit.expire" || r.Count != 6 || len(r.Removed) != 2 {
		t.Errorf("the checkpoint is %+v", r)
	}
	if _, err := audit.Verify(t.Context(), st); err != nil {
		t.Error(err)
	}
}
