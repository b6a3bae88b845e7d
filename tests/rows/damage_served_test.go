package rows_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const censusSchema = `
app census
entity Item {
  id: id
  name: string(1..40) @unique
  n: int = 0
  pad: string(0..400) = ""
  @@index(n)
}
apiKeys {
  scopes: { teller: @system("teller") { @grant read, write on Item } }
}
routes("/", auth: apiKey(teller), rateLimit: none) {
  GET  /all -> all
  GET  /count -> count
  GET  /find/:name -> find
  POST /add/:name -> add
}
`

const censusRows = 300

// censusApp is an app with 300 rows, all of them in Badger's tables.
func censusApp(t *testing.T) *harness.App {
	t.Helper()
	a := harness.NewApp(t, censusSchema, "")
	a.Write("build/census.wasm", harness.GoModule(t, harness.Testdata("handlers/census")))
	var rows strings.Builder
	for i := range censusRows {
		fmt.Fprintf(&rows, `{"name":"item-%03d","n":%d,"pad":%q}`+"\n", i, i, fmt.Sprintf("row-%03d-", i)+strings.Repeat("x", 200))
	}
	a.Write("items.jsonl", rows.String())
	a.Serve().Stop() // activates the schema
	a.Must("data", "import", "Item", "items.jsonl")
	return a
}

// placesOf returns the positions of a text in the app's tables.
func placesOf(t *testing.T, a *harness.App, needle string) (places []position) {
	t.Helper()
	tables, err := filepath.Glob(a.Path("data/badger/*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables: %q, %v", tables, err)
	}
	for _, path := range tables {
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; ; {
			i := bytes.Index(all[from:], []byte(needle))
			if i < 0 {
				break
			}
			places = append(places, position{path, int64(from + i)})
			from += i + 1
		}
	}
	return places
}

// position is a byte of a file.
type position struct {
	path string
	at   int64
}

// flip flips one bit there; a second call restores it.
func (p position) flip(t *testing.T, bit int) {
	t.Helper()
	f, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], p.at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], p.at); err != nil {
		t.Fatal(err)
	}
}

func TestAServerWithDamagedTablesServesNoIncompleteResults(t *testing.T) {
	t.Parallel()
	tries := 20
	if harness.Soak {
		tries = 1000
	}
	a := censusApp(t)
	key := "X-API-Key: " + a.Token("teller")
	s := a.Serve()
	places := placesOf(t, a, "xxxx") // in the rows
	if len(places) < censusRows {
		t.Fatalf("only %d positions found", len(places))
	}
	right := map[string]string{
		"GET /all?by=name&direction=asc": "300", "GET /all?by=name&direction=desc": "300",
		"GET /all?by=n&direction=asc": "300", "GET /count": "300",
		"GET /find/item-000": `"there"`, "GET /find/item-299": `"there"`, "POST /add/item-150": `"refused"`,
	}
	ask := func() (refused int) {
		for request, want := range right {
			method, path, _ := strings.Cut(request, " ")
			switch got := s.Do(method, path, "", key); {
			case got.Status == 503 && got.Problem(t).Code == "unavailable":
				refused++
			case got.Status != 200 || got.Body != want:
				t.Errorf("%s: %d %s", request, got.Status, got.Body)
			}
		}
		return refused
	}
	if n := ask(); n > 0 {
		t.Fatalf("%d requests were refused before any damage\n%s", n, s.Stderr.String())
	}
	if got := s.Do("GET", "/_health/ready", ""); got.Status != 200 {
		t.Fatalf("before any damage: %d %s", got.Status, got.Body)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	refused, met := 0, 0
	for range tries {
		p, bit := places[random.IntN(len(places))], random.IntN(8)
		p.flip(t, bit)
		n := ask()
		refused += n
		met += min(n, 1)
		p.flip(t, bit)
		if t.Failed() {
			t.Fatalf("byte %d of %s", p.at, p.path)
		}
	}
	t.Logf("%d of %d requests refused, after %d of %d changes", refused, tries*len(right), met, tries)
	if met < tries*9/10-2 { // the page before a table's index stays in memory with the index
		t.Errorf("only %d of %d changes were detected", met, tries)
	}
	if n := ask(); n > 0 {
		t.Errorf("%d requests were refused after the damage was undone", n)
	}

	p := places[0]
	p.flip(t, 0)
	defer p.flip(t, 0)
	ask()
	var got harness.Answer
	s.WaitUntil("the server is not ready", func() bool {
		got = s.Do("GET", "/_health/ready", "")
		return got.Status == 503
	})
	if got.Problem(t).Code != "not_ready" || !strings.Contains(got.Body, filepath.Base(p.path)) {
		t.Errorf("ready: %d %s", got.Status, got.Body)
	}
	if n := strings.Count(s.Stderr.String(), `"msg":"store damaged"`); n != 1 {
		t.Errorf("%d lines of damage in the log:\n%s", n, s.Stderr.String())
	}
	if r := a.Run("data", "export", "Item", "--out", "out.jsonl"); r.Status == 0 {
		t.Errorf("an export of the damaged store: %s%s", r.Stdout, r.Stderr)
	}
}

// A salvage that is stopped by a signal leaves no rows in its directory.
func TestAnInterruptedSalvageLeavesNoFiles(t *testing.T) {
	t.Parallel()
	a := censusApp(t)
	a.Serve().Stop()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		status, left := 0, ""
		for try := 0; try < 20 && status == 0; try++ { // until the signal arrives before the command has finished
			dir := t.TempDir()
			cmd := exec.Command(harness.Binary, "store", "salvage", filepath.Join(dir, "rescued.tar"))
			cmd.Dir = a.Dir
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(harness.Timeout); ; { // until the command has started to write
				if all, err := filepath.Glob(filepath.Join(dir, ".salvage-*")); err != nil || len(all) > 0 {
					break
				}
				if time.Now().After(end) {
					break
				}
			}
			_ = cmd.Process.Signal(sig)
			_ = cmd.Wait() // ProcessState has the result
			all, err := os.ReadDir(dir)
			status, left = cmd.ProcessState.ExitCode(), fmt.Sprint(all, err)
		}
		if status != 130 || left != "[] <nil>" {
			t.Errorf("%s: status %d, left are %s", sig, status, left)
		}
	}
}

