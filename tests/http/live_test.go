package http_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const liveSchema = `
outbound { allow: ["https://example.com"] }
auth { session cookie { } }
entity Option {
  id: id  label: string  votes: int = 0  hidden: bool = false
  @@allow read when hidden == false
}
entity Other { id: id  text: string }
entity Note {
  id: id  owner: string  text: string
  @@allow read when owner == auth.userId
}
entity Offer {
  id: id  until: time
  @@allow read when until > now
}
apiKeys {
  prefix: "live",
  scopes: { voter: @system("votes") { @grant insert, read, update, delete on Option, Other, Note, Offer } }
}
jobs { later() }
type Page { limit?: int = 10 }
routes("/v1", auth: none, rateLimit: none) {
  GET  /options -> options (live: 30m)
  GET  /options/:id -> option (live: 30m)
  GET  /page -> options (live: 30m, query: Page)
  GET  /offers -> offers (live: 30m)
  GET  /large -> large (live: 30m)
  GET  /bytes -> bytes (live: 30m)
  GET  /writes -> writes (live: 30m)
  GET  /fetches -> fetches (live: 30m)
  GET  /enqueues -> enqueues (live: 30m)
  GET  /fails -> fails (live: 30m)
  GET  /short -> options (live: 1s)
  GET  /ordinary -> options
}
routes("/mine", auth: session) { GET /notes -> notes (live: 30m) }
routes("/keys", auth: apiKey(voter)) {
  GET  /options -> options (live: 30m)
  POST /options -> add
  PUT  /options/:id -> change
  POST /others -> other
  POST /notes -> note
  POST /offers -> offer
  POST /large -> setLarge
}
`

const liveHandlers = `
import { get, insert, jobs, query, update, ok, type RouteRequest } from "@runner/sdk";

export const options = () => query("Option").orderBy("id");
export const option = (req: RouteRequest) => get("Option", req.params.id);
export const notes = async () => (await query("Note")).map((n) => n.text);
export const offers = async () => (await query("Offer")).length;
export const large = async () => "x".repeat((await query("Option")).length * 300_000);
export const bytes = () => new Response(new Uint8Array([255, 254]));
export const writes = async () => ok(await insert("Option", { label: "never" }));
export const fetches = () => ok(fetchText("https://example.com/"));
const fetchText = async (url: string) => { try { return await (await fetch(url)).text(); } catch (e) { return String((e as Error).cause ?? e); } };
export const enqueues = async () => ok(await jobs.enqueue("later", {}));
export const fails = async () => { if ((await query("Option")).length === 0) throw new Error("nothing yet"); return ok("good"); };
export const add = (req: RouteRequest) => insert("Option", req.body());
export const change = (req: RouteRequest) => update("Option", req.body<object>()).where("id", "=", req.params.id);
export const other = () => insert("Other", { text: "unrelated" });
export const note = (req: RouteRequest) => insert("Note", req.body());
export const offer = (req: RouteRequest) => insert("Offer", { until: new Date(Date.now() + 1500).toISOString() });
export const later = () => {};
export const setLarge = () => ok();
`

func serveLive(t *testing.T, toml string) (s *harness.Server, key string) {
	a := harness.NewApp(t, liveSchema, toml)
	a.Write("handlers/live.ts", liveHandlers)
	a.Must("build")
	return a.Serve(), "X-API-Key: " + a.Token("voter")
}

// addOption adds an option and returns its id.
func addOption(t *testing.T, s *harness.Server, key, label string) string {
	t.Helper()
	var row struct{ ID string }
	s.Want(200, &row, "POST", "/keys/options", fmt.Sprintf(`{"label":%q}`, label), key)
	return row.ID
}

