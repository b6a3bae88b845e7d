package entity_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// with returns a schema of one entity with these fields and attributes.
func with(fields string) string {
	return `
auth { session cookie { idle: 30m } tenant: Org }
enum Kind { small, large }
entity Org { id: id
  @@allow read to session }
entity Item {
  id: id
  ` + fields + `
  @@allow all to session
}`
}

// refusals returns the diagnostics of a refused activation; nil if it succeeds.
func (h *fixture) refusals(text string) diag.List {
	h.t.Helper()
	return h.refusalsOf(h.activate(text))
}

// refusalsOf returns the diagnostics of an activation's error.
func (h *fixture) refusalsOf(err error) diag.List {
	h.t.Helper()
	var refused *catalog.ChangeError
	if err != nil && !errors.As(err, &refused) {
		h.t.Fatal(err)
	}
	if refused == nil {
		return nil
	}
	if refused.Error() == "" {
		h.t.Error("the error has no text")
	}
	return refused.List
}

func TestASchemaThatRowsViolateIsRefused(t *testing.T) {
	const before = `name: string(1..20)
  size: int?
  kind: Kind = small`
	cases := []struct {
		name, fields string
		code         string
		words        []string
	}{
		{"removed field", "name: string(1..20)\n kind: Kind = small", "E601", []string{"Item.size was removed"}},
		{"retyped field", "name: string(1..20)\n size: text?\n kind: Kind = small", "E601", []string{"type of Item.size was int"}},
		{"field that became a list", "name: string(1..20)[]\n size: int?\n kind: Kind = small", "E601", []string{"Item.name"}},
		{"new required field", before + "\n more: int", "E602", []string{"Item.more", "default"}},
		{"optional field that became required", "name: string(1..20)\n size: int\n kind: Kind = small", "E602", []string{"Item.size", "ROW"}},
		{"unique field with duplicates", before + "\n @@unique(kind)", "E603", []string{"ROW", "kind"}},
		{"new tenant", before + "\n org: Org @tenant", "E604", []string{"Item.org"}},
		{"shorter text", "name: string(1..3)\n size: int?\n kind: Kind = small", "E606", []string{"Item.name", "ROW", "at most 3 characters"}},
		{"longer text", "name: string(7..20)\n size: int?\n kind: Kind = small", "E606", []string{"Item.name", "ROW", "at least 7 characters"}},
		{"new pattern", "name: string(1..20) @pattern(\"^[a-z]+$\")\n size: int?\n kind: Kind = small", "E606", []string{"Item.name", "ROW", "must match"}},
		{"higher minimum", "name: string(1..20)\n size: int? @min(1000)\n kind: Kind = small", "E606", []string{"Item.size", "ROW", "at least 1000"}},
		{"lower maximum", "name: string(1..20)\n size: int(0..10)?\n kind: Kind = small", "E606", []string{"Item.size", "ROW", "at most 10"}},
		{"removed enum value", "name: string(1..20)\n size: int?\n kind: Other = tiny", "E605", []string{`"small"`, "Item.kind", "ROW"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newFixture(t, with(before))
			id := h.insert(clerk, "Item", `{"name":"Lamp 1","size":20}`)
			other := h.insert(clerk, "Item", `{"name":"b"}`)
			model := h.model
			text := strings.Replace(with(c.fields), "enum Kind", "enum Other { tiny }\nenum Kind", 1)

			s, list := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
			if s == nil {
				t.Fatal(list)
			}
			asked, err := catalog.Compare(context.Background(), h.store, s)
			if err != nil {
				t.Fatal(err)
			}
			got := h.refusals(text)
			if len(got) == 0 {
				t.Fatal("it was not refused")
			}
			if fmt.Sprint(asked.Sorted()) != fmt.Sprint(got.Sorted()) {
				t.Errorf("Compare says %v, Activate %v", asked, got)
			}
			for _, d := range got {
				if d.Code != c.code || d.Span.File != "app.schema" {
					t.Errorf("got %v, want %s", d, c.code)
				}
				for _, word := range c.words {
					if word == "ROW" && !strings.Contains(d.Message, id) && !strings.Contains(d.Message, other) {
						t.Errorf("%q does not name a row", d.Message)
					}
					if word != "ROW" && !strings.Contains(d.Message, word) {
						t.Errorf("%q does not contain %q", d.Message, word)
					}
				}
			}
			if h.model != model {
				t.Error("the model was changed")
			}
			if got := h.must(clerk, "count", `{"from":"Item"}`); got != `{"count":2}` { // the old model still serves
				t.Errorf("got %s", got)
			}
			for _, id := range []string{id, other} {
				h.must(operator, "delete", fmt.Sprintf(`{"from":"Item","where":[["id","=",%q]]}`, id))
			}
			if got := h.refusals(text); got != nil {
				t.Errorf("without rows it is refused: %v", got)
			}
		})
	}
}

