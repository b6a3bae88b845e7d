// Package entities compares operations on rows with the same work on Badger without a schema
// and on SQLite in the same process. It is a separate module, so that the runner does not
// depend on SQLite.
package entities

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	_ "modernc.org/sqlite"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/runtime/sandbox"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
	"runner.example/tests/bench/arms"
)

const app = `
app bench

auth {
  session cookie { idle: 30m, absolute: 12h }
  roles: [member],
  user: User,
  tenant: Org
}

enum State { todo, doing, done }

entity Org {
  id: id
  name: string(1..80)
  @@allow read to session
}

entity User {
  id: id
  name: string(1..80)
  @@allow read to session
}

entity Task {
  id: id
  org: Org @tenant
  title: string(1..200)
  state: State = todo
  private: bool = false
  owner: string(1..64)
  rank: int
  createdAt: time @created

  @@index(state, rank desc)
  @@allow read to session when private == false or owner == auth.userId
  @@allow insert to session
}

routes("/", auth: session) {
  GET /tasks -> tasks
}
`

const tenants = 10

// world is a store with rows of a few tenants, and a caller.
type world struct {
	store *store.Store
	model *entity.Model
	who   caller.Caller
	ids   []string // of tasks of the caller's tenant
}

func newWorld(b *testing.B, dir string, rows int) *world {
	b.Helper()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	st, err := store.Open(store.Options{Dir: dir, Logger: logger})
	check(b, err)
	b.Cleanup(func() { check(b, st.Close()) })
	sources := []diag.Source{{Name: "bench.schema", Text: []byte(app)}}
	s, found := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		b.Fatal(found)
	}
	m, err := entity.Activate(context.Background(), st, s, sources, entity.Options{Logger: logger})
	check(b, err)
	check(b, m.BuildIndexes(context.Background(), func(catalog.Progress) {}))
	w := &world{store: st, model: m, who: caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "t0", Roles: []string{"member"}}}
	w.fill(b, rows)
	return w
}

// task is one row, the same in every store.
type task struct {
	Title   string `json:"title"`
	State   string `json:"state"`
	Private bool   `json:"private"`
	Owner   string `json:"owner"`
	Rank    int    `json:"rank"`
}

func newTask(r *rand.Rand) task {
	return task{
		Title: fmt.Sprintf("task %d of the work that has to be done", r.IntN(1e9)), State: []string{"todo", "doing", "done"}[r.IntN(3)],
		Private: r.IntN(4) == 0, Owner: fmt.Sprintf("u%d", r.IntN(20)), Rank: r.IntN(1e6),
	}
}

const seed = 20_26

// fill writes rows in turn for each tenant.
func (w *world) fill(b *testing.B, rows int) {
	b.Helper()
	const batch = 500
	r := rand.New(rand.NewPCG(seed, 1))
	for done := 0; done < rows; done += batch {
		who := w.who
		who.Tenant = fmt.Sprintf("t%d", done/batch%tenants)
		n := min(batch, rows-done)
		list := make([]task, n)
		for i := range list {
			list[i] = newTask(r)
		}
		args, err := json.Marshal(map[string]any{"into": "Task", "values": list})
		check(b, err)
		var out entity.Result
		_, err = w.store.Update(context.Background(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(w.model, tx, &who, 100_000)
			return a.Do("insert", args, &out)
		})
		check(b, err)
		if who.Tenant != "t0" {
			continue
		}
		var answer struct{ Rows []struct{ ID string } }
		check(b, json.Unmarshal(out.JSON, &answer))
		for _, row := range answer.Rows {
			w.ids = append(w.ids, row.ID)
		}
	}
}

// do runs one operation in a new snapshot.
func (w *world) do(b *testing.B, a *entity.Access, op string, args []byte, out *entity.Result) {
	check(b, w.store.View(context.Background(), func(tx *store.Tx) error {
		a.Reset(w.model, tx, &w.who, 100_000)
		return a.Do(op, args, out)
	}))
}

