package keys_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestATokenIsShownOnce(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "[telemetry]\nlevel = \"debug\"\naccess_log = true\n", "echo")
	s := a.Serve()
	out := a.Run("api-keys", "create", "--scope", "reader", "--name", "once")
	tokens := harness.TokenForm.FindAllString(out.Stdout, -1)
	if out.Status != 0 || len(tokens) != 1 {
		t.Fatalf("create: %d %q", out.Status, out.Stdout)
	}
	lines := strings.Split(strings.TrimRight(out.Stdout, "\n"), "\n")
	if lines[len(lines)-1] != tokens[0] || !strings.Contains(out.Stderr, "once") || harness.TokenForm.MatchString(out.Stderr) {
		t.Errorf("stdout %q, stderr %q: want the token on the last line and a note about it on stderr", out.Stdout, out.Stderr)
	}
	token := tokens[0]
	id := regexp.MustCompile(`key_[0-9a-z]{26}`).FindString(out.Stdout)
	if got := s.Get("/v1/dump", token); got.Status != 200 || strings.Contains(got.Body, token) {
		t.Errorf("use: %d", got.Status)
	}
	rotated := a.Key("rotate", id, "--grace-period", "1h").Token
	for _, args := range [][]string{
		{"api-keys", "list"}, {"api-keys", "list", "--all", "--json"}, {"api-keys", "show", id}, {"api-keys", "show", id, "--json"},
		{"api-keys", "disable", id}, {"api-keys", "enable", id}, {"api-keys", "revoke", id}, {"api-keys", "revoke", id, "--json"},
	} {
		r := a.Run(args...)
		if r.Status != 0 || harness.TokenForm.MatchString(r.Stdout+r.Stderr) {
			t.Errorf("%s: %d %s%s", strings.Join(args, " "), r.Status, r.Stdout, r.Stderr)
		}
	}
	s.Get("/v1/dump", token)
	s.Stop()
	if strings.Contains(s.Stderr.String(), token[:20]) || harness.TokenForm.MatchString(s.Stderr.String()) {
		t.Errorf("the log contains a token:\n%s", s.Stderr.String())
	}
	harness.AssertNotStored(t, a, token, rotated)
}

