package tests

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// censusApp is an app with 300 rows, all of them in tables.
func censusApp(t *testing.T) *app {
	t.Helper()
	a := newApp(t, censusSchema, "")
	a.write("build/census.wasm", goModule(t, "handlers/census"))
	var rows strings.Builder
	for i := range censusRows {
		fmt.Fprintf(&rows, `{"name":"item-%03d","n":%d,"pad":%q}`+"\n", i, i, fmt.Sprintf("row-%03d-", i)+strings.Repeat("x", 200))
	}
	a.write("items.jsonl", rows.String())
	a.serve().stop() // activates the schema
	a.must("data", "import", "Item", "items.jsonl")
	return a
}

// placesOf returns where in the tables of the app the needle stands.
func placesOf(t *testing.T, a *app, needle string) (places []spot) {
	t.Helper()
	tables, err := filepath.Glob(a.path("data/badger/*.sst"))
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
			places = append(places, spot{path, int64(from + i)})
			from += i + 1
		}
	}
	return places
}

// spot is a byte of a file.
type spot struct {
	path string
	at   int64
}

// flip changes one bit there, and the same again changes it back.
func (p spot) flip(t *testing.T, bit int) {
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

func TestAServerWithDamagedTablesServesNothingLess(t *testing.T) {
	t.Parallel()
	tries := 20
	if soak {
		tries = 1000
	}
	a := censusApp(t)
	key := "X-API-Key: " + a.token("teller")
	s := a.serve()
	places := placesOf(t, a, "xxxx") // in the rows
	if len(places) < censusRows {
		t.Fatalf("%d places", len(places))
	}
	right := map[string]string{
		"GET /all?by=name&direction=asc": "300", "GET /all?by=name&direction=desc": "300",
		"GET /all?by=n&direction=asc": "300", "GET /count": "300",
		"GET /find/item-000": `"there"`, "GET /find/item-299": `"there"`, "POST /add/item-150": `"refused"`,
	}
	ask := func() (refused int) {
		for request, want := range right {
			method, path, _ := strings.Cut(request, " ")
			switch got := s.do(method, path, "", key); {
			case got.status == 503 && got.problem(t).Code == "unavailable":
				refused++
			case got.status != 200 || got.body != want:
				t.Errorf("%s: %d %s", request, got.status, got.body)
			}
		}
		return refused
	}
	if n := ask(); n > 0 {
		t.Fatalf("%d requests were refused before any damage\n%s", n, s.stderr.String())
	}
	if got := s.do("GET", "/_health/ready", ""); got.status != 200 {
		t.Fatalf("before any damage: %d %s", got.status, got.body)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range tries {
		p, bit := places[random.IntN(len(places))], random.IntN(8)
		p.flip(t, bit)
		n := ask()
		if n == 0 {
			t.Errorf("byte %d of %s was changed and no request refused", p.at, p.path)
		}
		refused += n
		p.flip(t, bit)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d of %d requests refused", refused, tries*len(right))
	if n := ask(); n > 0 {
		t.Errorf("%d requests were refused after the damage was mended", n)
	}

	p := places[0]
	p.flip(t, 0)
	defer p.flip(t, 0)
	ask()
	var got answer
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		got = s.do("GET", "/_health/ready", "")
		if got.status == 503 && strings.Contains(got.body, ".sst") || time.Now().After(end) {
			break
		}
	}
	if got.status != 503 || got.problem(t).Code != "not_ready" || !strings.Contains(got.body, filepath.Base(p.path)) {
		t.Errorf("ready: %d %s", got.status, got.body)
	}
	if n := strings.Count(s.stderr.String(), `"msg":"store damaged"`); n != 1 {
		t.Errorf("%d lines of damage in the log:\n%s", n, s.stderr.String())
	}
	if r := a.run("data", "export", "Item", "--out", "out.jsonl"); r.status == 0 {
		t.Errorf("an export of the damaged store: %s%s", r.stdout, r.stderr)
	}
}
