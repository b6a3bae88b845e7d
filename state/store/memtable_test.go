package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/state/store"
)

// logs returns how many logs of the store in dir have content, and how many tables there are. A log is removed after its
// table is written, so for a moment both are there.
func logs(t *testing.T, dir string) (n, written int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "badger", "*.mem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			n++
		}
	}
	tables, err := filepath.Glob(filepath.Join(dir, "badger", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	return n, len(tables)
}

// A memtable is memory of the process, so a new one begins long before Badger's limits of a
// transaction require it.
func TestAMemtableTakesAtMost32MiB(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, store.Options{Dir: dir})
	for i := range 5 {
		put(t, s, fmt.Sprintf("before%d", i), strings.Repeat("v", 6<<20))
	}
	if n, tables := logs(t, dir); n != 1 || tables != 0 {
		t.Fatalf("30 MiB are in %d logs and %d tables, want one log", n, tables)
	}
	put(t, s, "full", strings.Repeat("v", 3<<20))
	put(t, s, "after", "v")
	if n, tables := logs(t, dir); n > 2 || tables > 1 || n+tables < 2 {
		t.Errorf("33 MiB are in %d logs and %d tables, want two, or one and a table", n, tables)
	}
}

// A memtable that is nearly full still takes the largest transaction.
func TestTheLargestTransactionsFitIntoAMemtable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		const keys = 50_000
		value := []byte(strings.Repeat("v", 8<<20/keys-len("00000000")))
		for round := range 4 {
			for i := range 3 {
				put(t, s, fmt.Sprintf("filler%d", i), strings.Repeat("v", 8<<20-100))
			}
			put(t, s, "filler3", strings.Repeat("v", 7<<20+(round<<18)))
			update(t, s, func(tx *store.Tx) error {
				for i := range keys {
					if err := tx.Set(fmt.Appendf(nil, "%02d%06d", round, i), value); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for round := range 4 {
			if got, want := len(scanAll(t, s, fmt.Sprintf("%02d", round))), keys*len(value); got < want {
				t.Errorf("round %d: %d bytes, want at least %d", round, got, want)
			}
		}
	})
}

// Earlier versions had memtables of 64 MiB. Their logs are as long, and may still be there when
// this version opens the store.
func TestALogOfALargeMemtableIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	dir := t.TempDir()
	s := mustOpen(t, store.Options{Dir: dir})
	s.UseLargeMemtable()
	for i := range 12 {
		put(t, s, fmt.Sprintf("v%02d", i), strings.Repeat("v", 5<<20))
	}
	if n, tables := logs(t, dir); n != 1 || tables != 0 {
		t.Fatalf("60 MiB are in %d logs and %d tables, want one log", n, tables)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, store.Options{Dir: killed})
	if got := len(scanAll(t, s, "v")); got < 60<<20 {
		t.Errorf("%d bytes are left of 60 MiB", got)
	}
	put(t, s, "next", "v")
}