func TestNoTokenInAnyOutput(t *testing.T) {
	schema := harness.ProbeSchema + "routes(\"/v2\", auth: apiKey(reader), rateLimit: 5/minute) { GET /trap/:x -> trap  GET /loop -> loop (timeout: 50ms)  POST /say -> say }\n"
	a := harness.NewApp(t, schema, "[telemetry]\nlevel = \"debug\"\naccess_log = true\n[metrics]\nlisten = \"127.0.0.1:0\"\n", "echo", "hostile")
	s := a.Serve()
	canary := a.Token("reader")
	for _, request := range []string{
		"GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer {t}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer {t} {t}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: {t}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nX-API-Key: {t}x\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization Bearer {t}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization : Bearer {t}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: {t}\nBad Header {t}: 1\n\n",
		"GET /v1/dump?token={t} HTTP/1.1\nHost: probe\n\n",
		"GET /{t} HTTP/1.1\nHost: probe\n\n",
		"GET /{t}// HTTP/1.1\nHost: probe\n\n",
		"{t} / HTTP/1.1\nHost: probe\n\n",
		"GET / {t}\nHost: probe\n\n",
		"{t}\n\n",
		"POST /dump HTTP/1.1\nHost: probe\nContent-Length: 40\n\n{t}",
		"POST /dump HTTP/1.1\nHost: probe\nTransfer-Encoding: chunked\n\n{t}\n{t}\n0\n\n",
		"POST /dump HTTP/1.1\nHost: probe\nContent-Length: {t}\n\n",
		"GET /header HTTP/1.1\nHost: probe\nX-Name: {t}\nX-Value: v\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie: __Host-session={t}; a={t}\n\n",
		"GET /v2/trap/{t}?{t}={t} HTTP/1.1\nHost: probe\nX-API-Key: {t}\nTraceparent: {t}\n\n",
		"GET /v2/loop?{t} HTTP/1.1\nHost: probe\nX-API-Key: {t}\nUser-Agent: {t}\n\n",
		"POST /v2/say HTTP/1.1\nHost: probe\nX-API-Key: {t}\nX-Log: the caller sent {t}\nContent-Length: 40\n\n{t}",
		"POST /v2/say HTTP/1.1\nHost: probe\nX-API-Key: {t}\nX-Forwarded-For: {t}\nContent-Length: 0\n\n",
		"GET /v2/trap/x HTTP/1.1\nHost: probe\nX-API-Key: {t}\n\n", // the limit refuses it
	} {
		request = strings.ReplaceAll(strings.ReplaceAll(request, "\n", "\r\n"), "{t}", canary)
		reply := s.Raw(request, 100*time.Millisecond)
		if dumped := strings.Contains(request, " /dump "); !dumped && strings.Contains(reply, canary) {
			t.Errorf("the answer to %q contains the canary: %s", request, reply)
		}
	}
	var state struct{ Metrics string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &state); err != nil {
		t.Fatal(err)
	}
	got, err := http.Get(state.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	metrics, err := io.ReadAll(got.Body)
	if err != nil || !strings.Contains(string(metrics), "runner_requests_total") {
		t.Fatalf("metrics: %.200s, %v", metrics, err)
	}
	outputs := map[string]string{"the metrics": string(metrics)}
	for _, args := range [][]string{{"audit", "list", "--json"}, {"audit", "list"}, {"status", "--json"}, {"api-keys", "list", "--all", "--json"}, {"store", "stats"}} {
		r := a.Run(args...)
		outputs[strings.Join(args, " ")] = r.Stdout + r.Stderr
	}
	s.Stop()
	log := s.Stderr.String()
	for _, want := range []string{"unreachable", "/v2/trap/:x", "the caller sent"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	outputs["the log"] = log
	for name, text := range outputs {
		if strings.Contains(text, canary) || strings.Contains(text, canary[4:34]) {
			t.Errorf("%s contains the canary:\n%s", name, text)
		}
	}
	harness.AssertNotStored(t, a, canary)
}

func TestRotationWithAndWithoutGrace(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	status := func(token string) int { return s.Get("/v1/dump", token).Status }

	first := a.Key("create", "--scope", "reader", "--name", "graceful")
	second := a.Key("rotate", first.ID, "--grace-period", "24h")
	if second.ID != first.ID || second.Status != "rotating" || second.PreviousTokenExpiresAt == nil || second.Token == first.Token {
		t.Errorf("rotated to %+v", second)
	}
	if status(first.Token) != 200 || status(second.Token) != 200 {
		t.Error("both tokens must be valid during the grace period")
	}
	third := a.Key("rotate", first.ID)
	if status(first.Token) != 401 || status(second.Token) != 401 || status(third.Token) != 200 {
		t.Error("without a grace period all older tokens must be invalid at once")
	}
	a.Must("api-keys", "revoke", first.ID)
	if status(third.Token) != 401 {
		t.Error("a revoked key must be invalid at once")
	}
	if r := a.Run("api-keys", "rotate", first.ID); r.Status != 5 {
		t.Errorf("rotate a revoked key: exit status %d, want 5\n%s", r.Status, r.Stderr)
	}
}

func TestDisabledKeysCanBeEnabledAndExpiredOnesCannot(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	key := a.Key("create", "--scope", "reader", "--name", "k", "--metadata", `{"team":"a"}`, "--expires", "90d")
	if key.ExpiresAt == nil || strings.Join(strings.Fields(string(key.Metadata)), "") != `{"team":"a"}` || key.Capability != "probe.reader" {
		t.Errorf("created %+v", key)
	}
	for _, step := range []struct {
		command string
		status  int
	}{{"disable", 401}, {"enable", 200}} {
		a.Must("api-keys", step.command, key.ID)
		if got := s.Get("/v1/dump", key.Token).Status; got != step.status {
			t.Errorf("after %s: %d, want %d", step.command, got, step.status)
		}
	}
	short := a.Key("create", "--scope", "reader", "--name", "short", "--expires", "1s")
	deadline := time.Now().Add(harness.Timeout)
	for s.Get("/v1/dump", short.Token).Status != 401 {
		if time.Now().After(deadline) {
			t.Fatal("a key with a lifetime of one second does not expire")
		}
	}
	if got := a.Key("show", short.ID); got.Status != "expired" {
		t.Errorf("status %q, want expired", got.Status)
	}
	if r := a.Run("api-keys", "enable", short.ID); r.Status != 5 {
		t.Errorf("enable an expired key: exit status %d, want 5\n%s", r.Status, r.Stderr)
	}
}

func TestCommandsWorkWithAndWithoutAServer(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	before := a.Key("create", "--scope", "reader", "--name", "before")
	s := a.Serve()
	during := a.Key("create", "--scope", "writer", "--name", "during")
	if got := s.Get("/v1/dump", before.Token).Status; got != 200 {
		t.Errorf("a key created before the server started: %d", got)
	}
	if got := s.Get("/v1/dump", during.Token).Status; got != 200 {
		t.Errorf("a key created while the server runs: %d", got)
	}
	listing := func() (ids []string) {
		var keys []harness.APIKey
		if err := json.Unmarshal([]byte(a.Must("api-keys", "list", "--json")), &keys); err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			ids = append(ids, k.ID+k.Status+k.Name)
		}
		return ids
	}
	beside := listing()
	s.Stop()
	if alone := listing(); fmt.Sprint(alone) != fmt.Sprint(beside) || len(alone) != 2 {
		t.Errorf("with a server %q, without %q", beside, alone)
	}
	rows := []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"api-keys", "create", "--scope", "readr", "--name", "x"}, 3, `did you mean "reader"?`},
		{[]string{"api-keys", "create", "--name", "x"}, 2, "scope"},
		{[]string{"api-keys", "create", "--scope", "reader", "--name", "x", "--expires", "soon"}, 3, "soon"},
		{[]string{"api-keys", "create", "--scope", "reader", "--name", "x", "--metadata", "[1]"}, 3, "metadata"},
		{[]string{"api-keys", "revoke", "key_00000000000000000000000000"}, 4, "no API key with this id"},
		{[]string{"api-keys", "show", "nothing"}, 4, "no API key with this id"},
		{[]string{"api-keys", "rotate"}, 2, "id"},
		{[]string{"api-kyes", "list"}, 2, "api-keys"},
	}
	for _, row := range rows {
		r := a.Run(row.args...)
		if r.Status != row.status || !strings.Contains(r.Stderr, row.says) || !strings.HasPrefix(r.Stderr, "runner: error: ") || r.Stdout != "" {
			t.Errorf("%s: exit status %d, want %d\n%s%s", strings.Join(row.args, " "), r.Status, row.status, r.Stdout, r.Stderr)
		}
	}
}

