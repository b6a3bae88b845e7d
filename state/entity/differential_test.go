package entity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// long reports whether the long forms of tests are requested.
func long() bool { return os.Getenv("RUNNER_SOAK") != "" }

// rig is a store with an active schema, and a clock that the test sets.
type rig struct {
	testing.TB
	store *store.Store
	model *entity.Model
	now   time.Time
}

var system = &caller.Caller{Kind: caller.System}

func compileText(t testing.TB, text string) (*schema.Schema, []diag.Source) {
	t.Helper()
	sources := []diag.Source{{Name: "app.schema", Text: []byte(text)}}
	s, found := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		t.Fatalf("%v in\n%s", found, text)
	}
	return s, sources
}

func newRig(t testing.TB, text string) *rig {
	t.Helper()
	r := &rig{TB: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	st, err := store.Open(store.Options{Clock: func() time.Time { return r.now }})
	if err != nil {
		t.Fatal(err)
	}
	r.store = st
	r.activate(text)
	return r
}

// activate activates a schema and builds its indexes.
func (r *rig) activate(text string) {
	r.Helper()
	s, sources := compileText(r, text)
	var err error
	if r.model, err = entity.Activate(context.Background(), r.store, s, sources, entity.Options{CursorKey: [32]byte{1, 2, 3}}); err != nil {
		r.Fatalf("%v in\n%s", err, text)
	}
	if err := r.model.BuildIndexes(context.Background(), func(catalog.Progress) {}); err != nil {
		r.Fatal(err)
	}
}

// close checks the store and closes it.
func (r *rig) close() {
	r.Helper()
	if err := catalog.Verify(context.Background(), r.store); err != nil {
		r.Error(err)
	}
	if err := r.store.Close(); err != nil {
		r.Error(err)
	}
}

// answer is the outcome of a call: its result, or its fault.
type answer struct {
	result map[string]any
	code   fault.Code
	detail string
}

func (a answer) String() string {
	if a.code != "" {
		return string(a.code) + ": " + a.detail
	}
	encoded, _ := json.Marshal(a.result)
	return string(encoded)
}

// call runs one operation.
func call(t testing.TB, a *entity.Access, op string, args any) answer {
	t.Helper()
	encoded, ok := args.([]byte)
	if !ok {
		var err error
		if encoded, err = json.Marshal(args); err != nil {
			t.Fatal(err)
		}
	}
	var out entity.Result
	if err := a.Do(op, encoded, &out); err != nil {
		f := fault.Of(err)
		if f.Code == fault.Internal {
			t.Errorf("%s %s: internal fault %v", op, encoded, err)
		}
		return answer{code: f.Code, detail: f.Detail}
	}
	var result map[string]any
	if err := json.Unmarshal(out.JSON, &result); err != nil {
		t.Fatalf("%s %s answers %q: %v", op, encoded, out.JSON, err)
	}
	checkSpans(t, &out, result)
	return answer{result: result}
}

// checkSpans checks the positions of the rows in a result.
func checkSpans(t testing.TB, out *entity.Result, result map[string]any) {
	t.Helper()
	same := func(what string, span [2]int, want any, there bool) {
		if !there {
			if span != [2]int{} {
				t.Errorf("%s: span %v of %s for %s", out.JSON, span, out.JSON[span[0]:span[1]], what)
			}
			return
		}
		var got any
		if err := json.Unmarshal(out.JSON[span[0]:span[1]], &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: span %v for %s is %s", out.JSON, span, what, out.JSON[span[0]:span[1]])
		}
	}
	rows, many := result["rows"].([]any)
	same("rows", out.Rows, result["rows"], many)
	row, one := result["row"]
	if len(rows) > 0 {
		row, one = rows[0], true
	}
	same("row", out.Row, row, one)
}

// update runs fn as a request of the caller and commits.
func (r *rig) update(who *caller.Caller, fn func(*entity.Access)) {
	r.Helper()
	r.now = r.now.Add(time.Second)
	_, err := r.store.Update(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(r.model, tx, who, 100_000)
		fn(&a)
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// do runs one operation as its own request.
func (r *rig) do(who *caller.Caller, op string, args any) (got answer) {
	r.Helper()
	r.update(who, func(a *entity.Access) { got = call(r, a, op, args) })
	return got
}

// must runs one operation that must succeed.
func (r *rig) must(who *caller.Caller, op string, args any) map[string]any {
	r.Helper()
	got := r.do(who, op, args)
	if got.code != "" {
		encoded, _ := json.Marshal(args)
		r.Fatalf("%s %s: %v", op, encoded, got)
	}
	return got.result
}

// insert inserts one row as an operator and returns its id.
func (r *rig) insert(name string, values map[string]any) string {
	r.Helper()
	rows := r.must(system, "insert", map[string]any{"into": name, "values": values})["rows"].([]any)
	return rows[0].(map[string]any)["id"].(string)
}

// ---- engine and reference ----

type twin struct {
	*rig
	app *refApp
	db  refDB
	// history lists the operations, for the message of a failure.
	history []string
	// agreed counts operations by their answers.
	agreed map[string]int
}

var errGivenUp = errors.New("given up")

// TestTheEngineAgreesWithTheReference runs random programs of random callers on random
// schemas. Every result, fault, order and count, each page of a query, and the remaining
// rows are those of the reference.
func TestTheEngineAgreesWithTheReference(t *testing.T) {
	seed := newSeed(t)
	agreed := map[string]int{}
	started := time.Now()
	schemas, limit := 1_000_000, 5*time.Second
	switch {
	case long():
		limit = 3 * time.Minute
	case testing.Short():
		limit = time.Second
	}
	done := 0
	for i := range schemas {
		if time.Since(started) > limit || t.Failed() {
			break
		}
		runTwin(t, newDice(seed, uint64(i)), agreed)
		done++
	}
	t.Logf("%d schemas; answers: %v", done, agreed)
	if t.Failed() || done < 10 { // a few programs may by chance not cover everything
		return
	}
	for _, op := range []string{"insert", "update", "delete", "get", "query", "count", "include", "aggregate"} {
		if long() && agreed[op+" ok"] < done/4 {
			t.Errorf("only %d of %s succeeded: the programs cover too little", agreed[op+" ok"], op)
		}
	}
	for _, code := range []fault.Code{fault.Denied, fault.Invalid, fault.NotFound, fault.Conflict} {
		if long() && agreed["insert "+string(code)] == 0 {
			t.Errorf("no insert answered %s: the programs cover too little", code)
		}
	}
}

func runTwin(t *testing.T, d dice, agreed map[string]int) {
	app := d.app()
	w := &twin{rig: newRig(t, app.schema()), app: app, db: refDB{}, agreed: agreed}
	defer w.close()
	w.seed(d)
	for range 40 {
		who := (*callerOf)(d.caller()).fit(app)
		if !w.request(d, who, 1+d.IntN(3), d.percent(15)) {
			return
		}
	}
}

// seed inserts rows as an operator.
func (w *twin) seed(d dice) {
	rows := 3
	if d.percent(4) {
		rows = 40 // enough rows for index ranges to matter
	}
	for _, e := range w.app.entities {
		for range rows + d.IntN(4) {
			if !w.requestOf(d, system, []func() operationKind{func() operationKind {
				return operationKind{"insert", map[string]any{"into": e.name, "values": d.row(w.app, e, system, w.ids)}}
			}}, false) {
				return
			}
		}
	}
}

func (w *twin) ids(name string) []string {
	var ids []string
	for id := range w.db[name] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// request runs random operations in one transaction, which is rolled back or committed.
func (w *twin) request(d dice, who *caller.Caller, operations int, abandon bool) bool {
	var makers []func() operationKind
	for range operations {
		makers = append(makers, func() operationKind { return d.operation(w.app, who, w.ids) })
	}
	return w.requestOf(d, who, makers, abandon)
}

func (w *twin) requestOf(d dice, who *caller.Caller, makers []func() operationKind, abandon bool) bool {
	w.Helper()
	w.now = w.now.Add(time.Duration(1+d.IntN(5000)) * time.Millisecond)
	before := w.db
	ref := &refRun{app: w.app, who: who, now: w.now, db: w.db, mine: map[string]bool{}}
	w.history = append(w.history, fmt.Sprintf("request of %s", describe(who)))
	_, err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(w.model, tx, who, 100_000)
		for _, next := range makers {
			o := next()
			w.step(tx, &a, ref, o)
			w.db = ref.db
			if w.Failed() {
				return errGivenUp
			}
		}
		if abandon {
			return errGivenUp
		}
		return nil
	})
	switch {
	case w.Failed():
	case abandon:
		w.db = before
		w.history = append(w.history, "given up")
		if !errors.Is(err, errGivenUp) {
			w.Error(err)
		}
	case err != nil:
		w.Error(err)
	}
	if !w.Failed() {
		w.compareRows()
	}
	if w.Failed() {
		w.Logf("%s\n%s", w.app.schema(), strings.Join(w.history, "\n"))
		return false
	}
	return true
}

func describe(c *caller.Caller) string {
	return fmt.Sprintf("%s user=%q tenant=%q roles=%v scope=%q as=%q", c.Kind, c.UserID, c.Tenant, c.Roles, c.Scope, c.As)
}

// step runs one operation on both sides and compares the outcomes.
func (w *twin) step(tx *store.Tx, a *entity.Access, ref *refRun, o operationKind) {
	w.Helper()
	w.history = append(w.history, "  "+o.String())
	got := w.pages(a, o)
	var ids []string
	if o.op == "insert" && got.code == "" {
		ids = w.newIDs(tx, o.args)
	}
	want := ref.do(o.op, refArguments(w, o.args), ids)
	w.history = append(w.history, fmt.Sprintf("    -> %v", got))
	outcome := "ok"
	switch {
	case got.code != "" && !slices.Contains(want.faults, got.code):
		w.Errorf("%v\nanswers  %v\nexpected %v %v", o, got, answer{result: want.result}, want.faults)
	case got.code == "" && want.faults != nil:
		w.Errorf("%v\nanswers  %v\nexpected %v", o, got, want.faults)
	case got.code == "" && !reflect.DeepEqual(got.result, want.result):
		w.Errorf("%v\nanswers  %v\nexpected %v", o, got, answer{result: want.result})
	case got.code != "":
		outcome = string(got.code)
		if got.detail == "" {
			w.Errorf("%v: %s without a message", o, got.code)
		}
	}
	w.agreed[o.op+" "+outcome]++
	if o.args["include"] != nil {
		w.agreed["include "+outcome]++
	}
}

// pages reads all pages of a query and joins them; it runs other operations once.
func (w *twin) pages(a *entity.Access, o operationKind) answer {
	w.Helper()
	got := call(w, a, o.op, o.args)
	if o.op != "query" || got.code != "" {
		return got
	}
	limit, ok := o.args["limit"].(int)
	if !ok {
		limit = 100
	}
	args := map[string]any{}
	for name, v := range o.args {
		args[name] = v
	}
	rows := got.result["rows"].([]any)
	for page := got; ; {
		n := len(page.result["rows"].([]any))
		cursor, more := page.result["nextCursor"]
		switch {
		case !more || len(page.result) != 2:
			w.Errorf("%v answers %v", o, page)
			return page
		case cursor == nil:
			return answer{result: map[string]any{"rows": rows}}
		case n != limit:
			w.Errorf("%v: a page of %d rows, but not the last", o, n)
			return page
		}
		args["cursor"] = cursor
		if page = call(w, a, "query", args); page.code != "" {
			w.Errorf("%v: page after %d rows: %v", o, len(rows), page)
			return page
		}
		if len(page.result["rows"].([]any)) == 0 {
			w.Errorf("%v: an empty page after %d rows", o, len(rows))
			return page
		}
		rows = append(rows, page.result["rows"].([]any)...)
	}
}

// refArguments decodes the arguments for the reference, with json.Number.
func refArguments(t testing.TB, args map[string]any) map[string]any {
	encoded, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(encoded)))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// all returns every row of an entity with every field, as an operator sees them.
func (w *twin) all(tx *store.Tx, e *refEntity) []any {
	w.Helper()
	var names []string
	for _, f := range e.stored() {
		names = append(names, f.name)
	}
	var a entity.Access
	a.Reset(w.model, tx, system, 100_000)
	got := call(w, &a, "query", map[string]any{"from": e.name, "select": names, "orderBy": []any{[]any{"id", "asc"}}, "limit": 1000})
	if got.code != "" {
		w.Fatalf("rows of %s: %v", e.name, got)
	}
	return got.result["rows"].([]any)
}

// newIDs returns the ids that the host has just created, in order.
func (w *twin) newIDs(tx *store.Tx, args map[string]any) (ids []string) {
	name := args["into"].(string)
	given := map[string]bool{}
	list, many := args["values"].([]any)
	if !many {
		list = []any{args["values"]}
	}
	for _, v := range list {
		if id, ok := v.(map[string]any)["id"].(string); ok {
			given[id] = true
		}
	}
	for _, row := range w.all(tx, w.app.entity(name)) {
		id := row.(map[string]any)["id"].(string)
		if w.db[name][id] == nil && !given[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// compareRows compares all rows, hidden fields included.
func (w *twin) compareRows() {
	w.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) error {
		for _, e := range w.app.entities {
			got := w.all(tx, e)
			want := []any{}
			for _, id := range w.ids(e.name) {
				want = append(want, map[string]any(w.db[e.name][id]))
			}
			if !reflect.DeepEqual(got, want) {
				w.Errorf("rows of %s\nare      %v\nexpected %v", e.name, answer{result: map[string]any{"rows": got}}, answer{result: map[string]any{"rows": want}})
			}
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
}
