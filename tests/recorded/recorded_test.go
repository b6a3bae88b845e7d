package recorded_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const schema = `app shop

secret PARTNER

entity Order {
  id: id
  item: string(1..100)
  qty: int?
  status: string(1..20)
}

apiKeys {
  scopes: {
    shop: @system("shop.all") { @grant read, insert on Order }
  }
}

routes("/v1", auth: apiKey(shop), rateLimit: none) {
  POST /orders        -> place
  GET  /total/:status -> total
  GET  /wait          -> waits
  GET  /spin          -> spins
  POST /later         -> later
}

routes("/open", auth: none, rateLimit: none) {
  GET /cookie -> cookie
}

jobs {
  bill() (retries: 0)
}
`

const partner = "correct horse battery"

// handlers are those of the app. The total is wrong for an order without a quantity, so %s is its value.
const handlers = `import { call, insert, jobs, ok, query, type RouteRequest } from "@runner/sdk";

export async function place(req: RouteRequest) {
  return ok(await insert("Order", req.body<any>()));
}

export async function total(req: RouteRequest) {
  const drawn = [Date.now(), Math.random(), crypto.randomUUID()];
  const key = (await call<any>("secret", { name: "PARTNER" })).value as string;
  console.log("drawn " + drawn.join(" "), key, btoa("key " + key));
  const rows = await query<any>("Order").where("status", "=", %s);
  let sum = 0;
  for (const row of rows) sum += %s;
  return ok({ sum });
}

export async function waits() {
  await Promise.all([call("sleep", { seconds: 0.01 }), call("sleep", { seconds: 60 })]);
  return ok();
}

export function spins() {
  for (;;);
}

export async function later() {
  await jobs.enqueue("bill", {});
  return ok();
}

export async function bill() {
  const rows = await query<any>("Order").limit(1);
  throw new Error("no bill for " + rows.length + " orders");
}

export function cookie(req: RouteRequest) {
  throw new Error("who is " + req.headers.cookie!.split("visitor=")[1] + "?");
}
`

// source returns the handlers with the condition and the value of total.
func source(status, value string) string { return fmt.Sprintf(handlers, status, value) }

var failing = source("req.params.status", "row.qty.valueOf()")

// newShop returns the app, built and with a key.
func newShop(t *testing.T, settings string) (a *harness.App, token string) {
	t.Helper()
	a = harness.NewApp(t, schema, "[runtime]\ntimeout = \"1s\"\n\n[sandbox]\ncpu = \"200ms\"\n\n"+settings+"\n[secrets]\nPARTNER = \""+partner+"\"\n")
	a.Write("handlers/shop.ts", failing)
	a.Must("build")
	return a, a.Token("shop")
}

// build returns the file of a module of other handlers.
func build(t *testing.T, text string) string {
	t.Helper()
	a := harness.NewApp(t, schema, "")
	a.Write("handlers/shop.ts", text)
	a.Must("build")
	return a.Path("build/shop.wasm")
}

// run is a recording as it is listed.
type run struct {
	ID, Kind, Route, Failure string
	Status, Calls            int
	Failed                   bool
}

// recorded waits for so many recordings, and returns them.
func recorded(t *testing.T, s *harness.Server, n int) (runs []run) {
	t.Helper()
	s.WaitUntil(fmt.Sprint(n, " recordings are kept"), func() bool {
		runs = nil
		if err := json.Unmarshal([]byte(s.App.Must("recorded", "list", "--json")), &runs); err != nil {
			t.Fatal(err)
		}
		return len(runs) >= n
	})
	if len(runs) != n {
		t.Fatalf("%d recordings, want %d: %+v", len(runs), n, runs)
	}
	return runs
}

// replays replays a recording, and compares its status and the beginning of its text.
func replays(t *testing.T, a *harness.App, status int, want string, args ...string) {
	t.Helper()
	got := a.Run(append([]string{"replay"}, args...)...)
	if got.Status != status || !strings.HasPrefix(got.Stdout, want) {
		t.Errorf("replay %q ends with %d: %s%s\nwant %d: %s", args, got.Status, got.Stdout, got.Stderr, status, want)
	}
}