func TestALiveRouteSendsItsValueWhenItChanges(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	list := s.Watch(t, "/v1/options", "")
	list.Want("value", "[]")
	tea := addOption(t, s, key, "tea")
	list.Want("value", `"tea"`)
	one := s.Watch(t, "/v1/options/"+tea, "")
	one.Want("value", `"votes":0`)
	s.Want(200, nil, "POST", "/keys/others", "", key) // nobody has read that
	s.Want(200, nil, "PUT", "/keys/options/"+tea, `{"votes":1}`, key)
	last := one.Want("value", `"votes":1`)
	list.Want("value", `"votes":1`)
	if got := s.Get("/v1/options/"+tea, ""); got.Body != last.Data {
		t.Errorf("a GET answers %s, the watch %s", got.Body, last.Data)
	}
	for name, want := range map[string]string{"X-Accel-Buffering": "no", "Cache-Control": "no-store"} {
		if got := one.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	again := s.Watch(t, "/v1/options/"+tea, "", "Last-Event-ID: "+last.ID)
	if got, err := again.Next(); got.Comment != "unchanged" || err != nil {
		t.Errorf("with the id of the same value: %+v %v", got, err)
	}
	s.Want(200, nil, "PUT", "/keys/options/"+tea, `{"hidden":true}`, key)
	again.Want("problem", `"status":404`)
	one.Want("problem", `"status":404`)
	list.Want("value", "[]")
	s.Want(200, nil, "PUT", "/keys/options/"+tea, `{"hidden":false,"votes":2}`, key)
	one.Want("value", `"votes":2`)
}

func TestARestartedServerGoesOnWithTheSameValue(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	addOption(t, s, key, "tea")
	before := s.Watch(t, "/v1/options", "").Want("value", "tea")
	s.Kill()
	s = s.App.Serve()
	after := s.Watch(t, "/v1/options", "", "Last-Event-ID: "+before.ID)
	if got, err := after.Next(); got.Comment != "unchanged" || err != nil {
		t.Errorf("after a restart: %+v %v", got, err)
	}
	addOption(t, s, key, "coffee")
	after.Want("value", "coffee")
	after.Close()
	s.Stop()
}

func TestWatchesThatFailOrAreRefused(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	for path, want := range map[string]string{
		"/v1/writes": "a live route only reads", "/v1/enqueues": "a live route only reads",
		"/v1/bytes": `"code":"handler_failed"`,
	} {
		s.Watch(t, path, "").Want("problem", want)
	}
	s.Watch(t, "/v1/fetches", "").Want("value", "a live route only reads")
	s.WaitForOutput(`"msg":"handler failed".*must be UTF-8 text`)
	if got := s.Get("/v1/writes", ""); got.Status != 403 { // the same without watching: no policy lets it insert
		t.Errorf("the ordinary request: %+v", got)
	}
	for path, want := range map[string]int{"/v1/page?limit=x": 400, "/v1/nope": 404, "/keys/options": 401, "/mine/notes": 401} {
		if got := s.TryWatch(t, path, ""); got.StatusCode != want || got.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.Header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/v1/ordinary", "/v1/options"} {
		if got := s.Do("GET", path, "", "Accept: text/html, application/json"); got.Status != 200 || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s without the accept of events: %+v", path, got)
		}
	}
	if got := s.Do("GET", "/v1/ordinary", "", "Accept: text/event-stream"); got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("a route that is not live: %+v", got)
	}
	fails := s.Watch(t, "/v1/fails", "")
	fails.Want("problem", `"status":500`)
	addOption(t, s, key, "tea")
	fails.Want("value", "good")
}

// A row can become forbidden without a commit.
func TestAPolicyWithTheTimeIsEvaluatedEverySecond(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	offers := s.Watch(t, "/v1/offers", "")
	offers.Want("value", "0")
	s.Want(200, nil, "POST", "/keys/offers", "", key)
	offers.Want("value", "1")
	offers.Want("value", "0")
}

func TestTheAuthorityOfAWatchIsCheckedAgain(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	revoked := s.App.Key("create", "--scope", "voter", "--name", "revoked")
	one := s.Watch(t, "/keys/options", "", "X-API-Key: "+revoked.Token)
	one.Want("value", "[]")
	stays := s.Watch(t, "/keys/options", "", key)
	stays.Want("value", "[]")
	session := s.App.Session("u1")
	mine := s.Watch(t, "/mine/notes", "", "Cookie: "+session.Cookie)
	mine.Want("value", "[]")
	s.Want(200, nil, "POST", "/keys/notes", `{"owner":"u2","text":"of another"}`, key)
	s.Want(200, nil, "POST", "/keys/notes", `{"owner":"u1","text":"of u1"}`, key)
	if got := mine.Want("value", "of u1"); strings.Contains(got.Data, "another") {
		t.Errorf("the watch of u1 has %s", got.Data)
	}
	s.App.Must("api-keys", "revoke", revoked.ID)
	one.Want("end", `"status":401`)
	one.WantEnd()
	s.App.Must("sessions", "revoke", session.ID)
	mine.Want("end", `"status":401`)
	mine.WantEnd()
	addOption(t, s, key, "tea")
	stays.Want("value", "tea")
}

