package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/store"
	"runner.example/state/store/files"
	"runner.example/state/store/frame"
)

func putBlob(t *testing.T, s *store.Store, content string) store.Digest {
	t.Helper()
	d, err := s.PutBlob(t.Context(), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readBlob(t *testing.T, s *store.Store, d store.Digest) string {
	t.Helper()
	r, err := s.Blob(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestBlobsAreReadByTheirDigest(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		for _, content := range []string{"", "module", strings.Repeat("long", 1<<20), "module"} {
			d := putBlob(t, s, content)
			if d != sha256.Sum256([]byte(content)) {
				t.Errorf("digest of %.10q is %v", content, d)
			}
			if got := readBlob(t, s, d); got != content {
				t.Errorf("%.10q reads %.10q", content, got)
			}
			parsed, err := store.ParseDigest(d.String())
			if err != nil || parsed != d {
				t.Errorf("%v parses as %v, %v", d, parsed, err)
			}
		}
		if _, err := s.Blob(t.Context(), store.Digest{1}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("absent blob: %v", err)
		}
	})
}

func TestOnlyCompleteDigestsParse(t *testing.T) {
	good := store.Digest{0xab}.String()
	for _, bad := range []string{"", good[:62], good + "00", strings.ToUpper(good), "../../../etc/passwd", "x" + good[1:]} {
		if d, err := store.ParseDigest(bad); err == nil {
			t.Errorf("%q parses as %v", bad, d)
		}
	}
}

func TestABlobWhoseReaderFailsIsNotStored(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, store.Options{Dir: dir})
	broken := errors.New("broken")
	if _, err := s.PutBlob(t.Context(), io.MultiReader(strings.NewReader("half"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PutBlob(ctx, strings.NewReader("half")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "blobs"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestABlobWithAnotherDigestOrSizeIsNotStored(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		want, size := store.Digest(sha256.Sum256([]byte("module"))), int64(len("module"))
		for sent, reason := range map[string]string{
			"modul":        "5 of the declared 6 bytes",
			"modulE":       "changed on the way",
			"module ":      "more than the declared 6 bytes",
			"module, long": "more than the declared 6 bytes",
			"":             "0 of the declared 6 bytes",
		} {
			err := s.PutBlobAs(t.Context(), strings.NewReader(sent), want, size)
			if fault.Of(err).Code != fault.Invalid || !strings.Contains(err.Error(), reason) {
				t.Errorf("%q: %v", sent, err)
			}
		}
		if all, err := s.Blobs(); err != nil || len(all) != 0 {
			t.Errorf("refused blobs left %v, %v", all, err)
		}
		if err := s.PutBlobAs(t.Context(), strings.NewReader("module"), want, size); err != nil {
			t.Fatal(err)
		}
		if got := readBlob(t, s, want); got != "module" {
			t.Errorf("the blob reads %q", got)
		}
	})
}

func TestBlobsAreListedAndDeleted(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		before := time.Now().Add(-time.Minute)
		module, empty := putBlob(t, s, "module"), putBlob(t, s, "")
		all, err := s.Blobs()
		if err != nil || len(all) != 2 {
			t.Fatalf("listed %v, %v", all, err)
		}
		for _, b := range all {
			if size := map[store.Digest]int64{module: 6, empty: 0}[b.Digest]; b.Size != size || b.Stored.Before(before) {
				t.Errorf("listed %+v", b)
			}
		}
		if info, err := s.StatBlob(module); err != nil || info.Size != 6 {
			t.Errorf("%+v, %v", info, err)
		}
		for range 2 { // what is gone is deleted without an error
			if err := s.DeleteBlob(module); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.StatBlob(module); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a deleted blob: %v", err)
		}
		if got := readBlob(t, s, empty); got != "" {
			t.Errorf("the other blob reads %q", got)
		}
	})
}

// A blob that the backup's keys name must be in the backup.
func TestNoBlobIsDeletedWhileABackupIsWritten(t *testing.T) {
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	d := putBlob(t, s, "module")
	var during error
	_, err := s.Backup(t.Context(), io.Discard, func(*store.Tx) ([]byte, error) {
		during = s.DeleteBlob(d)
		return nil, nil
	}, nil)
	if err != nil || !errors.Is(during, store.ErrUnavailable) {
		t.Errorf("backup %v, deletion meanwhile %v", err, during)
	}
	if err := s.DeleteBlob(d); err != nil {
		t.Errorf("after the backup: %v", err)
	}
}

func TestADigestIsTextInJSON(t *testing.T) {
	want := store.Digest{0xab}
	text, err := json.Marshal(want)
	var got store.Digest
	if err != nil || json.Unmarshal(text, &got) != nil || got != want || string(text) != `"`+want.String()+`"` {
		t.Errorf("%s reads as %v, %v", text, got, err)
	}
	if err := json.Unmarshal([]byte(`"../x"`), &got); err == nil {
		t.Error("a path reads as a digest")
	}
}

func TestADamagedBlobIsAnError(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, store.Options{Dir: dir})
	d := putBlob(t, s, "module")
	path := filepath.Join(dir, "blobs", d.String())
	if err := os.WriteFile(path, []byte("mOdule"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(t.Context(), d); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("error is %v", err)
	}
	putBlob(t, s, "module")
	if got := readBlob(t, s, d); got != "module" {
		t.Errorf("stored again it reads %q", got)
	}
}

func TestUnfinishedBlobsAreRemovedAtOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "blobs", "new-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, store.Options{Dir: dir})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

// fill writes values and blobs of all kinds.
func fill(t *testing.T, s *store.Store) {
	t.Helper()
	for i := range 30 {
		put(t, s, fmt.Sprintf("k%d", i%10), fmt.Sprint(i), "empty", "", "gone", "x")
	}
	put(t, s, "long", strings.Repeat("long", 400_000))
	put(t, s, "short", strings.Repeat("long", 400_000))
	put(t, s, "short", "now")
	update(t, s, deleter("gone"))
	putBlob(t, s, "module")
	putBlob(t, s, strings.Repeat("module", 100_000))
}

// dump returns all keys with values and versions.
func dump(t *testing.T, s *store.Store) string {
	t.Helper()
	var b strings.Builder
	err := s.View(t.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%q@%d=%x\n", item.Key, item.Version, sha256.Sum256(item.Value))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func backup(t *testing.T, s *store.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	seq, err := s.Backup(t.Context(), &b, nil, nil)
	if err != nil || seq != s.Health().Applied {
		t.Fatalf("backup of commit %d: %v", seq, err)
	}
	return b.Bytes()
}

// restore restores a backup, of which nothing may be known to be valid.
func restore(t *testing.T, s *store.Store, backup io.Reader) error {
	t.Helper()
	in, _, err := frame.NewReader(t.Context(), backup)
	if err != nil {
		return err
	}
	return s.Restore(t.Context(), in)
}

func TestABackupRestoresEverythingWithItsVersions(t *testing.T) {
	s := mustOpen(t, store.Options{Dir: t.TempDir()}, 5)
	fill(t, s)
	saved := backup(t, s)
	dir := t.TempDir()
	restored := mustOpen(t, store.Options{Dir: dir}, 5)
	if err := restore(t, restored, bytes.NewReader(saved)); err != nil {
		t.Fatal(err)
	}
	check := func(r *store.Store) {
		t.Helper()
		if got, want := dump(t, r), dump(t, s); got != want {
			t.Errorf("restored\n%swant\n%s", got, want)
		}
		if got, want := r.Health().Applied, s.Health().Applied; got != want {
			t.Errorf("restored up to commit %d, want %d", got, want)
		}
	}
	check(restored)
	if got := readBlob(t, restored, sha256.Sum256([]byte("module"))); got != "module" {
		t.Errorf("blob reads %q", got)
	}
	if got := readBlob(t, restored, sha256.Sum256([]byte(strings.Repeat("module", 100_000)))); len(got) != 600_000 {
		t.Errorf("long blob reads %d bytes", len(got))
	}
	if a, b := put(t, s, "long", "after"), put(t, restored, "long", "after"); a != b {
		t.Errorf("the next commits are %d and %d", a, b)
	}
	check(restored)
	if n := restored.Pieces(); n != 0 {
		t.Errorf("%d pieces left of the long value that was replaced", n)
	}
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
	check(mustOpen(t, store.Options{Dir: dir}))
}

func TestABackupOfAnEmptyStoreRestores(t *testing.T) {
	saved := backup(t, mustOpen(t, store.Options{Dir: t.TempDir()}))
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	if err := restore(t, s, bytes.NewReader(saved)); err != nil {
		t.Fatal(err)
	}
	if seq := put(t, s, "k", "v"); seq != 1 {
		t.Errorf("the first commit is %d", seq)
	}
}

func TestABackupUnderLoadIsOneSnapshot(t *testing.T) {
	s := mustOpen(t, store.Options{Dir: t.TempDir()}, 3)
	put(t, s, "a", "0", "z", "0")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
				put(t, s, "a", fmt.Sprint(i), "m", strings.Repeat("m", 1000), "z", fmt.Sprint(i))
			}
		}
	}()
	for range 3 {
		var b bytes.Buffer
		if _, err := s.Backup(t.Context(), &b, nil, nil); err != nil {
			t.Fatal(err)
		}
		r := mustOpen(t, store.Options{Dir: t.TempDir()})
		if err := restore(t, r, &b); err != nil {
			t.Fatal(err)
		}
		if a, z := read(t, r, "a"), read(t, r, "z"); a != z {
			t.Errorf("one transaction wrote a and z: %s and %s", a, z)
		}
	}
	close(stop)
	<-done
}

