package release_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/node/release"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// A file of a row has a time of storing that is long past, and no release names it.
func TestASweepKeepsTheFilesOfRows(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 1})
	add(t, st, r, "one")
	sources := []diag.Source{{Name: "app.schema", Text: []byte("entity Post { id: id photo: file @@allow read to session }")}}
	s, found := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatal(found)
	}
	model, err := entity.Activate(t.Context(), st, s, sources, entity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	content := "the contents of a file"
	digest, err := st.PutBlob(t.Context(), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	file := schema.File{ID: "01j9zzzzzzzzzzzzzzzzzzzzza", Name: "a", Type: "text/plain", Size: int64(len(content)), SHA256: digest}
	do := func(op, args string) {
		t.Helper()
		_, err := st.Update(t.Context(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(model, tx, &caller.Caller{Kind: caller.System}, 1000)
			a.FileOf = func(string) (schema.File, bool) { return file, true }
			return a.Do(op, []byte(args), new(entity.Result))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	sweep := func() error {
		t.Helper()
		if err := r.Sweep(t.Context(), time.Now().Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		_, err := st.StatBlob(digest)
		return err
	}
	do("insert", `{"into":"Post","values":{"photo":{"id":"`+file.ID+`"}}}`)
	if err := sweep(); err != nil {
		t.Errorf("the file of a row, two hours later: %v", err)
	}
	do("delete", `{"from":"Post","where":[]}`)
	if err := sweep(); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the file of a deleted row, two hours later: %v", err)
	}
}