func check(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

// sqlite is the same table in SQLite, with a write-ahead log and synced commits.
func sqlite(b *testing.B, dir string, rows int) *sql.DB {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bench.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(60000)&_txlock=immediate")
	check(b, err)
	b.Cleanup(func() { check(b, db.Close()) })
	_, err = db.Exec(`create table task (id text primary key, org text not null, title text not null, state text not null,
		private int not null, owner text not null, rank int not null, created int not null);
		create index by_state on task (org, state, rank desc)`)
	check(b, err)
	r := rand.New(rand.NewPCG(seed, 1))
	tx, err := db.Begin()
	check(b, err)
	for i := range rows {
		t := newTask(r)
		_, err := tx.Exec("insert into task values (?, ?, ?, ?, ?, ?, ?, ?)", fmt.Sprintf("%026d", i), fmt.Sprintf("t%d", i/500%tenants),
			t.Title, t.State, t.Private, t.Owner, t.Rank, time.Now().UnixMilli())
		check(b, err)
	}
	check(b, tx.Commit())
	return db
}

func openBadger(b *testing.B, dir string) *badger.DB {
	b.Helper()
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithLogger(nil).WithDetectConflicts(true))
	check(b, err)
	b.Cleanup(func() { check(b, db.Close()) })
	return db
}

// guest gets a row by its id, or calls the host without work, a hundred times.
const guest = `(module
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "request_method" (func $method (param i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "get")
  (data (i32.const 16) "{\"from\":\"Task\",\"id\":\"%s\"}")
  (func (export "gets") (local $i i32)
    (loop $next
      (if (i32.lt_s (call $call (i32.const 0) (i32.const 3) (i32.const 16) (i32.const 49)) (i32.const 0)) (then unreachable))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
    (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0))))
  (func (export "empties") (local $i i32)
    (loop $next
      (drop (call $method (i32.const 1024) (i32.const 0)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
    (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0)))))`

