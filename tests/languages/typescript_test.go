package languages_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

// shop builds and serves the app in testdata/typescript, and returns a token of its scope
// orders.
func shop(t *testing.T) (*harness.Server, string) {
	t.Helper()
	a := harness.NewApp(t, "", "")
	if err := os.Remove(a.Path("app.schema")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(a.Dir, os.DirFS(harness.Testdata("typescript"))); err != nil {
		t.Fatal(err)
	}
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK=the secret of the hook")
	a.Must("build")
	return a.Serve(), a.Token("orders")
}

func TestATypeScriptAppNeedsOnlyTheRunner(t *testing.T) {
	s, token := shop(t)
	made := s.Matches(201, `\{"id":"[0-9a-z]{26}","item":"tea","qty":2,"status":"open","code":null,"weight":null,"placedAt":"[^"]+"\}`, "POST", "/v1/orders", `{"item":"tea","qty":2}`, token)
	var order struct{ ID string }
	if err := json.Unmarshal([]byte(made.Body), &order); err != nil {
		t.Fatal(err)
	}
	at := "/v1/orders/" + order.ID
	if made.Header.Get("Location") != at {
		t.Errorf("the Location is %q, want %q", made.Header.Get("Location"), at)
	}
	s.Matches(200, `\[\{"id":"`+order.ID+`","item":"tea"\}\]`, "GET", "/v1/orders?item=tea", "", token)
	s.Matches(200, `\{.*"item":"tea".*\}`, "GET", at, "", token)
	s.Matches(200, `"paid"`, "PATCH", at, "", token)
	s.Matches(204, "", "DELETE", at, "", token)
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		s.Matches(404, `.*"code":"not_found".*`, method, at, "", token)
	}
	s.Matches(400, `.*"detail":"missing field: item".*`, "POST", "/v1/orders", ``, token)
	s.Matches(400, `.*"code":"invalid_json".*`, "POST", "/v1/orders", `{"item":`, token)
	s.Matches(201, `\["a","b"\]`, "POST", "/v1/orders/bulk", `[{"item":"a"},{"item":"b"}]`, token)
	if got := s.Get("/v1/orders", ""); got.Status != 401 {
		t.Errorf("without a key: %d", got.Status)
	}
	if log := s.Stderr.String(); !strings.Contains(log, "order placed {id: ") {
		t.Errorf("the log has no line of the handler:\n%s", log)
	}
}

func TestTypeScriptReachesRowsWithTheCallersAuthority(t *testing.T) {
	s, token := shop(t)
	s.Matches(201, `.*`, "POST", "/v1/orders/bulk", `[{"item":"a"},{"item":"b","qty":2},{"item":"c","qty":3},{"item":"d","qty":4},{"item":"e","qty":5}]`, token)
	var all []struct{ ID, Item string }
	if err := json.Unmarshal([]byte(s.Get("/v1/orders", token).Body), &all); err != nil {
		t.Fatal(err)
	}
	for _, order := range all[3:] {
		s.Matches(200, `"paid"`, "PATCH", "/v1/orders/"+order.ID, "", token)
	}
	s.Matches(200, regexp.QuoteMeta(`{"first":"e","count":3,"page":"ab|cd","open":"abc","or":"eda","not":"d","select":"c","none":[],"unchanged":5,"get":5,"missing":null,"failed":"not_found"}`),
		"GET", "/v1/queries", "", token)
	for _, row := range []struct {
		what   string
		status int
		want   string
	}{
		{"rows", 200, `[{"item":"b"}]`},
		{"first", 200, `{"item":"b"}`},
		{"page", 200, `{"rows":[{"item":"b"}],"nextCursor":null}`},
		{"count", 200, `1`},
		{"update", 200, `1`},
		{"removed", 200, `0`},
		{"keys", 200, `[]`},
	} {
		s.Matches(row.status, regexp.QuoteMeta(row.want), "GET", "/v1/direct/"+row.what, "", token)
	}
	s.Matches(404, `.*"code":"not_found".*`, "GET", "/v1/direct/missing", "", token)
	s.Matches(200, `\[\{.*"item":"b","qty":2,.*\}\]`, "GET", "/v1/direct/updated", "", token)
	s.Matches(200, `\[\{.*"item":"f".*\}\]`, "GET", "/v1/direct/list", "", token)
	s.Matches(200, `\["invalid","invalid","invalid","invalid","not_found","conflict","invalid","invalid","invalid","invalid","invalid"\]`, "GET", "/v1/mistakes", "", token)

	reader := s.App.Token("readers")
	s.Matches(200, `.*"item":"a".*`, "GET", "/v1/orders", "", reader)
	s.Matches(200, `\{"id":"[^"]+","item":"a"\}`, "GET", "/v1/orders/"+all[0].ID, "", reader)
	s.Matches(403, `.*"code":"forbidden".*`, "POST", "/v1/orders", `{"item":"x"}`, reader)
	s.Matches(403, `.*"code":"forbidden".*`, "DELETE", "/v1/orders/"+all[0].ID, "", reader)
}

