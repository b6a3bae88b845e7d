package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"runner.example/state/store"
)

// saved is a copy of a directory in memory, without the blocks of zeros: most of Badger's
// files are mostly holes.
type saved []savedFile

type savedFile struct {
	name    string // in the directory
	size    int64
	blocks  map[int64][]byte // by offset
	offsets []int64
}

const savedBlock = 4096

func save(t *testing.T, dir string) (all saved) {
	t.Helper()
	zero := make([]byte, savedBlock)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		file := savedFile{name: name, blocks: map[int64][]byte{}}
		for {
			b := make([]byte, savedBlock)
			n, err := io.ReadFull(f, b)
			if n > 0 && !bytes.Equal(b[:n], zero[:n]) {
				file.blocks[file.size] = b[:n]
				file.offsets = append(file.offsets, file.size)
			}
			file.size += int64(n)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			} else if err != nil {
				return err
			}
		}
		all = append(all, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// restoreTo writes the directory to dir.
func (s saved) restoreTo(t *testing.T, dir string) {
	t.Helper()
	for _, file := range s {
		path := filepath.Join(dir, file.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		err = f.Truncate(file.size)
		for at, b := range file.blocks {
			_, e := f.WriteAt(b, at)
			err = errors.Join(err, e)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// damage damages one file in dir and returns how.
func (s saved) damage(t *testing.T, random *rand.Rand, dir string) string {
	t.Helper()
	file := s[random.IntN(len(s))]
	path := filepath.Join(dir, file.name)
	at := int64(0)
	if len(file.offsets) > 0 {
		place := file.offsets[random.IntN(len(file.offsets))]
		at = place + int64(random.IntN(len(file.blocks[place])))
	}
	var err error
	what := ""
	switch kind := random.IntN(20); {
	case kind == 0:
		what, err = "removed", os.Remove(path)
	case kind == 1:
		what, err = "renamed", os.Rename(path, path+".old")
	case kind == 2:
		what, err = fmt.Sprintf("cut at %d", at), os.Truncate(path, at)
	case kind == 3:
		what, err = fmt.Sprintf("512 zeros at %d", at), change(path, at, func(b []byte) { clear(b) }, 512)
	default:
		bits := byte(1 + random.IntN(255))
		what, err = fmt.Sprintf("byte %d changed by %#x", at, bits), change(path, at, func(b []byte) { b[0] ^= bits }, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s of %d bytes: %s", file.name, file.size, what)
}

// change changes up to n bytes of a file in place.
func change(path string, at int64, how func([]byte), n int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, n)
	if n, err = f.ReadAt(b, at); err != nil && err != io.EOF {
		return err
	}
	if n == 0 {
		return nil // an empty file
	}
	how(b[:n])
	_, err = f.WriteAt(b[:n], at)
	return err
}

// stoppedStore is the directory of a store with tables on two levels, blobs and a value in
// pieces, which was closed. killedStore is one after a kill of its process.
func stoppedStore(t *testing.T) string {
	dir := t.TempDir()
	for range 7 {
		s := mustOpen(t, store.Options{Dir: dir}, 20)
		fill(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func killedStore(t *testing.T) string {
	dir := stoppedStore(t)
	if acks := runAndKill(t, dir, 0, 200); len(acks) < 200 {
		t.Fatalf("%d operations acknowledged", len(acks))
	}
	return dir
}

// contents returns all that can be read of a store.
func contents(ctx context.Context, s *store.Store) (string, error) {
	var b strings.Builder
	err := s.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s@%d=%.20q,%d\n", item.Key, item.Version, item.Value, len(item.Value))
		}
		return nil
	})
	for _, content := range []string{"module", strings.Repeat("module", 100_000)} {
		r, e := s.Blob(ctx, sha256.Sum256([]byte(content)))
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		got, e := io.ReadAll(r)
		if e == nil && string(got) != content {
			fmt.Fprintf(&b, "blob of %d bytes\n", len(got))
		}
		err = errors.Join(err, e, r.Close())
	}
	return b.String(), err
}

// After any damage to one file, the store is refused, or a read fails, or every
// acknowledged commit is there.
func TestADamagedStoreIsRefusedOrReadWithErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	tries := 12
	if os.Getenv("RUNNER_SOAK") != "" {
		tries = 500
	}
	for _, row := range []struct {
		name string
		dir  func(*testing.T) string
	}{{"stopped", stoppedStore}, {"killed", killedStore}} {
		t.Run(row.name, func(t *testing.T) {
			whole := save(t, row.dir(t))
			random := newRandom(t)()
			want, err := openDamaged(t, whole, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			refused, same := 0, 0
			for range tries {
				what := ""
				got, err := openDamaged(t, whole, func(dir string) { what = whole.damage(t, random, dir) })
				switch {
				case err != nil:
					refused++
				case got == want:
					same++
				default:
					t.Errorf("%s: served with %d lines instead of %d", what, strings.Count(got, "\n"), strings.Count(want, "\n"))
				}
			}
			t.Logf("%d tries: %d refused, %d without effect", tries, refused, same)
			if refused < tries/4 {
				t.Errorf("only %d of %d were detected", refused, tries)
			}
		})
	}
}

// openDamaged opens a copy of a store after damage was done to it and reads all of it.
func openDamaged(t *testing.T, whole saved, damage func(dir string)) (string, error) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	whole.restoreTo(t, dir)
	damage(dir)
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		return "", err
	}
	got, err := contents(t.Context(), s)
	if e := s.Close(); e != nil {
		t.Log(e)
	}
	return got, err
}

// Zeros at the end of a table look like an empty index with a right checksum. File systems
// leave them after a loss of power.
func TestATableThatEndsInZerosIsDamaged(t *testing.T) {
	dir := t.TempDir()
	s := inTables(t, dir, 300, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := tables(t, dir)[0]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		whole int64 // bytes that stay
		size  int64
		keys  bool // can be salvaged
	}{{"its last page", info.Size() / 2, info.Size(), true}, {"all of it", 0, info.Size(), false}, {"a page more", info.Size(), info.Size() + 4096, true}} {
		t.Run(row.name, func(t *testing.T) {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			path := tables(t, copied)[0]
			if err := errors.Join(os.Truncate(path, row.whole), os.Truncate(path, row.size)); err != nil {
				t.Fatal(err)
			}
			if s, err := store.Open(store.Options{Dir: copied}); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), strings.Trim(strconv.Quote(path), `"`)) {
				t.Errorf("opens with %v", err)
				if err == nil {
					_ = s.Close()
				}
			}
			got := salvage(t, copied)
			if len(got.Losses) == 0 {
				t.Error("salvage reports no loss")
			}
			if keys := scanKeys(t, got.Store); strings.Contains(keys, "k0000") != row.keys {
				t.Errorf("salvaged is %.100s", keys)
			}
			if err := got.Store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that ends while a store is opened or closed may leave an empty log.
func TestAnEmptyLogIsNotDamage(t *testing.T) {
	dir := t.TempDir()
	if err := inTables(t, dir, 300, nil).Close(); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, file string }{
		{"the first log of values", "000001.vlog"},
		{"a further log of values", "000099.vlog"},
		{"a log", "00099.mem"},
	} {
		t.Run(row.name, func(t *testing.T) {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(copied, "badger", row.file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(store.Options{Dir: copied})
			if err != nil {
				t.Fatal(err)
			}
			if keys := scanKeys(t, s); !strings.Contains(keys, "k0299") {
				t.Errorf("there is %.100s", keys)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
