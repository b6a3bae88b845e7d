package files_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/ids"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/store"
	"runner.example/tests/harness"
)

const shotSchema = `
entity Shot {
  id: id
  title: string
  picture: file
  @@allow read, write to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  GET /shots/:id/picture -> file(Shot.picture)
}
`

// unnamedShots is how many files the sweep of a large store has to delete.
const unnamedShots = 100

// fillShots writes rows with files of their own into the data directory of an app that is not served. It returns the names of
// files without rows.
func fillShots(t *testing.T, dir string, rows int) (unnamed []string) {
	t.Helper()
	ctx := t.Context()
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	sources := []diag.Source{{Name: "app.schema", Text: []byte(shotSchema)}}
	compiled, found := compiler.Compile(sources, compiler.Options{})
	if compiled == nil {
		t.Fatal(found)
	}
	model, err := entity.Activate(ctx, st, compiled, sources, entity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var sequence ids.Sequence
	const atOnce = 1000
	for from := 0; from < rows; from += atOnce {
		var contents [][]byte
		var files []schema.File
		known := map[string]schema.File{}
		for i := from; i < min(from+atOnce, rows); i++ {
			text := fmt.Appendf(nil, "the picture of the row %d", i)
			id, err := sequence.Next(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			f := schema.File{ID: id, Name: "picture.txt", Type: "text/plain", Size: int64(len(text)), SHA256: sha256.Sum256(text)}
			contents, files, known[id] = append(contents, text), append(files, f), f
		}
		if err := st.PutBlobs(ctx, contents); err != nil {
			t.Fatal(err)
		}
		_, err := st.Update(ctx, func(tx *store.Tx) error {
			a := new(entity.Access)
			a.Reset(model, tx, &caller.Caller{Kind: caller.Anonymous}, 10*atOnce)
			a.FileOf = func(id string) (schema.File, bool) { f, ok := known[id]; return f, ok }
			for i, f := range files {
				row, err := json.Marshal(map[string]any{"into": "Shot", "values": map[string]any{"title": fmt.Sprint("shot ", from+i), "picture": map[string]any{"id": f.ID}}})
				if err != nil {
					return err
				}
				if err := a.Do("insert", row, &entity.Result{}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var contents [][]byte
	for i := range unnamedShots {
		text := fmt.Sprint("a picture without a row: ", i)
		contents, unnamed = append(contents, []byte(text)), append(unnamed, digestOf(text))
	}
	if err := st.PutBlobs(ctx, contents); err != nil {
		t.Fatal(err)
	}
	return unnamed
}

// cost is the time of an act of the server, and the most memory that it has while it does it.
type cost struct {
	took time.Duration
	peak int64
}

// costs are those of a server with a number of rows that have files: to start, to sweep and to write a backup.
type costs struct{ start, sweep, backup cost }

// costsOf measures a server with so many rows.
func costsOf(t *testing.T, rows int) (c costs) {
	t.Helper()
	a := harness.NewApp(t, shotSchema, "")
	a.Serve().Stop() // stores the release
	began := time.Now()
	unnamed := fillShots(t, a.Path("data"), rows)
	t.Logf("%d rows are written in %s", rows, time.Since(began).Round(time.Millisecond))
	age(t, a.Path("data/blobs")) // the sweep looks at all of them

	began = time.Now()
	s := a.Serve()
	c.start = cost{time.Since(began), s.Resources().PeakBytes}
	s.WaitUntil("the sweep", func() bool {
		return !slices.ContainsFunc(unnamed, func(name string) bool {
			_, err := os.Stat(a.Path("data/blobs/" + name))
			return !errors.Is(err, fs.ErrNotExist)
		})
	})
	c.sweep = cost{time.Since(began) - c.start.took, s.Resources().PeakBytes}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.Cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "all.backup")
	began = time.Now()
	a.Must("backup", file)
	c.backup = cost{time.Since(began), s.Resources().PeakBytes}
	s.Stop()
	return c
}

// TestRowsWithFilesCostTimeInProportionAndNoMemory compares servers with few and with many rows.
func TestRowsWithFilesCostTimeInProportionAndNoMemory(t *testing.T) {
	if !harness.Soak {
		t.Skip("RUNNER_SOAK is not set: stores 110,000 files")
	}
	const few, factor = 10_000, 10
	small, large := costsOf(t, few), costsOf(t, few*factor)
	for _, part := range []struct {
		what         string
		small, large cost
	}{{"start", small.start, large.start}, {"sweep", small.sweep, large.sweep}, {"backup", small.backup, large.backup}} {
		t.Logf("%s: %d rows %s and %d MiB, %d rows %s and %d MiB", part.what, few, part.small.took.Round(time.Millisecond), part.small.peak>>20,
			few*factor, part.large.took.Round(time.Millisecond), part.large.peak>>20)
		if most := 2*factor*part.small.took + 2*time.Second; part.large.took > most {
			t.Errorf("%s: ten times the rows take %s, more than %s", part.what, part.large.took, most)
		}
		if grown := part.large.peak - part.small.peak; grown > 96<<20 {
			t.Errorf("%s: ten times the rows take %d MiB more", part.what, grown>>20)
		}
	}
}