func TestAFailedOperationIsLoggedWithThePlaceOfItsAwait(t *testing.T) {
	s, token := shop(t)
	s.Matches(500, `.*"code":"handler_failed".*`, "GET", "/v1/misspelt", "", token)
	s.Stop() // then the log is complete
	if log := s.Stderr.String(); !strings.Contains(log, `"handler":"misspelt"`) || !strings.Contains(log, `"cause":"invalid: `) || !strings.Contains(log, `"misspelt (handlers/orders.ts:`) {
		t.Errorf("the log is\n%s", log)
	}
}

func TestTheLogOfAStoppedHandlerNamesItsPlaceAndTheSetting(t *testing.T) {
	a := harness.NewApp(t, `app stopped
entity Item { id: id n: int @@allow read to anonymous }
routes("/", auth: none, rateLimit: none) {
  GET /short -> waits (timeout: 300ms)
  GET /long -> waits
  GET /spin -> spins (timeout: 60s)
  GET /rows -> rows (timeout: 60s)
  POST /body -> reads (body: 8mb, timeout: 60s)
  POST /whole -> readsBytes (body: 8mb, timeout: 60s)
}
`, "[runtime]\ntimeout = \"600ms\"\n[sandbox]\ncpu = \"500ms\"\nmemory = \"8mb\"\nhost_calls = 1000000\nstore_operations = 1000000\n")
	a.Write("handlers/stopped.ts", `import { ok, query, type RouteRequest } from "@runner/sdk";
export const waits = () => new Promise((done) => setTimeout(done, 60_000));
export const spins = () => { for (;;) Math.max(1); };
export const reads = (req: RouteRequest) => ok(req.body().length);
export const readsBytes = (req: RouteRequest) => ok(req.rawBody.length);
export const rows = async () => { for (;;) await query("Item").where("n", "=", 5); };
`)
	a.Must("build")
	s := a.Serve()
	for _, path := range []string{"/short", "/long", "/spin", "/rows"} {
		s.Matches(504, `.*"code":"handler_timeout".*`, "GET", path, "", "")
	}
	s.Matches(500, `.*"code":"handler_out_of_memory".*`, "POST", "/body", "["+strings.Repeat("[],", 1<<18)+"1]", "")
	s.Matches(500, `.*"code":"handler_out_of_memory".*`, "POST", "/whole", strings.Repeat(" ", 7<<20)+"1", "")
	s.Stop() // then the log is complete
	log := s.Stderr.String()
	for handler, want := range map[string]string{
		"waits":      `"kind":"time limit","cause":"handler took longer than 300ms \(timeout: of the route\).*"frames":\[.*handlers/stopped\.ts:2:`,
		"spins":      `"kind":"CPU limit","cause":"handler used more than 500ms of CPU \(\[sandbox\] cpu\).*"frames":\["spins \(handlers/stopped\.ts:3:`,
		"reads":      `"kind":"memory limit","cause":"handler needed more than 8mb of memory \(\[sandbox\] memory\).*"frames":\["reads \(handlers/stopped\.ts:4:`,
		"rows":       `"kind":"(CPU|time) limit","cause":.*"frames":\["rows \(handlers/stopped\.ts:6:`, // also while an operation runs
		"readsBytes": `"kind":"memory limit","cause":"handler needed more than 8mb of memory.*"frames":\["readsBytes \(handlers/stopped\.ts:5:`,
	} {
		if !regexp.MustCompile(`"msg":"handler failed".*"handler":"` + handler + `".*` + want).MatchString(log) {
			t.Errorf("%s: the log does not have %s", handler, want)
		}
	}
	if !strings.Contains(log, "handler took longer than 600ms ([runtime] timeout)") {
		t.Error("the log does not name the setting of all routes")
	}
	if strings.Contains(log, `\u0000`) || strings.Contains(log, "stack trace") || t.Failed() {
		t.Errorf("the log is\n%s", log)
	}
}