func TestSalvageWritesWhatCanBeRead(t *testing.T) {
	t.Parallel()
	a := censusApp(t)
	key := "X-API-Key: " + a.Token("teller")
	extract := func(file string) string {
		t.Helper()
		dir := t.TempDir()
		if out, err := exec.Command("tar", "-xf", a.Path(file), "-C", dir).CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, out)
		}
		return dir
	}
	s := a.Serve()
	if r := a.Run("store", "salvage", "early.tar"); r.Status != 1 || !strings.Contains(r.Stderr, "stop the server") {
		t.Errorf("beside a server: %d %s", r.Status, r.Stderr)
	}
	s.Kill() // the newest rows are in Badger's log
	if _, err := os.Stat(a.Path("early.tar")); err == nil {
		t.Error("a file was left of a salvage that was refused")
	}

	if r := a.Run("store", "salvage", "data/badger/inside.tar"); r.Status != 3 || !strings.Contains(r.Stderr, "data directory") {
		t.Errorf("a salvage into the data directory: %d %s", r.Status, r.Stderr)
	}
	a.Must("store", "salvage", "whole.tar")
	dir := extract("whole.tar")
	whole, err := os.ReadFile(filepath.Join(dir, "rows/Item.jsonl"))
	if err != nil || bytes.Count(whole, []byte("\n")) != censusRows {
		t.Fatalf("%d rows salvaged of a whole store, %v", bytes.Count(whole, []byte("\n")), err)
	}

	places := placesOf(t, a, "row-")
	places[10].flip(t, 0)
	if r := a.Run("serve", "--listen", "127.0.0.1:0"); r.Status != 3 {
		t.Fatalf("the damaged store was served: %d %s", r.Status, r.Stderr)
	}
	r := a.Run("store", "salvage", "rescued.tar", "--json")
	var report struct {
		Entities []struct {
			Name                       string
			Rows, Doubtful, Unreadable int
		}
		Losses []struct {
			File     string
			From, To int64
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || r.Status != 1 {
		t.Fatalf("status %d, %v: %s%s", r.Status, err, r.Stdout, r.Stderr)
	}
	if len(report.Losses) != 1 || filepath.Base(report.Losses[0].File) != filepath.Base(places[10].path) ||
		report.Losses[0].From > places[10].at || report.Losses[0].To <= places[10].at {
		t.Errorf("losses: %+v, and byte %d of %s was changed", report.Losses, places[10].at, places[10].path)
	}
	dir = extract("rescued.tar")
	rescued, err := os.ReadFile(filepath.Join(dir, "rows/Item.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := bytes.Count(rescued, []byte("\n"))
	if n < censusRows-50 || n >= censusRows || len(report.Entities) != 1 || report.Entities[0].Rows != n {
		t.Errorf("%d rows rescued: %+v", n, report)
	}
	for line := range strings.Lines(string(rescued)) {
		if !bytes.Contains(whole, []byte(line)) {
			t.Errorf("rescued and never written: %s", line)
		}
	}

	fresh := a.Serve("--data", "fresh")
	a.Must("data", "import", "Item", filepath.Join(dir, "rows/Item.jsonl"), "--data", "fresh")
	if got := fresh.Do("GET", "/count", "", key); got.Status != 401 {
		t.Errorf("a key of the damaged store opens the new one: %d %s", got.Status, got.Body)
	}
	token := a.Key("create", "--scope", "teller", "--name", "new", "--data", "fresh").Token
	if got := fresh.Do("GET", "/count", "", "X-API-Key: "+token); got.Body != fmt.Sprint(n) {
		t.Errorf("the new store has %s rows, want %d", got.Body, n)
	}
}