func TestRevokeIsImmediate(t *testing.T) {
	rounds, callers := 20, 16
	if harness.Soak {
		rounds, callers = 1000, 64
	}
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	for round := range rounds {
		key := a.Key("create", "--scope", "reader", "--name", fmt.Sprint("round ", round))
		s.RevokeUnderLoad(callers, "Authorization: Bearer "+key.Token, func() { a.Must("api-keys", "revoke", key.ID) })
	}
}

func TestKeysSurviveACrash(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	kept, revoked := a.Key("create", "--scope", "reader", "--name", "kept"), a.Key("create", "--scope", "reader", "--name", "revoked")
	a.Must("api-keys", "revoke", revoked.ID)
	s.Kill()
	s = a.Serve()
	if got := s.Get("/v1/dump", kept.Token).Status; got != 200 {
		t.Errorf("the key that was kept: %d", got)
	}
	if got := s.Get("/v1/dump", revoked.Token).Status; got != 401 {
		t.Errorf("the key that was revoked: %d", got)
	}
}

// The schema's @issue alone decides which keys a handler may manage.
func TestHandlersManageOnlyTheKeysTheirCallerMayIssue(t *testing.T) {
	a := harness.NewApp(t, `
apiKeys {
  prefix: "adm",
  scopes: {
    admin: @system("admin") { @grant read on Thing },
    partner: @system("partner") {
      @grant read on Thing
      @issue when auth.scope == "admin"
    },
    closed: @system("closed") { @grant read on Thing }
  }
}
routes("/op", rateLimit: none) {
  POST /admin -> op (auth: apiKey(admin))
  POST /partner -> op (auth: apiKey(partner))
  POST /none -> op (auth: none)
}`, "", "echo")
	s := a.Serve()
	admin, partner := a.Token("admin"), a.Token("partner")
	other := a.Key("create", "--scope", "closed", "--name", "other")
	op := func(path, token, name, args string) (int, map[string]any) {
		t.Helper()
		got := s.Do("POST", path, args, "Authorization: Bearer "+token, "X-Op: "+name)
		var result map[string]any
		if err := json.Unmarshal([]byte(got.Body), &result); err != nil {
			t.Fatalf("%s %s: %d %q", name, args, got.Status, got.Body)
		}
		return got.Status, result
	}
	status, made := op("/op/admin", admin, "apiKeys.create", `{"scope":"partner","name":"made","metadata":{"a":1}}`)
	token, _ := made["token"].(string)
	id, _ := made["id"].(string)
	if status != 200 || !harness.TokenForm.MatchString(token) || !strings.HasPrefix(token, "adm_") {
		t.Fatalf("create: %d %v", status, made)
	}
	if status, _ := op("/op/partner", token, "apiKeys.list", `{}`); status != 200 {
		t.Errorf("the created key does not work: %d", status)
	}
	rows := []struct{ path, token, name, args, code string }{
		{"/op/admin", admin, "apiKeys.create", `{"scope":"closed"}`, "denied"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":"admin"}`, "denied"},
		{"/op/partner", partner, "apiKeys.create", `{"scope":"partner"}`, "denied"},
		{"/op/none", "", "apiKeys.create", `{"scope":"partner"}`, "denied"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":"nowhere"}`, "invalid"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":"partner","tenant":"t"}`, "invalid"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":"partner","userId":"u"}`, "invalid"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":"partner","scope":"closed"}`, "invalid"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":"partner","expiresIn":0}`, "invalid"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":"partner","expiresIn":-5}`, "invalid"},
		{"/op/admin", admin, "apiKeys.create", `{"scope":`, "invalid"},
		{"/op/admin", admin, "apiKeys.get", `{"id":"` + other.ID + `"}`, "not_found"},
		{"/op/admin", admin, "apiKeys.revoke", `{"id":"` + other.ID + `"}`, "not_found"},
		{"/op/admin", admin, "apiKeys.rotate", `{"id":"` + other.ID + `"}`, "not_found"},
		{"/op/admin", admin, "apiKeys.revoke", `{"id":"key_00000000000000000000000000"}`, "not_found"},
		{"/op/partner", partner, "apiKeys.get", `{"id":"` + id + `"}`, "not_found"},
		{"/op/admin", admin, "apiKeys.dance", `{}`, "invalid"},
		{"/op/admin", admin, "secret", `{"name":"NOT_DECLARED"}`, "denied"},
	}
	for _, row := range rows {
		if status, result := op(row.path, row.token, row.name, row.args); status != 299 || result["code"] != row.code || result["message"] == "" {
			t.Errorf("%s %s by %s: %d %v, want %s", row.name, row.args, row.path, status, result, row.code)
		}
	}
	// the other key is still active, and only the caller's own key is listed
	if got := a.Key("show", other.ID); got.Status != "active" {
		t.Errorf("the other key is %s", got.Status)
	}
	_, page := op("/op/admin", admin, "apiKeys.list", `{}`)
	text := fmt.Sprint(page)
	if strings.Contains(text, other.ID) || !strings.Contains(text, id) || harness.TokenForm.MatchString(text) {
		t.Errorf("list gives %s", text)
	}
	status, rotated := op("/op/admin", admin, "apiKeys.rotate", `{"id":"`+id+`","gracePeriod":3600}`)
	if status != 200 || rotated["status"] != "rotating" || s.Do("POST", "/op/partner", "{}", "X-API-Key: "+token, "X-Op: apiKeys.list").Status != 200 {
		t.Errorf("rotate: %d %v", status, rotated)
	}
	if status, revoked := op("/op/admin", admin, "apiKeys.revoke", `{"id":"`+id+`"}`); status != 200 || revoked["status"] != "revoked" {
		t.Errorf("revoke: %d %v", status, revoked)
	}
	if got := s.Do("POST", "/op/partner", "{}", "X-API-Key: "+token, "X-Op: apiKeys.list"); got.Status != 401 {
		t.Errorf("after revoke: %d", got.Status)
	}
}