func TestARemovedEntityWithRowsIsRefused(t *testing.T) {
	h := newFixture(t, shop)
	h.insert(clerk, "Partner", `{"code":"a"}`)
	other := with("name: text")
	got := h.refusals(other)
	if len(got) != 1 || got[0].Code != "E601" || !strings.Contains(got[0].Message, "Partner") {
		t.Fatalf("got %v", got)
	}
	h.must(clerk, "delete", `{"from":"Partner","where":[]}`)
	if got := h.refusals(other); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestUntypedRowsAreNotReadAsDeclaredOnes(t *testing.T) {
	const grants = `apiKeys { scopes: { s: @system("s") { @grant read on Item } } }`
	h := newFixture(t, `auth { session cookie { idle: 30m } }`+grants)
	h.insert(clerk, "Item", `{"a":1}`)
	got := h.refusals(with("name: text?"))
	if len(got) != 1 || got[0].Code != "E601" {
		t.Fatalf("got %v", got)
	}
	if got := h.refusals(`auth { session cookie { idle: 30m } }`); got != nil {
		t.Errorf("a grant taken away: %v", got)
	}
	if err := h.activate(`auth { session cookie { idle: 30m } }` + grants); err != nil {
		t.Fatal(err)
	}
	if got := h.must(clerk, "count", `{"from":"Item"}`); got != `{"count":1}` {
		t.Errorf("after the grant is back: %s", got)
	}
}

func TestRowsWrittenBeforeAFieldKeepItsFirstDefault(t *testing.T) {
	h := newFixture(t, with("name: text"))
	id := h.insert(clerk, "Item", `{"name":"old"}`)
	if err := h.activate(with("name: text\n size: int = 1\n note: text?\n seen: time = now\n madeAt: time @created")); err != nil {
		t.Fatal(err)
	}
	row := h.rows(clerk, `{"from":"Item"}`)[0]
	if row["size"] != 1.0 || row["note"] != nil || row["seen"] == nil || row["madeAt"] == nil {
		t.Errorf("got %v", row)
	}
	if err := h.activate(with("name: text\n size: int = 2 @index\n note: text? = \"x\"\n seen: time = now\n madeAt: time @created")); err != nil {
		t.Fatal(err)
	}
	h.insert(clerk, "Item", `{"name":"new"}`)
	if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]string{1: "old", 2: "new"} {
		got := h.rows(clerk, fmt.Sprintf(`{"from":"Item","where":[["size","=",%d]]}`, size))
		if len(got) != 1 || got[0]["name"] != want {
			t.Errorf("size %d: %v, want %s", size, got, want)
		}
	}
	again := h.rows(clerk, fmt.Sprintf(`{"from":"Item","where":[["id","=",%q]]}`, id))[0]
	if again["seen"] != row["seen"] || again["note"] != nil {
		t.Errorf("the old row was %v and is %v", row, again)
	}
	h.must(clerk, "update", fmt.Sprintf(`{"in":"Item","set":{"name":"older"},"where":[["id","=",%q]]}`, id))
	h.verify()
	if again := h.rows(clerk, `{"from":"Item","where":[["size","=",1]]}`)[0]; again["name"] != "older" {
		t.Errorf("got %v", again)
	}
}