func TestManyWatchesShareAConnection(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	tea := addOption(t, s, key, "tea")
	shared := s.Watch(t, "/v1/_live", fmt.Sprintf(`{"watches":[{"name":"all","path":"/v1/options"},{"name":"none","path":"/v1/nope"},{"name":"tea","path":"/v1/options/%s"}]}`, tea))
	opened := shared.Want("open", "connection")
	var connection struct{ Connection string }
	if err := json.Unmarshal([]byte(opened.Data), &connection); err != nil {
		t.Fatal(err)
	}
	next := func(n int) map[string]harness.Event {
		t.Helper()
		got := map[string]harness.Event{}
		for range n {
			event, err := shared.Next()
			if err != nil {
				t.Fatal(err)
			}
			got[event.Watch] = event
		}
		return got
	}
	first := next(3)
	if first["all"].Kind != "value" || first["tea"].Kind != "value" || first["none"].Kind != "end" {
		t.Errorf("the first events are %+v", first)
	}
	change := func(want int, body string, headers ...string) {
		t.Helper()
		s.Want(want, nil, "POST", "/v1/_live", body, headers...)
	}
	change(204, fmt.Sprintf(`{"connection":%q,"remove":["all"],"add":[{"name":"offers","path":"/v1/offers"},{"name":"tea","path":"/v1/options/%s","lastEventId":%q}]}`,
		connection.Connection, tea, first["tea"].ID))
	if got := next(2); got["offers"].Data != "0" {
		t.Errorf("after the change there is %+v", got)
	}
	addOption(t, s, key, "coffee") // all is not watched any more
	s.Want(200, nil, "PUT", "/keys/options/"+tea, `{"votes":7}`, key)
	if got := next(1)["tea"]; !strings.Contains(got.Data, `"votes":7`) {
		t.Errorf("the next event is %+v", got)
	}
	change(404, fmt.Sprintf(`{"connection":%q,"remove":["tea"]}`, connection.Connection), key) // another sender
	change(404, `{"connection":"ABC","remove":["tea"]}`)
	change(400, `{"watches":[{"name":"a b","path":"/v1/options"}]}`)
	change(400, `{"watches":[{"name":"a","path":"/keys/options"}]}`)
	change(400, `{"watches":[{"name":"a","path":"https://example.com/v1/options"}]}`)
	change(400, `{"watch":[]}`)
	shared.Close()
	s.WaitUntil("the connection is gone", func() bool {
		return s.Do("POST", "/v1/_live", fmt.Sprintf(`{"connection":%q}`, connection.Connection)).Status == 404
	})
}

// The first activation changes the handler, the second ends the route.
func TestAnActivationRunsWatchesAgain(t *testing.T) {
	t.Parallel()
	s, _ := serveLive(t, "")
	watch := s.Watch(t, "/v1/options", "")
	watch.Want("value", "[]")
	s.App.Write("handlers/live.ts", strings.Replace(liveHandlers, `query("Option").orderBy("id");`, `["new"];`, 1))
	s.App.Must("build")
	s.App.Must("reload")
	watch.Want("value", `["new"]`)
	s.App.Write("app.schema", strings.Replace(harness.MustRead(t, s.App.Path("app.schema")), "options (live: 30m)", "options", 1))
	s.App.Must("build")
	s.App.Must("reload")
	watch.Want("end", `"status":404`)
	watch.WantEnd()
}

func TestWatchesHaveALimitAndShares(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "[front]\nmax_connections = 16\nmax_connections_per_ip = 16\n")
	held := 0
	for ; held < 16; held++ {
		got := s.TryWatch(t, "/v1/options", "")
		if got.StatusCode != 200 {
			if got.StatusCode != 429 {
				t.Errorf("the answer beyond the limit is %d", got.StatusCode)
			}
			break
		}
	}
	if held < 5 || held > 12 {
		t.Errorf("one caller has %d watches of 14", held)
	}
	s.Watch(t, "/keys/options", "", key).Want("value", "[]")
}

