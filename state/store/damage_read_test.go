package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/state/store"
)

// tables returns the files of the tables of a store, in order.
func tables(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "badger", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inTables opens a store with all keys in one table: the keys k0000 and so on, n
// of them, with values of 100 bytes that begin with "old".
func inTables(t testing.TB, dir string, n int, log *slog.Logger) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	writeKeys(t, s, n, "old")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, store.Options{Dir: dir, Logger: log})
	s.WaitRestored()
	return s
}

// lines is a log that is safe for concurrent use.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func writeKeys(t testing.TB, s *store.Store, n int, value string) {
	t.Helper()
	update(t, s, func(tx *store.Tx) error {
		for i := range n {
			if err := tx.Set(fmt.Appendf(nil, "k%04d", i), fmt.Appendf(nil, "%-100s", value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// damageBytes changes a byte of a file at the first needle, and returns a function that
// undoes it.
func damageBytes(t testing.TB, path, needle string) (repair func()) {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(all, []byte(needle))
	if at < 0 {
		t.Fatalf("%s does not hold %q", path, needle)
	}
	return damageByte(t, path, int64(at))
}

// damageByte changes one byte of a file.
func damageByte(t testing.TB, path string, at int64) (repair func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var was [1]byte
	if _, err := f.ReadAt(was[:], at); err != nil {
		t.Fatal(err)
	}
	put := func(f *os.File, b byte) {
		if _, err := f.WriteAt([]byte{b}, at); err != nil {
			t.Fatal(err)
		}
	}
	put(f, was[0]^0x10)
	return func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		put(f, was[0])
	}
}

func TestADamagedBlockIsAnErrorAndNotAnAbsentKey(t *testing.T) {
	var log lines
	dir := t.TempDir()
	s := inTables(t, dir, 300, slog.New(slog.NewTextHandler(&log, nil)))
	if n := len(strings.Fields(scanKeys(t, s))); n != 300 {
		t.Fatalf("%d keys before", n)
	}
	defer damageBytes(t, tables(t, dir)[0], "old")() // in the first block

	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	within := func(what string, fn func(*store.Tx) error) {
		t.Helper()
		refused(what, s.View(t.Context(), fn))
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			if err := tx.Set([]byte("written"), nil); err != nil {
				return err
			}
			return fn(tx)
		})
		refused(what+" in an update", err)
	}
	within("get", func(tx *store.Tx) error {
		_, err := tx.Get([]byte("k0000"))
		refused("the get itself", err)
		return nil // a function that ignores the error
	})
	for _, reverse := range []bool{false, true} {
		within(fmt.Sprintf("scan, reverse %t", reverse), func(tx *store.Tx) error {
			for item, err := range tx.Scan([]byte("k"), nil, reverse) {
				if err != nil {
					refused("the scan itself", err)
					return nil
				}
				if reverse && string(item.Key) > "k0030" {
					continue
				}
				t.Errorf("yielded %s, reverse %t", item.Key, reverse)
			}
			return nil
		})
	}
	var backup bytes.Buffer
	if _, err := s.Backup(t.Context(), &backup, nil, nil); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a backup: %v", err)
	}
	if got := trimmed(t, s, "k0299"); got != "old" {
		t.Errorf("a key in a whole block is %q", got)
	}
	if got := trimmed(t, s, "written"); got != "<none>" {
		t.Errorf("a transaction with a failed read wrote %q", got)
	}
	if err := s.Health().Reason; !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("health says %v", err)
	}
	if n := strings.Count(log.String(), "store damaged"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log.String())
	}
}

func trimmed(t testing.TB, s *store.Store, key string) string {
	t.Helper()
	return strings.TrimSpace(read(t, s, key))
}

// scanKeys returns the keys of s.
func scanKeys(t testing.TB, s *store.Store) string {
	t.Helper()
	var keys []string
	err := s.View(t.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("k"), nil, false) {
			if err != nil {
				return err
			}
			keys = append(keys, string(item.Key))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(keys, " ")
}

func TestADamagedBlockDoesNotBringAnOlderValueBack(t *testing.T) {
	dir := t.TempDir()
	s := inTables(t, dir, 300, nil)
	writeKeys(t, s, 300, "new")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, store.Options{Dir: dir})
	s.WaitRestored()
	if all := tables(t, dir); len(all) != 2 {
		t.Fatalf("tables: %q", all)
	}
	defer damageBytes(t, tables(t, dir)[1], "new")()
	for i := range 300 {
		err := s.View(t.Context(), func(tx *store.Tx) error {
			v, err := tx.Get(fmt.Appendf(nil, "k%04d", i))
			if err == nil && !bytes.HasPrefix(v, []byte("new")) {
				t.Fatalf("key %d is what it was before: %q", i, v)
			}
			return err
		})
		if i == 0 && err == nil {
			t.Error("the damaged block could be read")
		}
	}
}

func TestATableTruncatedWhileItIsReadIsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows truncates no file that is mapped")
	}
	dir := t.TempDir()
	s := inTables(t, dir, 300, nil)
	path := tables(t, dir)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(whole); err != nil {
			t.Fatal(err)
		}
	}()
	for _, fn := range []func(*store.Tx) error{
		func(tx *store.Tx) error { _, err := tx.Get([]byte("k0000")); return err },
		func(tx *store.Tx) error { return errors.New(scan(tx, "k", "", false)) },
		func(tx *store.Tx) error { return errors.New(scan(tx, "k", "", true)) },
	} {
		if err := s.View(t.Context(), fn); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("read from a file without bytes: %v", err)
		}
	}
	if err := s.Health().Reason; err == nil {
		t.Error("health has no reason")
	}
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func TestACompactionKeepsDamagedTables(t *testing.T) {
	sequential(t)
	dir := t.TempDir()
	for range 5 { // as many tables as Badger makes one of
		s, err := store.Open(store.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		writeKeys(t, s, 300, "old")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, store.Options{Dir: dir})
	eventually(t, "the tables were not compacted", func() bool { return len(tables(t, dir)) == 1 })
	writeKeys(t, s, 1, "new")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.WaitRestored()
	before := tables(t, dir)
	if len(before) != 2 {
		t.Fatalf("tables: %q", before)
	}
	repair := damageBytes(t, before[0], "old")
	go func() { _, _ = s.Versions() }() // compacts them unless the scrubber stops it
	eventually(t, "the compaction met no damage", func() bool { return !s.Health().Writable })
	if err := s.Health().Reason; err == nil || !strings.Contains(err.Error(), before[0]) {
		t.Errorf("health says %v, and %s is damaged", err, before[0])
	}
	_, err = s.Update(t.Context(), func(tx *store.Tx) error { return tx.Set([]byte("x"), nil) })
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a write: %v", err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("closed with %v", err)
	}
	repair()

	// This process keeps the lock until its end, so use a copy, when Badger has
	// closed all that it can.
	eventually(t, "Badger keeps its log", func() bool {
		logs, err := filepath.Glob(filepath.Join(dir, "badger", "*.mem"))
		return err == nil && len(logs) == 0
	})
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, store.Options{Dir: kept})
	if n := len(strings.Fields(scanKeys(t, s))); n != 300 {
		t.Errorf("%d keys are left", n)
	}
	if got := trimmed(t, s, "k0000"); got != "new" {
		t.Errorf("the first key is %q", got)
	}
}

func TestTheScrubberFindsDamageThatNoReadMet(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	for _, fromEnd := range []int64{1, 5, 60} { // the lengths and the index at the end of a table
		t.Run(fmt.Sprint(fromEnd), func(t *testing.T) {
			dir := t.TempDir()
			s := inTables(t, dir, 300, nil)
			path := tables(t, dir)[0]
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			defer damageByte(t, path, info.Size()-fromEnd)()
			eventually(t, "the damage was not found", func() bool { return s.Health().Reason != nil })
			if err := s.Health().Reason; !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("health says %v", err)
			}
		})
	}
}

func TestTheDamagedFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := inTables(t, dir, 300, nil)
	path := tables(t, dir)[0]
	defer damageBytes(t, path, "old")()
	_ = s.View(t.Context(), func(tx *store.Tx) error { _, err := tx.Get([]byte("k0000")); return err })
	eventually(t, "health does not name the file", func() bool {
		err := s.Health().Reason
		return err != nil && strings.Contains(err.Error(), strings.Trim(strconv.Quote(path), `"`))
	})
}

// TestNoByteOfAnOpenTableHidesAKey changes bytes of blocks and of the index, except those of
// checksums: only the checks of whole files detect a changed length of a checksum.
func TestNoByteOfAnOpenTableHidesAKey(t *testing.T) {
	sequential(t)
	tries := 100
	if os.Getenv("RUNNER_SOAK") != "" {
		tries = 5000
	}
	const keys = 1000
	dir := t.TempDir()
	s := inTables(t, dir, keys, nil)
	path := tables(t, dir)[0]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range tries {
		at := random.Int64N(info.Size())
		if random.IntN(2) == 0 {
			at = info.Size() - 1 - random.Int64N(info.Size()/50) // in the index
		}
		if in, err := store.InChecksum(path, at); err != nil {
			t.Fatal(err)
		} else if in {
			continue
		}
		repair := damageByte(t, path, at)
		for i := range keys {
			err := s.View(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Get(fmt.Appendf(nil, "k%04d", i))
				return err
			})
			if errors.Is(err, store.ErrUnavailable) {
				refused++
			} else if err != nil {
				t.Errorf("byte %d of %d was changed, and key %d: %v", at, info.Size(), i, err)
			}
		}
		repair()
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d of %d reads refused", refused, tries*keys)
}

// Open does not read all blocks of a large table. To decide a commit, the store reads its newest
// keys in the background.
func TestAStoreThatCannotReadItsNewestKeysRefusesWrites(t *testing.T) {
	sequential(t)
	dir := t.TempDir()
	wrote(t, dir, 0, func(s *store.Store) {
		for i := range 60 {
			put(t, s, fmt.Sprintf("k%02d", i), strings.Repeat(fmt.Sprintf("value%02d", i), 50_000))
		}
	})
	damageBytes(t, tables(t, dir)[0], "value30")
	s := mustOpen(t, store.Options{Dir: dir})
	_, err := s.Update(t.Context(), setter("k", ""))
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) || !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a commit: %v", err)
	}
	if h := s.Health(); h.Writable || !errors.Is(h.Reason, store.ErrDamaged) || !strings.Contains(h.Reason.Error(), tables(t, dir)[0]) {
		t.Errorf("health is %+v", h)
	}
	if got := read(t, s, "k10"); !strings.HasPrefix(got, "value10") {
		t.Errorf("a readable key reads %.10s", got)
	}
}