// Nothing is left of an index that was dropped before it was built, or afterwards.
func TestAnIndexThatIsDroppedLeavesNothing(t *testing.T) {
	left := func(h *fixture) (all []string) {
		err := h.store.View(context.Background(), func(tx *store.Tx) error {
			for _, space := range []string{layout.SpaceUnbuilt, layout.SpaceDropped, layout.SpaceEntries} {
				for item, err := range tx.Scan([]byte(space), nil, false) {
					if err != nil {
						return err
					}
					all = append(all, string(item.Key))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, built := range []bool{false, true} {
		h := newFixture(t, with("name: text"))
		h.insert(clerk, "Item", `{"name":"a"}`)
		h.buildIndexes()
		before := left(h)
		h.mustActivate(with("name: text @index"))
		if built {
			h.buildIndexes()
		}
		if after := left(h); len(after) != len(before)+1 {
			t.Errorf("built %v: with the index there are %q, and %q before", built, after, before)
		}
		h.mustActivate(with("name: text"))
		h.buildIndexes() // it deletes entries too
		if after := left(h); !slices.Equal(after, before) {
			t.Errorf("built %v: %q are left, and %q were there before", built, after, before)
		}
	}
}

func TestAListHasItsDefaultInOldAndNewRows(t *testing.T) {
	h := newFixture(t, with("name: text"))
	h.insert(clerk, "Item", `{"name":"old"}`)
	if err := h.activate(with("name: text\n tags: string(1..8)[] = [\"a\", \"b\"]\n sizes: int[] = []")); err != nil {
		t.Fatal(err)
	}
	h.insert(clerk, "Item", `{"name":"new"}`)
	h.insert(clerk, "Item", `{"name":"given","tags":[],"sizes":[1]}`)
	h.verify()
	want := `{"rows":[{"tags":["a","b"],"sizes":[]},{"tags":["a","b"],"sizes":[]},{"tags":[],"sizes":[1]}],"nextCursor":null}`
	if got := h.must(clerk, "query", `{"from":"Item","select":["tags","sizes"],"orderBy":[["name","desc"]]}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheSameSchemaAgainChangesNothing(t *testing.T) {
	h := newFixture(t, shop)
	first := h.model
	if err := h.activate("// another comment\n" + shop); err != nil {
		t.Fatal(err)
	}
	h.model = first // and continues to serve
	h.insert(clerk, "Partner", `{"code":"a"}`)
}

func TestANewIndexIsUsedOnceItIsBuilt(t *testing.T) {
	h := newFixture(t, with("name: text\n size: int"))
	const rows = 2500
	for from := 0; from < rows; from += 500 {
		var values []string
		for i := range 500 {
			values = append(values, fmt.Sprintf(`{"name":"n","size":%d}`, (from+i)%50))
		}
		h.must(clerk, "insert", `{"into":"Item","values":[`+strings.Join(values, ",")+`]}`)
	}
	if err := h.activate(with("name: text\n size: int @index")); err != nil {
		t.Fatal(err)
	}
	touched := func() int {
		var a entity.Access
		err := h.in(clerk, func(in *entity.Access) error {
			var out entity.Result
			err := in.Do("count", []byte(`{"from":"Item","where":[["size","=",7]]}`), &out)
			if string(out.JSON) != `{"count":50}` {
				t.Errorf("got %s", out.JSON)
			}
			a = *in
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return a.Touched()
	}
	if got := touched(); got != rows {
		t.Errorf("before it is built %d rows are touched, want %d", got, rows)
	}
	id := h.insert(clerk, "Item", `{"name":"n","size":8}`) // and is added to the index at once
	h.verify()
	var steps []catalog.Progress
	if err := h.model.BuildIndexes(context.Background(), func(p catalog.Progress) { steps = append(steps, p) }); err != nil {
		t.Fatal(err)
	}
	last := steps[len(steps)-1]
	if len(steps) < 3 || !last.Done || last.Rows != rows+1 || last.Total != rows+1 || last.Entity != "Item" || last.Fields != "size" {
		t.Errorf("got the steps %+v", steps)
	}
	if got := touched(); got != 50 {
		t.Errorf("once it is built %d rows are touched, want 50", got)
	}
	h.verify()
	if got := h.rows(clerk, fmt.Sprintf(`{"from":"Item","where":[["size","=",8],["id","=",%q]]}`, id)); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if err := h.activate(with("name: text\n size: int")); err != nil { // the index is dropped
		t.Fatal(err)
	}
	if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	h.verify()
}

func TestAStoppedIndexBuildContinuesWhereItStopped(t *testing.T) {
	h := newFixture(t, with("size: int"))
	for range 5 {
		h.must(clerk, "insert", `{"into":"Item","values":[`+strings.TrimSuffix(strings.Repeat(`{"size":1},`, 500), ",")+`]}`)
	}
	text := with("size: int @index")
	if err := h.activate(text); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := h.model.BuildIndexes(ctx, func(catalog.Progress) { cancel() }); err == nil {
		t.Fatal("the build was not stopped")
	}
	if err := h.activate(text); err != nil { // as after a restart
		t.Fatal(err)
	}
	entered := 0
	if err := h.model.BuildIndexes(context.Background(), func(p catalog.Progress) { entered = p.Rows }); err != nil {
		t.Fatal(err)
	}
	if entered != 1500 {
		t.Errorf("%d rows were added, want the remaining 1500", entered)
	}
	h.verify()
}

func TestRowsWrittenDuringAnIndexBuildAreInTheIndex(t *testing.T) {
	for _, unique := range []bool{false, true} {
		t.Run(fmt.Sprint("unique ", unique), func(t *testing.T) {
			h := newFixture(t, with("name: text\n size: int"))
			var ids []string
			for i := range 1500 {
				ids = append(ids, h.insert(clerk, "Item", fmt.Sprintf(`{"name":"n%d","size":%d}`, i, i)))
			}
			old := h.model
			var writers sync.WaitGroup
			stop := make(chan struct{})
			for w := range 3 {
				writers.Go(func() {
					for i := w; ; i += 3 {
						select {
						case <-stop:
							return
						default:
						}
						id := ids[i*7%len(ids)]
						op, args := "update", fmt.Sprintf(`{"in":"Item","set":{"size":%d},"where":[["id","=",%q]]}`, 10_000+i, id)
						switch i % 4 {
						case 0:
							op, args = "insert", fmt.Sprintf(`{"into":"Item","values":{"name":"w","size":%d}}`, 1_000_000_000+i)
						case 1:
							op, args = "delete", fmt.Sprintf(`{"from":"Item","where":[["id","=",%q]]}`, id)
						}
						_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
							var a entity.Access
							a.Reset(old, tx, clerk, 100_000)
							return a.Do(op, []byte(args), &entity.Result{})
						})
						if code := fault.CodeOf(err); err != nil && code != fault.Conflict && !errors.Is(err, entity.ErrOutdated) {
							t.Error(err)
							return
						}
					}
				})
			}
			attribute := "size: int @index"
			if unique {
				attribute = "size: int @unique"
			}
			err := h.activate(with("name: text\n " + attribute))
			close(stop)
			writers.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if err := h.model.BuildIndexes(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			h.verify()
			var sizes []float64
			for _, row := range h.rows(clerk, `{"from":"Item","orderBy":[["size","asc"]],"limit":1000}`) {
				sizes = append(sizes, row["size"].(float64))
			}
			if !slices.IsSorted(sizes) {
				t.Error("the rows are not in the order of the index")
			}
		})
	}
}

func TestAnInterruptedActivationLeavesNothing(t *testing.T) {
	for _, at := range []string{"entity/next", "entity/i", "entity/generation"} {
		t.Run(at, func(t *testing.T) {
			h := newFixture(t, with("size: int"))
			for i := range 1200 {
				h.insert(clerk, "Item", fmt.Sprintf(`{"size":%d}`, i))
			}
			text := with("size: int @unique")
			ctx, cancel := context.WithCancel(context.Background())
			stop := h.store.OnApply([]byte(at), func(store.Seq, store.Change) { cancelAndYield(cancel) })
			s, _ := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
			_, err := entity.Activate(ctx, h.store, s, nil, entity.Options{})
			stop()
			if err == nil {
				t.Fatal("the activation was not interrupted")
			}
			h.verify()
			h.insert(clerk, "Item", `{"size":1}`) // which the unique field would have rejected
			if got := h.refusals(text); len(got) != 1 || got[0].Code != "E603" {
				t.Fatalf("got %v", got)
			}
			h.must(clerk, "delete", `{"from":"Item","where":[["size","=",1]]}`)
			if err := h.activate(text); err != nil {
				t.Fatal(err)
			}
			h.fails(clerk, fault.Conflict, "insert", `{"into":"Item","values":{"size":2}}`, "size")
		})
	}
}

// cancelAndYield cancels the context while a commit is being applied, and gives the waiter
// time to see the end of its context before it learns of the commit.
func cancelAndYield(cancel func()) {
	cancel()
	for range 1000 {
		runtime.Gosched()
	}
}

func TestAnActivationCancelledDuringItsCommitSucceeds(t *testing.T) {
	h := newFixture(t, with("size: int"))
	h.insert(clerk, "Item", `{"size":1}`)
	s, _ := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(with("size: int @unique"))}}, compiler.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	stop := h.store.OnApply([]byte("entity/catalog"), func(store.Seq, store.Change) { cancelAndYield(cancel) })
	model, err := entity.Activate(ctx, h.store, s, nil, entity.Options{})
	stop()
	if err != nil || ctx.Err() == nil {
		t.Fatalf("%v, and its context: %v", err, ctx.Err())
	}
	if _, err := h.do(clerk, "insert", `{"into":"Item","values":{"size":1}}`); !errors.Is(err, entity.ErrOutdated) {
		t.Errorf("for the earlier schema: got %v, want ErrOutdated", err)
	}
	h.model = model
	h.verify()
	h.fails(clerk, fault.Conflict, "insert", `{"into":"Item","values":{"size":1}}`, "size")
}

// The pointer to the active release is written by Also: if its commit counts, so must the activation.
func TestAnActivationOfTheSameSchemaCancelledDuringItsCommitSucceeds(t *testing.T) {
	text := with("size: int")
	h := newFixture(t, text)
	s, _ := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	stop := h.store.OnApply([]byte("release/active"), func(store.Seq, store.Change) { cancelAndYield(cancel) })
	_, err := entity.Activate(ctx, h.store, s, nil, entity.Options{Also: func(tx *store.Tx) error {
		return tx.Set([]byte("release/active"), []byte("{}"))
	}})
	stop()
	if err != nil || ctx.Err() == nil {
		t.Fatalf("%v, and its context: %v", err, ctx.Err())
	}
	// Before its commit it is cancelled, and writes nothing.
	_, err = entity.Activate(ctx, h.store, s, nil, entity.Options{Also: func(*store.Tx) error {
		t.Error("a change after the end of the context")
		return nil
	}})
	if err == nil {
		t.Error("an activation succeeded after the end of its context")
	}
}

func TestAStartUnfreezesRowsOfAKilledActivation(t *testing.T) {
	h := newFixture(t, with("size: int"))
	h.insert(clerk, "Item", `{"size":1}`)
	_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
		generation, err := tx.Get([]byte("entity/generation"))
		if err != nil {
			return err
		}
		generation[0] |= 1 << 7
		return tx.Set([]byte("entity/generation"), generation)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.do(clerk, "count", `{"from":"Item"}`); !errors.Is(err, entity.ErrOutdated) {
		t.Errorf("while frozen: got %v, want ErrOutdated", err)
	}
	if err := h.activate(with("size: int")); err != nil {
		t.Fatal(err)
	}
	h.insert(clerk, "Item", `{"size":2}`)
}

// A writer of the wider release inserts a long name while narrower bounds are activated: the change is
// refused with that row, or the insert fails because the schema has changed.
func TestNarrowerBoundsAreCheckedBesideWriters(t *testing.T) {
	h := newFixture(t, with("name: string(1..20)"))
	d := newDice(newSeed(t), 0)
	outcomes := map[string]int{}
	for round := range 30 {
		before := h.model
		long, begin := d.IntN(40), d.IntN(40)
		started, written := make(chan bool), make(chan bool, 1)
		go func() {
			defer close(written)
			for i := range 40 {
				if i == begin {
					close(started)
				}
				name := "short"
				if i == long {
					name = "much too long"
				}
				_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
					var a entity.Access
					a.Reset(before, tx, clerk, 100_000)
					return a.Do("insert", fmt.Appendf(nil, `{"into":"Item","values":{"name":%q}}`, name), nil)
				})
				if err != nil && !errors.Is(err, entity.ErrOutdated) {
					t.Errorf("round %d: %v", round, err)
				}
				if err == nil && i == long {
					written <- true
				}
			}
		}()
		<-started
		list := h.refusals(with("name: string(1..10)"))
		isWritten := <-written
		for range written {
		}
		tooLong := len(h.rows(clerk, `{"from":"Item","where":[["name","startsWith","much"]]}`))
		switch {
		case len(list) == 0 && (isWritten || tooLong > 0):
			t.Errorf("round %d: the narrower schema is active, and a row violates it", round)
		case len(list) == 0:
			outcomes["activated"]++
		case list[0].Code != "E606" || !isWritten || tooLong != 1:
			t.Errorf("round %d: %v, written %v", round, list, isWritten)
		default:
			outcomes["refused"]++
		}
		h.must(clerk, "delete", `{"from":"Item","where":[]}`)
		h.mustActivate(with("name: string(1..20)"))
	}
	t.Log(outcomes)
}
