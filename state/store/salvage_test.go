package store_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"runner.example/state/store"
)

// filesBelow returns the files below dir with their content.
func filesBelow(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func salvage(t testing.TB, dir string) *store.Salvaged {
	t.Helper()
	before := filesBelow(t, dir)
	s, err := store.Salvage(t.Context(), store.SalvageOptions{Dir: dir, Into: filepath.Join(t.TempDir(), "into")})
	if err != nil {
		t.Fatal(err)
	}
	after := filesBelow(t, dir)
	for path, was := range before {
		if after[path] != was {
			t.Errorf("%s was changed", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files before, %d after", len(before), len(after))
	}
	return s
}

// TestSalvageReportsEveryLoss damages stores and compares the salvaged keys with the
// original ones: a wrong key must be doubtful.
func TestSalvageReportsEveryLoss(t *testing.T) {
	sequential(t)
	tries := 25
	if os.Getenv("RUNNER_SOAK") != "" {
		tries = 500
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	// Keys in two tables and in a log, each with the number of the commit that wrote it;
	// some were deleted, one has its value in pieces.
	dir := t.TempDir()
	want := map[string]string{}
	for part := range 3 {
		s, err := store.Open(store.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			update(t, s, func(tx *store.Tx) error {
				for i := range 10 {
					key, value := fmt.Sprintf("k%04d", random.IntN(400)), fmt.Sprintf("%d-%d-%d-%0100d", part, n, i, 0)
					if random.IntN(8) == 0 {
						delete(want, key)
						if err := tx.Delete([]byte(key)); err != nil {
							return err
						}
						continue
					}
					want[key] = value
					if err := tx.Set([]byte(key), []byte(value)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if part == 0 {
			want["long"] = string(bytes.Repeat([]byte("0123456789"), 150_000))
			put(t, s, "long", want["long"])
		}
		if part < 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		killed := t.TempDir() // as a crash leaves it: with a log
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		dir = killed
		for path, content := range filesBelow(t, dir) {
			if filepath.Ext(path) == ".mem" { // 128 MiB, mostly zeros
				if err := os.Truncate(path, int64(len(bytes.TrimRight([]byte(content), "\x00"))+4096)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	compare := func(s *store.Salvaged, what string) (right, doubtful int) {
		t.Helper()
		defer func() {
			if err := s.Store.Close(); err != nil {
				t.Error(err)
			}
		}()
		for i := range 401 {
			key := fmt.Sprintf("k%04d", i)
			if i == 400 {
				key = "long"
			}
			value, there := want[key]
			if !there {
				value = "<none>"
			}
			switch got := read(t, s.Store, key); {
			case s.Doubtful([]byte(key)):
				doubtful++
			case got == value:
				right++
			default:
				t.Errorf("%s: %s is %.40q, was %.40q, and not doubtful: %v", what, key, got, value, s.Losses)
			}
		}
		return right, doubtful
	}
	if right, doubtful := compare(salvage(t, dir), "whole"); right != 401 || doubtful != 0 {
		t.Fatalf("of a whole store %d are right and %d doubtful", right, doubtful)
	}
	var files []string
	for path, content := range filesBelow(t, dir) {
		if ext := filepath.Ext(path); len(content) > 0 && (ext == ".sst" || ext == ".mem" || filepath.Base(path) == "MANIFEST" || filepath.Base(path) == "commit-mark") {
			files = append(files, path)
		}
	}
	allRight, allDoubtful := 0, 0
	for range tries {
		path := files[random.IntN(len(files))]
		content := filesBelow(t, dir)[path]
		size := len(bytes.TrimRight([]byte(content), "\x00")) // a log ends with zeros
		at, n := random.IntN(size), 1+random.IntN(3)*random.IntN(5000)
		damaged := []byte(content)
		for i := at; i < min(at+n, size); i++ {
			damaged[i] ^= byte(1 + random.IntN(255))
		}
		what := fmt.Sprintf("%d bytes from %d of %d of %s", n, at, size, filepath.Base(path))
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s := salvage(t, dir)
		right, doubtful := compare(s, what)
		allRight, allDoubtful = allRight+right, allDoubtful+doubtful
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatal(what)
		}
	}
	t.Logf("%d keys right and %d doubtful in %d tries", allRight, allDoubtful, tries)
}