func TestAFailedRequestIsShownAndRunAgain(t *testing.T) {
	a, token := newShop(t, "[record]\nfailures = 10\n")
	s := a.Serve()
	for _, order := range []string{`{"item":"tea","qty":2,"status":"open"}`, `{"item":"rum","status":"open"}`} {
		s.Want(200, nil, "POST", "/v1/orders", order, "X-API-Key: "+token)
	}
	s.Want(500, nil, "GET", "/v1/total/open", "", "X-API-Key: "+token)
	s.Want(200, nil, "GET", "/v1/total/paid", "", "X-API-Key: "+token)
	failure := recorded(t, s, 1)[0]
	const place = "exception: TypeError: Cannot read properties of null (reading 'valueOf') at total (handlers/shop.ts:13:34)"
	if failure.Route != "/v1/total/:status" || failure.Status != 500 || failure.Calls != 2 || !failure.Failed || failure.Failure != place {
		t.Errorf("listed as %+v", failure)
	}
	shown := a.Must("recorded", "show", failure.ID)
	for _, part := range []string{
		"request " + failure.ID + "  GET /v1/total/open\n", "caller   apiKey key key_", "scope shop from 127.0.0.1\n",
		`1 secret {"name":"PARTNER"} → {"value":"‹PARTNER›"} (`, "log info: drawn ", " ‹PARTNER› ",
		`2 query Order where status = "open" → {"rows":[{"id":`, place + "\n",
	} {
		if !strings.Contains(shown, part) {
			t.Errorf("the recording is shown without %q:\n%s", part, shown)
		}
	}
	replays(t, a, 1, "fails the same way: "+place+"\n", failure.ID)
	fixed := build(t, source("req.params.status", "row.qty ?? 0"))
	replays(t, a, 0, "now passes: 200\n", failure.ID, "--module", fixed)
	other := build(t, source(`"paid"`, "row.qty ?? 0"))
	const diverges = `diverges at call 2: query Order where status = "paid", recorded: query Order where status = "open"` + "\n"
	replays(t, a, 1, diverges, failure.ID, "--module", other)
	paid := build(t, source(`"paid"`, `row.qty ?? 0`))
	s.Want(200, nil, "POST", "/v1/orders", `{"item":"ale","qty":5,"status":"paid"}`, "X-API-Key: "+token)
	for against, rows := range map[string]string{"live-copy": `"item":"ale"`, "snapshot": `{"rows":[],`} {
		got := a.Run("replay", failure.ID, "--module", paid, "--against", against, "--json")
		var done struct {
			Verdict, Text string
			Outcome       struct{ Status int }
			Events        []struct{ Result string }
		}
		if err := json.Unmarshal([]byte(got.Stdout), &done); err != nil {
			t.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
		}
		last := done.Events[len(done.Events)-1].Result
		if done.Verdict != "diverges" || done.Outcome.Status != 200 || !strings.Contains(last, rows) ||
			!strings.HasSuffix(done.Text, "; against a copy of the store it ends with 200") {
			t.Errorf("against %s: %+v", against, done)
		}
	}
	if got := a.Run("replay", failure.ID, "--against", "yesterday"); got.Status != 3 || !strings.Contains(got.Stderr, "snapshot or live-copy") {
		t.Errorf("against another state: %+v", got)
	}
	replays(t, a, 1, "fails differently: exception: Error: not this at ", failure.ID, "--module",
		build(t, source("req.params.status", `(() => { throw new Error("not this") })()`)))

	exported := a.Must("recorded", "export", failure.ID)
	a.Write("failure.json", exported)
	a.Must("recorded", "delete", failure.ID)
	recorded(t, s, 0)
	if got := a.Run("replay", failure.ID); got.Status != 4 {
		t.Errorf("a deleted recording: %d %s", got.Status, got.Stderr)
	}
	replays(t, a, 0, "now passes: 200\n", "failure.json", "--module", fixed)
	s.Stop()
	replays(t, a, 1, "fails the same way: ", "failure.json") // in the process of the command

	for _, text := range []string{shown, exported} {
		if strings.Contains(text, partner) || strings.Contains(text, token) {
			t.Errorf("the secret or the key is in\n%s", text)
		}
	}
}

func TestALimitIsReplayedToItsPlace(t *testing.T) {
	a, token := newShop(t, "[record]\nfailures = 10\n")
	s := a.Serve()
	s.Want(504, nil, "GET", "/v1/wait", "", "X-API-Key: "+token)
	s.Want(504, nil, "GET", "/v1/spin", "", "X-API-Key: "+token)
	runs := recorded(t, s, 2)
	replays(t, a, 1, "ends at a limit again: CPU limit: ", runs[0].ID)
	replays(t, a, 1, "reaches the place where the recorded run ended (time limit: ", runs[1].ID)
}

func TestAFailedJobIsRecorded(t *testing.T) {
	a, token := newShop(t, "[record]\nfailures = 10\n")
	s := a.Serve()
	s.Want(200, nil, "POST", "/v1/later", "", "X-API-Key: "+token)
	failure := recorded(t, s, 1)[0]
	if failure.Kind != "job" || !strings.HasPrefix(failure.Failure, "exception: Error: no bill for 0 orders at bill") {
		t.Errorf("listed as %+v", failure)
	}
	replays(t, a, 1, "fails the same way: exception: Error: no bill for 0 orders at bill", failure.ID)
}

