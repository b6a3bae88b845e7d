package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// runOn runs a runtime on each store.
func runOn(t *testing.T, log slog.Handler, nodes ...*store.Store) {
	t.Helper()
	pepper := filepath.Join(t.TempDir(), "pepper")
	for _, st := range nodes {
		storetest.CatchUp(t, st)
		keys, err := keystore.Open(t.Context(), st, keystore.Options{PepperFile: pepper})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := runtime.New(runtime.Options{Store: st, Keystore: keys, Logger: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(rt.Close(), keys.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// records calls a function for each record of the log.
type records struct {
	slog.Handler
	each func(slog.Record)
}

func (h records) Enabled(context.Context, slog.Level) bool { return true }

func (h records) Handle(_ context.Context, r slog.Record) error {
	h.each(r)
	return nil
}

// Until a new owner has ended an interrupted activation, no request can write. So it tries again after
// an error.
func TestANewOwnerTriesAgainToEndAnActivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := storetest.NewLog().Nodes(t, "a", "b")
		b := nodes[1]
		set := func(generation string) {
			if _, err := b.Update(context.Background(), func(tx *store.Tx) error { return tx.Set([]byte(layout.KeyGeneration), []byte(generation)) }); err != nil {
				t.Error(err)
			}
		}
		const frozen, thawed = "\x80\x00\x00\x00\x00\x00\x00\x07", "\x00\x00\x00\x00\x00\x00\x00\x07"
		failed := 0
		log := records{slog.DiscardHandler, func(r slog.Record) {
			if r.Message == "interrupted activation not ended; trying again" {
				if failed++; failed == 2 {
					set(frozen) // now it can be read
				}
			}
		}}
		set("unreadable")
		done := make(chan struct{})
		defer b.OnApply([]byte(layout.KeyGeneration), func(_ store.Seq, c store.Change) {
			if string(c.Value) == thawed {
				close(done)
			}
		})()
		runOn(t, log, b)
		storetest.Own(t, b)
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("writers are still stopped after a minute")
		}
		if failed != 2 {
			t.Errorf("%d errors were logged", failed)
		}
	})
}

// An owner has stopped all writers for the last moment of an activation, and is not the owner any more.
func TestANewOwnerEndsTheActivationOfTheFormerOne(t *testing.T) {
	nodes := storetest.NewLog().Nodes(t, "a", "b", "c")
	a := nodes[0]
	runOn(t, slog.DiscardHandler, nodes...)
	generations := make(chan store.Seq, 100)
	defer nodes[2].OnApply([]byte(layout.KeyGeneration), func(seq store.Seq, _ store.Change) { generations <- seq })()
	activate := func(field string, also func(*store.Tx) error) (*entity.Model, error) {
		sources := []diag.Source{{Name: "app.schema", Text: []byte("auth { session cookie { } }\nentity Item {\n id: id\n name: " + field + "\n @@allow all to session\n}")}}
		s, list := compiler.Compile(sources, compiler.Options{})
		if s == nil {
			t.Fatal(list)
		}
		return entity.Activate(t.Context(), a, s, sources, entity.Options{Also: also})
	}
	model, err := activate("text", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Update(t.Context(), func(tx *store.Tx) error {
		var rows entity.Access
		rows.Reset(model, tx, &caller.Caller{Kind: caller.Session, UserID: "ada"}, 100_000)
		return rows.Do("insert", []byte(`{"into":"Item","values":{"name":"x"}}`), &entity.Result{})
	})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	_, err = activate("text @unique", func(*store.Tx) error {
		if runs++; runs == 1 {
			storetest.Own(t, nodes[1])
		}
		return nil
	})
	if !errors.Is(err, store.ErrNotOwner) {
		t.Fatalf("after %d runs: %v", runs, err)
	}
	<-generations // of the first schema
	<-generations // writers are stopped
	<-generations // and can write again: the new owner has done it
	storetest.CatchUp(t, nodes[2])
	var generation []byte
	err = nodes[2].View(t.Context(), func(tx *store.Tx) (err error) {
		generation, err = tx.Get([]byte(layout.KeyGeneration))
		return err
	})
	if err != nil || len(generation) != 8 || generation[0] != 0 {
		t.Errorf("the generation is %x, %v", generation, err)
	}
}
