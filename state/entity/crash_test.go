package entity_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// The environment of a child that crashes: its data directory, and either the step and the
// point at which it kills itself, or the round in which it is killed from outside.
const (
	crashDir   = "ENTITY_CRASH_DIR"
	crashStep  = "ENTITY_CRASH_STEP"
	crashPoint = "ENTITY_CRASH_POINT"
	crashRound = "ENTITY_CRASH_ROUND"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(crashDir)
	switch {
	case dir != "" && os.Getenv(crashFiles) != "":
		crashWithFiles(dir, os.Getenv(crashRound))
	case dir != "" && os.Getenv(crashRound) != "":
		crashUnderLoad(dir, os.Getenv(crashRound))
	case dir != "":
		crashAtStep(dir)
	}
	os.Exit(m.Run())
}

func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

const crashSchema = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  user: User
  tenant: Org
}
entity Org { id: id @@allow read to session }
entity User { id: id @@allow read to session }
entity Batch {
  id: id
  org: Org @tenant
  name: string @unique
  size: int @index
  lines: Line[] @inverse(batch)
  @@index(size desc, name)
  @@allow all to session
}
entity Line {
  id: id
  org: Org @tenant
  batch: Batch @onDelete(cascade)
  other: Batch? @onDelete(clear)
  number: int
  note: string?EXTRA
  @@unique(batch, number)
  @@index(number desc)
  @@allow all to session
}
`

// crashVersions are the schemas that are activated one after the other.
var crashVersions = []string{
	strings.Replace(crashSchema, "EXTRA", "", 1),
	strings.Replace(crashSchema, "EXTRA", " @index\n  weight: int = 1 @index\n  @@index(note, number)\n  @@unique(number, note, batch)", 1),
}

// crashActions are the steps; each is one transaction.
var crashActions = []struct {
	op   string
	args func(have map[string]string) map[string]any
}{
	{"insert", func(map[string]string) map[string]any {
		return map[string]any{"into": "Batch", "values": []any{
			map[string]any{"name": "a", "size": 1}, map[string]any{"name": "b", "size": 2}, map[string]any{"name": "c", "size": 2},
		}}
	}},
	{"insert", func(have map[string]string) map[string]any {
		var lines []any
		for n := range 30 {
			lines = append(lines, map[string]any{"batch": have["a"], "other": have["b"], "number": n, "note": strconv.Itoa(n % 3)})
		}
		return map[string]any{"into": "Line", "values": lines}
	}},
	{"update", func(map[string]string) map[string]any {
		return map[string]any{"in": "Batch", "set": map[string]any{"size": 9}, "where": []any{[]any{"size", "=", 2}}}
	}},
	{"update", func(map[string]string) map[string]any {
		return map[string]any{"in": "Line", "set": map[string]any{"note": nil}, "where": []any{[]any{"number", "<", 20}}}
	}},
	{"update", func(have map[string]string) map[string]any {
		return map[string]any{"in": "Batch", "set": map[string]any{"name": "b2"}, "where": byID(have["b"])}
	}},
	{"delete", func(have map[string]string) map[string]any {
		return map[string]any{"from": "Batch", "where": byID(have["b"])} // clears 30 relations
	}},
	{"delete", func(map[string]string) map[string]any {
		return map[string]any{"from": "Line", "where": []any{[]any{"number", ">=", 25}}}
	}},
	{"activate", nil},
	{"delete", func(have map[string]string) map[string]any {
		return map[string]any{"from": "Batch", "where": byID(have["a"])} // also deletes 25 lines
	}},
}

// crashCounts are the numbers of batches, of lines, of lines that refer to a second batch
// and of those without a note, after each step.
var crashCounts = [][4]int{
	{0, 0, 0, 0}, {3, 0, 0, 0}, {3, 30, 30, 0}, {3, 30, 30, 0}, {3, 30, 30, 20}, {3, 30, 30, 20},
	{2, 30, 0, 20}, {2, 25, 0, 20}, {2, 25, 0, 20}, {1, 0, 0, 0},
}

// The points at which a step is interrupted.
var crashPoints = []string{
	"done",      // the operation has returned, nothing is committed
	"applying",  // the store reports the first key of the commit
	"applied",   // the store reports the last key
	"committed", // the commit has returned
}

// crashAtStep is the main function of a child that kills itself.
func crashAtStep(dir string) {
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	version := 0
	activate := func() *entity.Model {
		sources := []diag.Source{{Name: "app.schema", Text: []byte(crashVersions[version])}}
		s, found := compiler.Compile(sources, compiler.Options{})
		if s == nil {
			panic(found)
		}
		m, err := entity.Activate(context.Background(), st, s, sources, entity.Options{})
		if err != nil {
			panic(err)
		}
		if err := m.BuildIndexes(context.Background(), func(catalog.Progress) {}); err != nil {
			panic(err)
		}
		return m
	}
	model := activate()
	have := map[string]string{}
	for i, step := range crashActions {
		point := ""
		if os.Getenv(crashStep) == fmt.Sprint(i) {
			point = os.Getenv(crashPoint)
		}
		stop := dieApplying(st, point)
		if step.op == "activate" {
			version++
			if point == "done" {
				die()
			}
			model = activate()
		} else if err := crashOperation(st, model, step.op, step.args(have), have, point); err != nil {
			panic(err)
		}
		stop()
		if point == "committed" {
			die()
		}
	}
}

func crashOperation(st *store.Store, model *entity.Model, op string, args map[string]any, have map[string]string, point string) error {
	_, err := st.Update(context.Background(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(model, tx, alice, 100_000)
		got := call(panicking{}, &a, op, args)
		if got.code != "" {
			return fmt.Errorf("%s: %v", op, got)
		}
		if rows, ok := got.result["rows"].([]any); ok {
			for _, row := range rows {
				if name, ok := row.(map[string]any)["name"].(string); ok {
					have[name] = row.(map[string]any)["id"].(string)
				}
			}
		}
		if point == "done" {
			die()
		}
		return nil
	})
	return err
}

// panicking replaces testing.TB in a child.
type panicking struct{ testing.TB }

func (panicking) Helper()                      {}
func (panicking) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (panicking) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (panicking) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }

// dieApplying kills the process while the store reports a commit: at its first key, or
// after the last one.
func dieApplying(st *store.Store, point string) (stop func()) {
	if point != "applying" && point != "applied" {
		return func() {}
	}
	var last store.Seq
	return st.OnApply(nil, func(seq store.Seq, c store.Change) {
		if point == "applying" || last == seq {
			die()
		}
		last = seq
	})
}

// TestCrashPointsOfRows kills a process at every point of every step. The step then has
// happened completely or not at all, and indexes agree with rows.
func TestCrashPointsOfRows(t *testing.T) {
	for i, step := range crashActions {
		for _, point := range crashPoints {
			t.Run(fmt.Sprintf("%d %s/%s", i, step.op, point), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				child := exec.Command(os.Args[0])
				child.Env = append(os.Environ(), crashDir+"="+dir, crashStep+"="+fmt.Sprint(i), crashPoint+"="+point)
				var stderr bytes.Buffer
				child.Stderr = &stderr
				err := child.Run()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || stderr.Len() > 0 { // one that was killed says nothing
					t.Fatalf("the child ended with %v: %s", err, stderr.String())
				}
				done := i + 1
				if point == "done" {
					done = i
				}
				checkSteps(t, dir, done)
			})
		}
	}
}

// checkSteps opens the data of a killed process and checks that exactly this number of
// steps happened.
func checkSteps(t *testing.T, dir string, done int) {
	t.Helper()
	r := openRig(t, dir, crashVersions[min(1, done/8)])
	defer r.close()
	r.activate(crashVersions[min(1, done/8)]) // a second activation changes nothing
	count := func(name string, where ...any) int {
		return int(r.must(system, "count", map[string]any{"from": name, "where": append([]any{}, where...)})["count"].(float64))
	}
	got := [4]int{count("Batch"), count("Line"), count("Line", []any{"other", "!=", nil}), count("Line", []any{"note", "=", nil})}
	if got != crashCounts[done] {
		t.Errorf("after %d steps the rows are %v, want %v", done, got, crashCounts[done])
	}
}

// openRig opens a data directory and activates a schema in it.
func openRig(t testing.TB, dir, text string) *rig {
	t.Helper()
	r := &rig{TB: t, now: time.Now()}
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r.store = st
	r.activate(text)
	return r
}

// ---- killed from outside, under load ----

const crashWriters = 6

// crashUnderLoad is the main function of a child that writes without end, and prints each
// batch after its commit. A batch is a row with as many lines as its size. One of three
// batches is deleted with its lines, another one renamed.
func crashUnderLoad(dir, round string) {
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	sources := []diag.Source{{Name: "app.schema", Text: []byte(crashVersions[0])}}
	s, _ := compiler.Compile(sources, compiler.Options{})
	model, err := entity.Activate(context.Background(), st, s, sources, entity.Options{})
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	var done sync.WaitGroup
	for w := range crashWriters {
		done.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%s-%d-%d", round, w, n)
				if err := crashBatch(st, model, name, 1+n%7, n%3); err != nil {
					if errors.Is(err, store.ErrConflict) {
						continue
					}
					fmt.Println("error", err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println("ack", name, n%3)
				out.Unlock()
			}
		})
	}
	done.Wait()
}

func crashBatch(st *store.Store, model *entity.Model, name string, size, fate int) error {
	in := func(fn func(a *entity.Access)) error {
		_, err := st.Update(context.Background(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(model, tx, alice, 100_000)
			fn(&a)
			return nil
		})
		return err
	}
	must := func(a *entity.Access, op string, args map[string]any) map[string]any {
		got := call(panicking{}, a, op, args)
		if got.code != "" {
			panic(fmt.Sprint(op, got))
		}
		return got.result
	}
	var id string
	err := in(func(a *entity.Access) {
		rows := must(a, "insert", map[string]any{"into": "Batch", "values": map[string]any{"name": name, "size": size}})["rows"].([]any)
		id = rows[0].(map[string]any)["id"].(string)
		var lines []any
		for n := range size {
			lines = append(lines, map[string]any{"batch": id, "number": n, "note": name})
		}
		must(a, "insert", map[string]any{"into": "Line", "values": lines})
	})
	if err != nil {
		return err
	}
	switch fate {
	case 1:
		return in(func(a *entity.Access) {
			must(a, "delete", map[string]any{"from": "Batch", "where": byID(id)})
		})
	case 2:
		return in(func(a *entity.Access) {
			must(a, "update", map[string]any{"in": "Batch", "set": map[string]any{"name": name + "!", "size": size + 100}, "where": byID(id)})
			must(a, "update", map[string]any{"in": "Line", "set": map[string]any{"note": name + "!"}, "where": []any{[]any{"batch", "=", id}}})
		})
	}
	return nil
}

func TestRowsAreWholeWhenTheProcessIsKilledUnderLoad(t *testing.T) {
	seed := newSeed(t)
	d := newDice(seed, 0)
	rounds := 3
	if long() {
		rounds = 60
	}
	dir := t.TempDir()
	acked := map[string]string{} // name: fate
	for round := range rounds {
		after := 1 + d.IntN(150)
		crashAfter(t, dir, round, after, acked)
		checkBatches(t, dir, acked)
		if t.Failed() {
			t.Fatalf("round %d, killed after %d batches", round, after)
		}
	}
}

// crashAfter runs a child, kills it after a number of batches, and records those that it
// printed.
func crashAfter(t *testing.T, dir string, round, after int, acked map[string]string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir, crashRound+"="+strconv.Itoa(round))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // killed; an incomplete line does not count
		}
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "ack" {
			t.Errorf("child says %q", line)
			break
		}
		acked[words[1]] = words[2]
		if n == after {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
}

func checkBatches(t *testing.T, dir string, acked map[string]string) {
	t.Helper()
	r := openRig(t, dir, crashVersions[0])
	defer r.close()
	sizes, lines := map[string]int{}, map[string]int{}
	names := map[string]string{}
	notes := map[string]string{}
	each := func(name string, fn func(row map[string]any)) {
		for cursor := any(nil); ; {
			page := r.must(system, "query", map[string]any{"from": name, "limit": 1000, "cursor": cursor})
			for _, row := range page["rows"].([]any) {
				fn(row.(map[string]any))
			}
			if cursor = page["nextCursor"]; cursor == nil {
				return
			}
		}
	}
	each("Batch", func(row map[string]any) {
		id := row["id"].(string)
		names[row["name"].(string)] = id
		sizes[id] = int(row["size"].(float64)) % 100
		notes[id] = row["name"].(string)
	})
	each("Line", func(row map[string]any) {
		id := row["batch"].(string)
		lines[id]++
		if row["note"] != notes[id] {
			t.Errorf("a line of %q has the note %q", notes[id], row["note"])
		}
	})
	for id, size := range sizes {
		if lines[id] != size {
			t.Errorf("batch %q of %d has %d lines", notes[id], size, lines[id])
		}
	}
	for id := range lines {
		if sizes[id] == 0 {
			t.Errorf("%d lines without a batch", lines[id])
		}
	}
	for name, fate := range acked {
		there, renamed := names[name] != "", names[name+"!"] != ""
		if there != (fate == "0") || renamed != (fate == "2") {
			t.Errorf("batch %q, fate %s, acknowledged: there %v, renamed %v", name, fate, there, renamed)
		}
	}
}