// A reader that takes nothing for a while gets the newest value, not all that it has missed.
func TestASlowWatcherGetsTheNewestValue(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "[live]\ninterval = \"1ms\"\n")
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "GET /v1/large HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	quick := s.Watch(t, "/v1/options", "")
	quick.Want("value", "[]")
	for range 3 {
		addOption(t, s, key, "tea")
		quick.Want("value", "tea")
	}
	if got := s.Get("/v1/options", ""); strings.Count(got.Body, "tea") != 3 {
		t.Errorf("beside a slow reader: %+v", got)
	}
	// What it reads at last ends with the newest value.
	var all []byte
	for buffer := make([]byte, 64<<10); bytes.Count(all[max(0, bytes.LastIndex(all, []byte("event: "))):], []byte("x")) < 900_000; {
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, buffer[:n]...)
	}
	text := string(all)
	if n := strings.Count(text, "event: value"); n < 1 || n > 4 {
		t.Errorf("it has %d values", n)
	}
}

// The connection ends without an event after its time, and the client opens another one.
func TestAWatchLastsAsLongAsItsRouteSays(t *testing.T) {
	t.Parallel()
	s, _ := serveLive(t, "")
	watch := s.Watch(t, "/v1/short", "")
	watch.Want("value", "[]")
	watch.WantEnd()
}

// The handler of a new release does not run for callers whom the release does not admit, even before their watches are
// checked: its answers may have data that these callers may not see.
func TestANewReleaseDoesNotRunForCallersItRefuses(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	anonymous := s.Watch(t, "/v1/options", "")
	anonymous.Want("value", "[]")
	stays := s.Watch(t, "/keys/options", "", key)
	stays.Want("value", "[]")
	s.App.Write("handlers/live.ts", strings.Replace(liveHandlers, `query("Option").orderBy("id");`, `["secret"];`, 1))
	s.App.Write("app.schema", strings.Replace(harness.MustRead(t, s.App.Path("app.schema")), `routes("/v1", auth: none,`, `routes("/v1", auth: apiKey(voter),`, 1))
	s.App.Must("build")
	s.App.Must("reload")
	stays.Want("value", "secret")
	anonymous.Want("end", `"status":401`)
	anonymous.WantEnd()
}

// open opens a shared connection of /v1, and returns its token.
func openShared(t *testing.T, s *harness.Server, body string, headers ...string) (*harness.Events, string) {
	t.Helper()
	shared := s.Watch(t, "/v1/_live", body, headers...)
	var opened struct{ Connection string }
	if err := json.Unmarshal([]byte(shared.Want("open", "connection").Data), &opened); err != nil {
		t.Fatal(err)
	}
	return shared, opened.Connection
}

func TestInvalidBodiesOfSharedConnections(t *testing.T) {
	t.Parallel()
	s, _ := serveLive(t, "")
	_, token := openShared(t, s, `{"watches":[]}`)
	for body, want := range map[string]int{
		"{\"watches\":[{\"name\":\"a\",\"path\":\"/v1/\xff\"}]}": 400,
		`{"watches":[]} and more`:                                400,
		`{"watches":[],"watches":[]}`:                            400,
		`{"add":[{"name":"a","path":"/v1/options"}]}`:            400,
		fmt.Sprintf(`{"connection":%q,"watches":[]}`, token):     400,
		fmt.Sprintf(`{"connection":%q,"add":[]}`, token):         204,
		strings.Repeat("[", 300<<10):                             413,
		strings.Repeat("[", 200<<10):                             400,
	} {
		s.Want(want, nil, "POST", "/v1/_live", body)
	}
	for path, want := range map[string]int{
		"/v1/%2e%2e/options": 400, "/v1/../keys/options": 400, "/v1/options a": 400, "/v1/page?limit=1 2": 400, "/v1/options#a": 400,
		"/v1/options?\n": 400, "/v1/page?%ff": 400, "/v1/options?" + strings.Repeat("x", 8<<10): 414,
		"/v1/_live": 404, "/v1/": 404, "/v1/ordinary": 404,
	} {
		shared, _ := openShared(t, s, fmt.Sprintf(`{"watches":[{"name":"a","path":%q}]}`, path))
		shared.Want("end", fmt.Sprintf(`"status":%d`, want))
	}
}

func TestANameOfAFullConnectionCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	s, key := serveLive(t, "")
	var watches []string
	for i := range 100 {
		watches = append(watches, fmt.Sprintf(`{"name":"w%d","path":"/v1/options?%d"}`, i, i))
	}
	shared, token := openShared(t, s, `{"watches":[`+strings.Join(watches, ",")+`]}`)
	for range 100 {
		shared.Want("value", "[]")
	}
	s.Want(400, nil, "POST", "/v1/_live", fmt.Sprintf(`{"connection":%q,"remove":["w8"],"add":[{"name":"x","path":"/v1/offers"},{"name":"y","path":"/v1/offers"}]}`, token))
	s.Want(204, nil, "POST", "/v1/_live", fmt.Sprintf(`{"connection":%q,"add":[{"name":"w7","path":"/v1/offers"}]}`, token))
	if got := shared.Want("value", "0"); got.Watch != "w7" {
		t.Errorf("the other watch of the name is %+v", got)
	}
	addOption(t, s, key, "tea")
	for range 99 { // with w8: the request that was refused has changed nothing
		shared.Want("value", "tea")
	}
}

// All watches of a connection end with the same refusal, which counts as one refused credential.
func TestAllWatchesOfARevokedKeyEnd(t *testing.T) {
	t.Parallel()
	s, _ := serveLive(t, "")
	revoked := s.App.Key("create", "--scope", "voter", "--name", "revoked")
	var watches []string
	for i := range 40 {
		watches = append(watches, fmt.Sprintf(`{"name":"w%d","path":"/keys/options?%d"}`, i, i))
	}
	body := `{"watches":[` + strings.Join(watches, ",") + `]}`
	shared := s.Watch(t, "/keys/_live", body, "X-API-Key: "+revoked.Token)
	shared.Want("open", "")
	for range watches {
		shared.Want("value", "[]")
	}
	s.App.Must("api-keys", "revoke", revoked.ID)
	for range watches {
		shared.Want("end", `"status":401`)
	}
	again := s.Watch(t, "/keys/_live", body, "X-API-Key: "+revoked.Token)
	again.Want("open", "")
	for range watches {
		again.Want("end", `"status":401`)
	}
	if got := s.Do("GET", "/keys/options", "", "X-API-Key: "+revoked.Token); got.Status != 401 {
		t.Errorf("then a request gets %+v", got)
	}
}

func TestConnectionsWithoutWatchesAreCounted(t *testing.T) {
	t.Parallel()
	s, _ := serveLive(t, "[front]\nmax_connections = 16\nmax_connections_per_ip = 16\n")
	for held := range 16 {
		got := s.TryWatch(t, "/v1/_live", `{"watches":[]}`)
		if got.StatusCode == 429 && held > 3 {
			return
		}
		if got.StatusCode != 200 {
			t.Fatalf("after %d connections: %d", held, got.StatusCode)
		}
	}
	t.Error("one caller has all connections")
}

// A page of another origin may use a shared connection if it may read each of its routes.
func TestPagesOfOtherOriginsReadASharedConnection(t *testing.T) {
	t.Parallel()
	const page = "https://page.example"
	serve := func(second string) *harness.Server {
		a := harness.NewApp(t, fmt.Sprintf(`
auth { session cookie { } }
routes("/v1", auth: none, rateLimit: none, cors: [%q]) { GET /open -> open (live: 30m) }
routes("/v1", auth: session, rateLimit: none%s) { GET /own -> own (live: 30m) }
`, page, second), "")
		a.Write("handlers/own.ts", `export const own = () => "own"; export const open = () => "open";`)
		a.Must("build")
		return a.Serve()
	}
	for second, want := range map[string]string{"": "", fmt.Sprintf(", cors: [%q]", page): page} {
		s := serve(second)
		shared := s.Watch(t, "/v1/_live", `{"watches":[]}`, "Origin: "+page)
		if got := shared.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("with cors%q: the origin %q may read it, want %q", second, got, want)
		}
		if got := shared.Header.Get("Access-Control-Allow-Credentials"); (got == "true") != (want != "") {
			t.Errorf("with cors%q: cookies: %q", second, got)
		}
	}
}
