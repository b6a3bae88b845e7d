package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/audit"
	"runner.example/store"
	"runner.example/store/storetest"
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