// A slow backup must keep the log's records of the window at its start.
func TestABackupMayTakeLongerThanTheWindow(t *testing.T) {
	sequential(t)
	o := store.Options{Dir: t.TempDir()}
	for range 8 { // Badger compacts only where there are tables on two levels
		overwrite(t, mustOpen(t, o, 5), 1, 1)
	}
	s := mustOpen(t, o, 5)
	fill(t, s)
	want := dump(t, s)
	var b bytes.Buffer
	work := sync.OnceFunc(func() {
		for range 420 { // three memtables, of which two at most wait to be written out
			put(t, s, "bulk", strings.Repeat("b", 500_000), "k1", "later")
		}
		if _, err := s.Versions(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Backup(t.Context(), writerFunc(func(p []byte) (int, error) { work(); return b.Write(p) }), nil, nil); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, store.Options{Dir: t.TempDir()})
	if err := restore(t, r, &b); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, r); got != want {
		t.Errorf("restored\n%swant\n%s", got, want)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestADamagedBackupRestoresNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	fill(t, s)
	saved := backup(t, s)
	r := newRandom(t)()
	target := mustOpen(t, store.Options{Dir: t.TempDir()})
	refused := func(what string, damaged []byte) {
		t.Helper()
		if err := restore(t, target, bytes.NewReader(damaged)); err == nil {
			t.Fatalf("%s: restored", what)
		}
		if got := dump(t, target); got != "" || target.Health().Applied != 0 {
			t.Fatalf("%s: it holds %d, %s", what, target.Health().Applied, got)
		}
	}
	refused("empty", nil)
	refused("something else", []byte("PK\x03\x04 this is no backup at all"))
	refused("one byte more", append(bytes.Clone(saved), 0))
	for range 12 {
		at := r.IntN(len(saved))
		refused(fmt.Sprintf("cut at %d of %d", at, len(saved)), saved[:at])
		damaged := bytes.Clone(saved)
		damaged[at] ^= 1 << r.IntN(8)
		refused(fmt.Sprintf("bit changed at %d of %d", at, len(saved)), damaged)
	}
	refused("cut before the last byte", saved[:len(saved)-1])
	frames := frameStarts(t, saved)
	for i, start := range frames[:len(frames)-1] {
		refused(fmt.Sprintf("frame %d missing", i), append(bytes.Clone(saved[:start]), saved[frames[i+1]:]...))
	}
	if err := restore(t, target, bytes.NewReader(saved)); err != nil {
		t.Fatalf("whole: %v", err)
	}
	if got, want := dump(t, target), dump(t, s); got != want {
		t.Errorf("restored\n%swant\n%s", got, want)
	}
}

func TestABackupOfAnotherVersionIsRefused(t *testing.T) {
	saved := backup(t, mustOpen(t, store.Options{Dir: t.TempDir()}))
	other := bytes.Replace(saved, []byte("backup 2"), []byte("backup 1"), 1)
	if _, _, err := frame.NewReader(t.Context(), bytes.NewReader(other)); !errors.Is(err, frame.ErrNotBackup) {
		t.Error(err)
	}
}

// The hashes of these backups are right, but Badger could not read their tables.
func TestABackupWithImpossibleKeysIsRefused(t *testing.T) {
	version := func(key string, seq uint64) []byte {
		return (&files.Version{Key: []byte(key), Seq: seq, Value: []byte("v")}).Append(nil)
	}
	whole := version("dk", 1)
	for name, list := range map[string][]byte{
		"keys descend":        slices.Concat(version("db", 1), version("da", 1)),
		"versions ascend":     slices.Concat(version("da", 1), version("da", 2)),
		"a version is double": slices.Concat(version("da", 1), version("da", 1)),
		"an empty key":        version("", 1),
		"a long key":          version(strings.Repeat("k", 65_001), 1),
		"an unknown kind":     slices.Concat([]byte{2}, whole[1:]),
		"a part of a version": whole[:len(whole)-1],
		"only its kind":       whole[:1],
	} {
		var b bytes.Buffer
		out, err := frame.NewWriter(t.Context(), &b, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]byte{version("a", 1), list} {
			if err := out.Write(frame.Keys, list); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Finish(); err != nil {
			t.Fatal(err)
		}
		in, _, err := frame.NewReader(t.Context(), bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.CheckBackup(in); !errors.Is(err, frame.ErrDamaged) {
			t.Errorf("%s: checked: %v", name, err)
		}
		s := mustOpen(t, store.Options{Dir: t.TempDir()})
		if err := restore(t, s, &b); !errors.Is(err, frame.ErrDamaged) {
			t.Errorf("%s: restored: %v", name, err)
		}
		if put(t, s, "k", "v"); scanAll(t, s, "") != "k=v" {
			t.Errorf("%s: it holds %s", name, scanAll(t, s, ""))
		}
	}
}

// A backup has no versions that only open transactions need, and of the deletions it has those in
// the window.
func TestABackupHasTheNewestVersionOfEachKey(t *testing.T) {
	s := mustOpen(t, store.Options{Dir: t.TempDir()}, 5)
	put(t, s, "before", "")
	update(t, s, deleter("before"))
	fill(t, s)
	put(t, s, "deleted", "")
	update(t, s, deleter("deleted"))
	in, _, err := frame.NewReader(t.Context(), bytes.NewReader(backup(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]int{}
	for kind := frame.Keys; kind == frame.Keys; {
		var list []byte
		if kind, list, err = in.Next(); err != nil {
			t.Fatal(err)
		}
		if kind != frame.Keys {
			break
		}
		if err := files.EachVersion(list, func(v *files.Version) error { versions[string(v.Key)]++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := versions["mlog"]; n != 5 {
		t.Errorf("%d records of the log, with a window of 5", n)
	}
	if versions["dbefore"] != 0 || versions["ddeleted"] != 1 || len(versions) < 10 {
		t.Errorf("%d keys; of deleted ones %d before the window and %d in it", len(versions), versions["dbefore"], versions["ddeleted"])
	}
	for key, n := range versions {
		if n > 1 && key != "mlog" {
			t.Errorf("%d versions of %q", n, key)
		}
	}
}

// frameStarts returns where the frames of a backup begin.
func frameStarts(t *testing.T, saved []byte) (starts []int) {
	t.Helper()
	lines := bytes.SplitN(saved, []byte("\n"), 3) // the format, the head, and the frames
	for at := len(saved) - len(lines[2]); at < len(saved); {
		starts = append(starts, at)
		at += 9 + int(binary.BigEndian.Uint32(saved[at+1:]))
	}
	if len(starts) < 4 {
		t.Fatalf("only %d frames", len(starts))
	}
	return starts
}

func TestOnlyAnEmptyStoreOnDiskWithoutFollowersIsRestored(t *testing.T) {
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	saved := backup(t, s)
	if err := restore(t, mustOpen(t, store.Options{}), bytes.NewReader(saved)); err == nil {
		t.Error("restored into memory")
	}
	stop := s.OnApply(nil, func(store.Seq, store.Change) {})
	if err := restore(t, s, bytes.NewReader(saved)); err == nil {
		t.Error("restored below a follower")
	}
	stop()
	put(t, s, "k", "v")
	if err := restore(t, s, bytes.NewReader(saved)); err == nil {
		t.Error("restored over data")
	}
	if got := read(t, s, "k"); got != "v" {
		t.Errorf("k reads %q", got)
	}
}

func TestABackupThatCannotBeWrittenIsAnError(t *testing.T) {
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	fill(t, s)
	for _, room := range []int{0, 1000, 100_000} {
		if _, err := s.Backup(t.Context(), &full{room}, nil, nil); !errors.Is(err, errFull) {
			t.Errorf("with space for %d bytes: %v", room, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Backup(ctx, io.Discard, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

var errFull = errors.New("full")

// full is a writer that accepts room bytes.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestOpeningAuditsTheLog(t *testing.T) {
	rows := []struct {
		name   string
		damage func(*store.Store) error
		says   string
	}{
		{"an entry of another content", func(s *store.Store) error { return s.ForgeEntry(15) }, "does not follow"},
		{"data behind the log's back", func(s *store.Store) error { return s.WriteVersion(21) }, "without its entry"},
		{"an entry skipped", func(s *store.Store) error { return s.SkipTo(22) }, "is missing"},
	}
	for _, row := range rows {
		dir := t.TempDir()
		s := mustOpen(t, store.Options{Dir: dir}, 10)
		for i := range 20 {
			put(t, s, "k", fmt.Sprint(i))
		}
		if err := row.damage(s); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := store.Open(store.Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.name, err, row.says)
		}
		if errors.Is(err, store.ErrLocked) {
			t.Errorf("%s: the directory stays locked", row.name)
		}
	}
}

func TestVersionsOlderThanTheWindowAreDiscarded(t *testing.T) {
	const keys, commits, window, starts = 10, 200, 20, 8
	dir := t.TempDir()
	want, left := "", 0
	for range starts {
		s := mustOpen(t, store.Options{Dir: dir}, window)
		if got := dump(t, s); got != want {
			t.Fatalf("store holds\n%swant\n%s", got, want)
		}
		var err error
		if left, err = s.Versions(); err != nil {
			t.Fatal(err)
		}
		want = overwrite(t, s, keys, commits)
	}
	if left < keys+window-1 || left > commits {
		t.Errorf("%d versions of %d keys left after %d commits, want about %d", left, keys, starts*commits, keys+window)
	}
}

// overwrite makes commits that each write one of a few keys, closes the store,
// which writes a table, and returns its content.
func overwrite(t *testing.T, s *store.Store, keys, commits int) string {
	t.Helper()
	for i := range commits {
		put(t, s, fmt.Sprintf("k%d", i%keys), fmt.Sprint(i))
	}
	held := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return held
}

func TestAnOpenViewKeepsItsVersions(t *testing.T) {
	sequential(t)
	o := store.Options{Dir: t.TempDir()}
	for range 8 { // Badger compacts only where there are tables on two levels
		overwrite(t, mustOpen(t, o, 2), 1, 1)
	}
	s := mustOpen(t, o, 2)
	put(t, s, "k", "old", "gone", "old")
	err := s.View(t.Context(), func(tx *store.Tx) error {
		if got := get(tx, "k"); got != "old" {
			t.Errorf("k reads %q", got)
		}
		update(t, s, deleter("gone"))
		for i := range 420 { // three memtables, of which two at most wait to be written out
			put(t, s, "k", fmt.Sprint(i), "bulk", strings.Repeat("b", 500_000))
		}
		if _, err := s.Versions(); err != nil {
			return err
		}
		if got := get(tx, "k") + get(tx, "gone"); got != "oldold" {
			t.Errorf("after compaction the view reads %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestADamagedDatabaseIsAnErrorAndNotAPanic(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "badger", "MANIFEST"), []byte("not a manifest"), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err = store.Open(store.Options{Dir: dir}); err == nil || st != nil {
		t.Errorf("opened: %v, %v", st, err)
	}
}