// BenchmarkGet compares getting a row by its id in a handler with Badger's Get of the same
// bytes. It also measures a host call without work.
func BenchmarkGet(b *testing.B) {
	const calls = 100
	w := newWorld(b, b.TempDir(), 10_000)
	id := w.ids[len(w.ids)/2]
	dir := b.TempDir()
	text := filepath.Join(dir, "guest.wat")
	check(b, os.WriteFile(text, fmt.Appendf(nil, guest, id), 0o644))
	if out, err := exec.Command("wat2wasm", text, "-o", text+".wasm").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	module, err := os.ReadFile(text + ".wasm")
	check(b, err)
	engine, err := sandbox.New(context.Background(), sandbox.Options{})
	check(b, err)
	b.Cleanup(func() { check(b, engine.Close(context.Background())) })
	m, err := engine.Load(context.Background(), "guest.wasm", module)
	check(b, err)
	call := &hostabi.Call{Input: hostabi.Input{
		Context: context.Background(), Caller: w.who, Attempt: 1, Request: &abi.Request{ID: "bench", Method: []byte("GET"), Path: []byte("/")},
		Host: hostabi.NewHost(hostabi.Host{Entities: w.model, Schema: w.model.Schema(), Logger: slog.New(slog.DiscardHandler), Limits: hostabi.Limits{StoreOps: 1 << 30, CPU: time.Hour}}),
	}}
	run := func(handler string) func() {
		return func() {
			check(b, w.store.View(context.Background(), func(tx *store.Tx) error {
				call.Tx = tx
				return m.Run(call, handler)
			}))
		}
	}
	var out entity.Result
	var access entity.Access
	w.do(b, &access, "get", fmt.Appendf(nil, `{"from":"Task","id":%q}`, id), &out)
	db := openBadger(b, b.TempDir())
	key := []byte("task/t0/" + id)
	check(b, db.Update(func(tx *badger.Txn) error { return tx.Set(key, out.JSON) }))
	native := func() {
		check(b, db.View(func(tx *badger.Txn) error {
			for range calls {
				item, err := tx.Get(key)
				if err != nil {
					return err
				}
				if _, err := item.ValueCopy(nil); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	b.Run("handler", func(b *testing.B) {
		arms.Alternate(b, 5, [2]string{"badger-100", "runner-100"}, [2]func(){native, run("gets")})
	})
	b.Run("empty", func(b *testing.B) {
		arms.Alternate(b, 5, [2]string{"empty-100", "get-100"}, [2]func(){run("empties"), run("gets")})
	})
}

const page = `{"from":"Task","where":[["state","=","doing"]],"orderBy":[["rank","desc"]],"limit":20}`

func (w *world) page(b *testing.B) func() {
	var a entity.Access
	var out entity.Result
	return func() {
		w.do(b, &a, "query", []byte(page), &out)
		if bytes.Count(out.JSON, []byte(`"rank"`)) != 20 {
			b.Fatalf("%s", out.JSON)
		}
	}
}

// BenchmarkPage reads twenty rows by an index, with the tenant and a policy for each row, as
// JSON. It compares this with SQLite and with a loop over an index kept by hand in Badger.
func BenchmarkPage(b *testing.B) {
	const rows = 100_000
	w := newWorld(b, b.TempDir(), rows)
	db := sqlite(b, b.TempDir(), rows)
	query, err := db.Prepare(`select id, org, title, state, private, owner, rank, created from task
		where org = ? and state = ? and (private = 0 or owner = ?) order by rank desc limit 20`)
	check(b, err)
	type row struct {
		ID, Org string
		task
		Created int64
	}
	asked := func() {
		found, err := query.Query("t0", "doing", "u1")
		check(b, err)
		list := make([]row, 0, 20)
		for found.Next() {
			var t row
			check(b, found.Scan(&t.ID, &t.Org, &t.Title, &t.State, &t.Private, &t.Owner, &t.Rank, &t.Created))
			list = append(list, t)
		}
		check(b, found.Close())
		out, err := json.Marshal(list)
		check(b, err)
		if len(list) != 20 || len(out) == 0 {
			b.Fatal(len(list))
		}
	}
	kv := openBadger(b, b.TempDir())
	byHand(b, kv, rows)
	scanned := func() {
		list := make([]row, 0, 20)
		check(b, kv.View(func(tx *badger.Txn) error {
			it := tx.NewIterator(badger.IteratorOptions{Prefix: []byte("i/t0/doing/")})
			defer it.Close()
			for it.Rewind(); it.Valid() && len(list) < 20; it.Next() {
				key := it.Item().Key()
				item, err := tx.Get(append([]byte("r/t0/"), key[len(key)-26:]...))
				if err != nil {
					return err
				}
				var t row
				if err := item.Value(func(v []byte) error { return json.Unmarshal(v, &t.task) }); err != nil {
					return err
				}
				if t.Private && t.Owner != "u1" {
					continue
				}
				t.ID, t.Org = string(key[len(key)-26:]), "t0"
				list = append(list, t)
			}
			return nil
		}))
		out, err := json.Marshal(list)
		check(b, err)
		if len(list) != 20 || len(out) == 0 {
			b.Fatal(len(list))
		}
	}
	b.Run("sqlite", func(b *testing.B) {
		arms.Alternate(b, 20, [2]string{"sqlite", "runner"}, [2]func(){asked, w.page(b)})
	})
	b.Run("badger", func(b *testing.B) {
		arms.Alternate(b, 20, [2]string{"badger", "runner"}, [2]func(){scanned, w.page(b)})
	})
}

// byHand writes the rows as JSON, with an index over them, without a schema.
func byHand(b *testing.B, db *badger.DB, rows int) {
	b.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	batch := db.NewWriteBatch()
	for i := range rows {
		t := newTask(r)
		org := fmt.Sprintf("t%d", i/500%tenants)
		id := fmt.Sprintf("%026d", i)
		text, err := json.Marshal(t)
		check(b, err)
		check(b, batch.Set([]byte("r/"+org+"/"+id), text))
		key := append([]byte("i/"+org+"/"+t.State+"/"), 0, 0, 0, 0)
		binary.BigEndian.PutUint32(key[len(key)-4:], ^uint32(t.Rank))
		check(b, batch.Set(append(key, id...), nil))
	}
	check(b, batch.Flush())
}

// BenchmarkTable compares the same page out of two tables of different size, both in memory
// or both in files.
func BenchmarkTable(b *testing.B) {
	for _, row := range []struct{ rows, more int }{{10_000, 100_000}, {300_000, 1_000_000}} {
		if testing.Short() && row.more > 100_000 {
			continue
		}
		b.Run(fmt.Sprint(row.more), func(b *testing.B) {
			small, large := newWorld(b, b.TempDir(), row.rows), newWorld(b, b.TempDir(), row.more)
			arms.Alternate(b, 20, [2]string{"rows", "more-rows"}, [2]func(){small.page(b), large.page(b)})
		})
	}
}

// together runs do with a number of concurrent callers, and returns how often it ran per
// second.
func together(callers int, length time.Duration, do func(caller, i int) error) (float64, error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	start := time.Now()
	for c := range callers {
		all.Go(func() {
			for i := 0; time.Since(start) < length; i++ {
				if err := do(c, i); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(start).Seconds(), nil
}

// BenchmarkInsert inserts one row per transaction, synced before it returns, with 1, 16 and
// 64 concurrent callers.
func BenchmarkInsert(b *testing.B) {
	const length = 300 * time.Millisecond
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			w := newWorld(b, b.TempDir(), 0)
			kv := openBadger(b, b.TempDir())
			db := sqlite(b, b.TempDir(), 0)
			next := atomic.Int64{}
			arms := []struct {
				name string
				do   func(caller, i int) error
				runs []float64
			}{
				{name: "runner", do: func(c, i int) error {
					var out entity.Result
					_, err := w.store.Update(context.Background(), func(tx *store.Tx) error {
						var a entity.Access
						a.Reset(w.model, tx, &w.who, 100_000)
						return a.Do("insert", fmt.Appendf(nil, `{"into":"Task","values":{"title":"a task that has to be done","owner":"u1","rank":%d}}`, i), &out)
					})
					return err
				}},
				{name: "badger", do: func(c, i int) error {
					id := fmt.Sprintf("%026d", next.Add(1))
					text, err := json.Marshal(task{Title: "a task that has to be done", State: "todo", Owner: "u1", Rank: i})
					if err != nil {
						return err
					}
					return kv.Update(func(tx *badger.Txn) error {
						if err := tx.Set([]byte("r/t0/"+id), text); err != nil {
							return err
						}
						return tx.Set(fmt.Appendf(nil, "i/t0/todo/%08d/%s", i, id), nil)
					})
				}},
				{name: "sqlite", do: func(c, i int) error {
					_, err := db.Exec("insert into task values (?, 't0', 'a task that has to be done', 'todo', 0, 'u1', ?, ?)",
						fmt.Sprintf("%026d", next.Add(1)), i, time.Now().UnixMilli())
					return err
				}},
			}
			for b.Loop() {
				for i := range arms {
					rate, err := together(callers, length, arms[i].do)
					check(b, err)
					arms[i].runs = append(arms[i].runs, rate)
				}
			}
			for i := range arms {
				b.ReportMetric(middle(arms[i].runs), arms[i].name+"/s")
			}
			b.ReportMetric(middle(divided(arms[0].runs, arms[1].runs)), "over-badger")
			b.ReportMetric(middle(divided(arms[0].runs, arms[2].runs)), "over-sqlite")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func divided(a, b []float64) (all []float64) {
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return all
}

func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