func TestOnlyAChangeThatIsNeverAwaitedIsAWarning(t *testing.T) {
	s, token := shop(t)
	s.Matches(200, "0", "POST", "/v1/changes", "", token)
	if log := s.Stderr.String(); strings.Count(log, "was never awaited") != 1 || !strings.Contains(log, "handler changes: an insert into Order was never awaited, so nothing was written: add await") {
		t.Errorf("the log is\n%s", log)
	}
}

func TestARequestOfTypeScriptIsOneTransaction(t *testing.T) {
	s, token := shop(t)
	s.Matches(422, `.*"detail":"changed my mind".*`, "POST", "/v1/undone", "", token)
	s.Matches(422, `.*`, "POST", "/v1/kept", "", token)
	s.Matches(200, `\[\{"id":"[^"]+","item":"kept"\}\]`, "GET", "/v1/orders", "", token)

	s.Matches(201, `.*`, "POST", "/v1/orders", `{"item":"counter","code":"counter"}`, token)
	const visitors, visits = 4, 10
	var done sync.WaitGroup
	counted := make(chan int, visitors*visits)
	for range visitors {
		done.Go(func() {
			for range visits {
				got, err := s.Try("POST", "/v1/counter", "", "X-API-Key: "+token)
				if err == nil && got.Status == 200 {
					counted <- 1
				} else if err != nil || got.Status != 409 {
					t.Errorf("counts %d %s, %v", got.Status, got.Body, err)
				}
			}
		})
	}
	done.Wait()
	s.Matches(200, fmt.Sprint(2+len(counted)), "POST", "/v1/counter", "", token)
}

func TestTypeScriptManagesAPIKeys(t *testing.T) {
	s, token := shop(t)
	var got struct {
		Token, Rotated, Status, Revoked string
		Metadata                        map[string]int
		Hidden, Next                    bool
		Listed, All                     []string
	}
	body := s.Matches(200, `.*`, "GET", "/v1/keys", "", token).Body
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if !harness.TokenForm.MatchString(got.Token) || !harness.TokenForm.MatchString(got.Rotated) || got.Token == got.Rotated || got.Hidden ||
		got.Metadata["n"] != 1 || got.Status != "rotating" || got.Revoked != "revoked" || !got.Next || !slices.Equal(got.Listed, []string{"made"}) || !slices.Equal(got.All, []string{"made"}) {
		t.Errorf("got %s", body)
	}
	for _, dead := range []string{got.Token, got.Rotated} {
		s.Matches(401, `.*"code":"invalid_token".*`, "GET", "/v1/orders", "", dead)
	}
}

func TestATypeScriptWebhookVerifiesItsBody(t *testing.T) {
	s, _ := shop(t)
	body := `{"order": "o1", "odd": "` + "ü" + `"}`
	mac := hmac.New(sha256.New, []byte("the secret of the hook"))
	mac.Write([]byte(body))
	signature := hex.EncodeToString(mac.Sum(nil))
	for _, row := range []struct {
		body   string
		status int
		header []string
	}{
		{body, 200, []string{"X-Signature: " + signature}},
		{body + " ", 401, []string{"X-Signature: " + signature}},
		{body, 401, []string{"X-Signature: " + signature[2:]}},
		{body, 401, []string{"X-Signature: not hex"}},
		{body, 400, nil},
	} {
		if got := s.Do("POST", "/hooks/paid", row.body, row.header...); got.Status != row.status || row.status == 200 && got.Body != `"o1"` {
			t.Errorf("%q with %v answers %d %s, want %d", row.body, row.header, got.Status, got.Body, row.status)
		}
	}
}

// The runner was built from a clone without the engine.
func TestARunnerWithoutTheEngineSaysHowToGetIt(t *testing.T) {
	engine := harness.RepoFile("develop/toolchain/typescript/engine/quickjs.wasm")
	without, bare := filepath.Join(t.TempDir(), "overlay.json"), filepath.Join(t.TempDir(), "runner")
	if err := os.WriteFile(without, []byte(fmt.Sprintf(`{"Replace": {%q: ""}}`, engine)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := harness.Go("build", "-overlay", without, "-o", bare, "./cmd/runner"); err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, "app n routes(\"/\", auth: none, rateLimit: none) { GET / -> a }\n", "")
	a.Write("handlers/a.ts", "export const a = () => 1;\n")
	cmd := exec.Command(bare, "build")
	cmd.Dir = a.Dir
	out, err := cmd.CombinedOutput()
	want := "runner: error: this runner was built without the JavaScript engine, which TypeScript needs: in its source directory, run make build, or tools/fetch-engine.sh && go install ./cmd/runner\n"
	if err == nil || string(out) != want {
		t.Errorf("%v, %s", err, out)
	}
}
