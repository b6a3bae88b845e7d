package entity_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// longTexts is a schema of rows with texts that are almost as long as an index permits.
func longTexts(attributes string) string {
	return `app a
entity L {
  id: id
  x: text
  ` + attributes + `
  @@allow all to session
}
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`
}

var reader = &caller.Caller{Kind: caller.Session, UserID: "u"}

// fillLong inserts n rows whose texts end with pad, which is escaped for JSON.
func fillLong(h *fixture, n int, pad string) {
	h.t.Helper()
	for i := 0; i < n; i += 15 {
		var rows []string
		for j := range 15 {
			rows = append(rows, fmt.Sprintf(`{"x":"%06d%s"}`, i+j, pad))
		}
		h.must(reader, "insert", `{"into":"L","values":[`+strings.Join(rows, ",")+`]}`)
	}
}

func TestAUniqueIndexOverLongTextsCanBeAddedAndRemoved(t *testing.T) {
	sequential(t)
	h := newFixture(t, longTexts(""))
	fillLong(h, 1005, strings.Repeat("p", 15000))
	for _, attributes := range []string{"@@unique(x)", ""} {
		if err := h.activate(longTexts(attributes)); err != nil {
			t.Fatalf("with %q: %v", attributes, err)
		}
		if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
			t.Fatalf("with %q: %v", attributes, err)
		}
		h.verify()
	}
}

// A NUL takes two bytes in an entry: the entries are longer than the rows.
func TestAnIndexLargerThanItsRowsIsBuilt(t *testing.T) {
	sequential(t)
	h := newFixture(t, longTexts(""))
	fillLong(h, 600, strings.Repeat(`\u0000`, 8000))
	if err := h.activate(longTexts("@@index(x)")); err != nil {
		t.Fatal(err)
	}
	if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
}

// A stopped activation leaves more than one transaction can remove.
func TestAStoppedActivationDoesNotBlockWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	h := newFixture(t, longTexts(""))
	fillLong(h, 1500, strings.Repeat("p", 15000))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	entries := 0
	stop := h.store.OnApply([]byte("entity/i"), func(store.Seq, store.Change) {
		if entries++; entries == 1200 {
			cancel()
		}
	})
	sources := []diag.Source{{Name: "app.schema", Text: []byte(longTexts("@@unique(x)"))}}
	s, list := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatal(list)
	}
	_, err := entity.Activate(ctx, h.store, s, sources, entity.Options{})
	stop()
	if err == nil {
		t.Fatal("the activation was not stopped")
	}
	for _, attributes := range []string{"", "@@unique(x)"} {
		if err := h.activate(longTexts(attributes)); err != nil {
			t.Fatalf("with %q: %v", attributes, err)
		}
	}
}

// Rows written during the build of a unique index are included, however long their texts
// are, also if they replace others.
func TestLongRowsWrittenDuringAnActivationAreIncluded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	h := newFixture(t, longTexts(""))
	pad := strings.Repeat("p", 15000)
	fillLong(h, 600, pad)
	model := h.model
	written := make(chan error, 1)
	go func() {
		written <- func() error {
			for i := range 40 {
				_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
					var a entity.Access
					a.Reset(model, tx, reader, 100_000)
					var rows []string
					for j := range 15 {
						rows = append(rows, fmt.Sprintf(`{"x":"w%06d%s"}`, i*15+j, pad))
					}
					return a.Do("insert", []byte(`{"into":"L","values":[`+strings.Join(rows, ",")+`]}`), new(entity.Result))
				})
				if err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	if err := h.activate(longTexts("@@unique(x)")); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil && !errors.Is(err, entity.ErrOutdated) {
		t.Fatal(err)
	}
}