func TestBruteForceIsThrottled(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	good := a.Token("reader")
	bad := harness.WithChecksum("rnk", strings.Repeat("0", 30))
	for i := range 30 {
		want := 401
		if i >= 20 {
			want = 429
		}
		got := s.Get("/v1/dump", bad)
		if got.Status != want {
			t.Fatalf("failure %d: %d, want %d", i+1, got.Status, want)
		}
		if want == 429 && got.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	if got := s.Get("/v1/dump", good).Status; got != 200 {
		t.Errorf("a valid key from the same address: %d", got)
	}
	// A key that has only expired is not a guess; one that was revoked is.
	short := a.Key("create", "--scope", "reader", "--name", "short", "--expires", "1s")
	s.WaitUntil("the key to expire", func() bool { return s.Get("/v1/dump", short.Token).Status == 401 })
	revoked := a.Key("create", "--scope", "reader", "--name", "revoked")
	a.Must("api-keys", "revoke", revoked.ID)
	if got := s.Get("/v1/dump", revoked.Token).Status; got != 429 {
		t.Errorf("a revoked key from the same address: %d", got)
	}
	if got := s.Get("/v1/dump", short.Token).Status; got != 401 {
		t.Errorf("an expired key from the same address: %d", got)
	}
}

func TestAKeyWithoutATenantThatWouldSeeNothingIsRefused(t *testing.T) {
	a := harness.NewApp(t, `auth { session cookie {} tenant: Org }
entity Org { id: id }
entity Task { id: id org: Org @tenant }
apiKeys { scopes: { tasks: @system("tasks") { @grant read on Task } } }
routes("/", auth: apiKey(tasks), rateLimit: none) { GET /tasks -> op }
`, "", "echo")
	want := "add --tenant, or @allTenants to the scope"
	if r := a.Run("api-keys", "create", "--scope", "tasks", "--name", "n"); r.Status != 3 || !strings.Contains(r.Stderr, want) || r.Stdout != "" {
		t.Errorf("exits %d, want 3 and %q\n%s%s", r.Status, want, r.Stdout, r.Stderr)
	}
	a.Must("api-keys", "create", "--scope", "tasks", "--name", "n", "--tenant", "acme")
}