// The handler gets a cookie of the same length in the replay.
func TestCredentialsAreRecordedByName(t *testing.T) {
	a, _ := newShop(t, "[record]\nfailures = 10\n")
	s := a.Serve()
	const cookie = "k3yWGm0bHq7Zt1uVx9"
	s.Want(500, nil, "GET", "/open/cookie", "", "Cookie: seen=yes; visitor="+cookie)
	failure := recorded(t, s, 1)[0]
	shown := a.Must("recorded", "show", failure.ID) + a.Must("recorded", "export", failure.ID)
	if strings.Contains(shown, cookie) || !strings.Contains(shown, "visitor=‹cookie 2›") || strings.Contains(shown, "seen=yes") {
		t.Errorf("the cookie is shown:\n%s", shown)
	}
	replays(t, a, 1, "fails the same way: exception: Error: who is ", failure.ID)
}

func TestSamplesAreRecordedAndFilesAreEncrypted(t *testing.T) {
	a, token := newShop(t, "[record]\nsample = 1\n")
	s := a.Serve()
	s.Want(200, nil, "POST", "/v1/orders", `{"item":"the rarest tea","qty":2,"status":"open"}`, "X-API-Key: "+token)
	sample := recorded(t, s, 1)[0]
	if sample.Failed || sample.Status != 200 {
		t.Errorf("listed as %+v", sample)
	}
	replays(t, a, 0, "answers the same: 200\n", sample.ID)
	files := 0
	err := fs.WalkDir(os.DirFS(a.Path("data/recorded")), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text := harness.MustRead(t, filepath.Join(a.Path("data/recorded"), name))
		if strings.Contains(text, "tea") || strings.Contains(text, "Order") {
			t.Errorf("%s can be read", name)
		}
		return nil
	})
	if err != nil || files != 1 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestAServerRecordsNothingByDefault(t *testing.T) {
	a, token := newShop(t, "")
	s := a.Serve()
	s.Want(504, nil, "GET", "/v1/spin", "", "X-API-Key: "+token)
	s.Stop()
	if _, err := os.Stat(a.Path("data/recorded")); !os.IsNotExist(err) {
		t.Errorf("there is a directory: %v", err)
	}
	if got := a.Run("recorded", "list"); got.Status != 0 || !strings.Contains(got.Stderr, "no recordings") {
		t.Errorf("%+v", got)
	}
}

func TestTheDevelopmentServerRecordsFailures(t *testing.T) {
	s := harness.Develop(t)
	s.Want(500, nil, "GET", "/v1/boom/loud", "")
	failure := recorded(t, s, 1)[0]
	replays(t, s.App, 1, "fails the same way: exception: Error: it was loud at boom", failure.ID)
}

func TestWrongCommandsSayWhatToDo(t *testing.T) {
	a, _ := newShop(t, "")
	a.Write("broken.json", "{")
	a.Write("empty.json", "{}")
	for _, row := range []struct {
		status int
		want   string
		args   []string
	}{
		{4, `request "nothing" is not recorded on this node`, []string{"recorded", "show", "nothing"}},
		{4, `request "nothing" is not recorded on this node`, []string{"replay", "nothing"}},
		{2, "name the ids of requests, or use --all", []string{"recorded", "delete"}},
		{4, "the recording other.json does not exist", []string{"replay", "other.json"}},
		{3, "broken.json is not a recording", []string{"replay", "broken.json"}},
		{3, "the file is not an exported recording: it has no format", []string{"replay", "empty.json"}},
		{4, "--module other.wasm does not exist", []string{"replay", "nothing", "--module", "other.wasm"}},
	} {
		if got := a.Run(row.args...); got.Status != row.status || !strings.Contains(got.Stderr, row.want) {
			t.Errorf("%q ends with %d: %s\nwant %d: %s", row.args, got.Status, got.Stderr, row.status, row.want)
		}
	}
}

// Recordings do not have the parts of a streamed answer.
func TestAStreamedAnswerIsReplayed(t *testing.T) {
	a := harness.NewApp(t, "routes(\"/\", auth: none, rateLimit: none) {\n  GET /whole -> whole (stream: 1m)\n  GET /fails -> fails (stream: 1m)\n}\n",
		"[record]\nsample = 1\n")
	a.Write("handlers/streams.ts", `import { stream } from "@runner/sdk";
export const whole = () => stream(function* () { for (let n = 0; n < 100; n++) yield "x".repeat(100_000); });
export const fails = () => stream(function* () { yield "a part"; throw new Error("later"); });
`)
	a.Must("build")
	s := a.Serve()
	if got := s.Do("GET", "/whole", ""); len(got.Body) != 10_000_000 {
		t.Errorf("a streamed answer: %d, %d bytes", got.Status, len(got.Body))
	}
	if got, err := s.Try("GET", "/fails", ""); err == nil {
		t.Errorf("a stream that fails: %+v", got)
	}
	for _, run := range recorded(t, s, 2) {
		if run.Failed {
			replays(t, a, 1, "fails the same way: exception: Error: later at ", run.ID)
		} else {
			replays(t, a, 0, "answers the same: 200\n", run.ID)
		}
	}
}
