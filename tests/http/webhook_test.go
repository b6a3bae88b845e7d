package http_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/state/store"
	"runner.example/state/webhook"
	"runner.example/tests/harness"
)

const webhookSchema = `
secret STANDARD
secret OTHER
type Event { number: int }
apiKeys { scopes: { partner: @system("partner") { @issue when auth.kind == "anonymous" } } }
routes("/hooks", auth: none, rateLimit: none, body: 8kb) {
  POST /standard -> dump (verify: webhook(standard, STANDARD))
  POST /second -> dump (verify: webhook(standard, STANDARD))
  POST /fails -> opFail (verify: webhook(standard, STANDARD))
  POST /keeps -> opKeep (verify: webhook(standard, STANDARD))
  POST /traps -> opTrap (verify: webhook(standard, STANDARD))
  POST /typed -> dump (verify: webhook(standard, STANDARD), input: Event)
  POST /soon -> dump (verify: webhook(standard, STANDARD, tolerance: 100s))
  POST /stripe -> dump (verify: webhook(stripe, OTHER))
  POST /github -> dump (verify: webhook(github, OTHER))
  POST /slack -> dump (verify: webhook(slack, OTHER))
}
`

func newWebhookApp(t *testing.T) *harness.App {
	a := harness.NewApp(t, webhookSchema, "", "echo")
	a.Env = append(a.Env, "RUNNER_SECRETS_STANDARD="+harness.StandardSecret, "RUNNER_SECRETS_OTHER="+harness.OtherSecret)
	return a
}

func TestOnlySignedRequestsReachTheHandler(t *testing.T) {
	a := newWebhookApp(t)
	s := a.Serve()
	now := time.Now()
	body := `{"number":1}`
	stamp := fmt.Sprint(now.Unix())
	for path, headers := range map[string][]string{
		"/hooks/standard": harness.SignedStandard("msg_1", now, body),
		"/hooks/typed":    harness.SignedStandard("msg_1", now, body),
		"/hooks/stripe":   {"Stripe-Signature: t=" + stamp + ",v1=" + hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), stamp, ".", body))},
		"/hooks/github":   {"X-GitHub-Delivery: d1", "X-Hub-Signature-256: sha256=" + hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), body))},
		"/hooks/slack":    {"X-Slack-Request-Timestamp: " + stamp, "X-Slack-Signature: v0=" + hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), "v0:", stamp, ":", body))},
	} {
		if p := s.Do("POST", path, body).Problem(t); p.Status != 400 || p.Code != "missing_signature" || !strings.Contains(p.Detail, "-") {
			t.Errorf("%s without a signature: %+v", path, p)
		}
		for _, changed := range []string{body + " ", strings.Replace(body, "1", "2", 1), ""} {
			got := s.Do("POST", path, changed, headers...)
			if p := got.Problem(t); p.Status != 401 || p.Code != "invalid_signature" || got.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with the body %q: %+v", path, changed, p)
			}
		}
		if got := s.Do("POST", path, body, headers...); got.Status != 200 || !strings.Contains(got.Body, body) {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
		if got := s.Do("POST", path, body, headers...); got.Status != 204 || got.Body != "" {
			t.Errorf("%s again: %d %s", path, got.Status, got.Body)
		}
	}
	if p := s.Do("POST", "/hooks/typed", "[]").Problem(t); p.Code != "missing_signature" {
		t.Errorf("the body was checked before its signature: %+v", p)
	}
	if p := s.Do("POST", "/hooks/typed", "[]", harness.SignedStandard("msg_2", now, "[]")...).Problem(t); p.Code != "invalid_input" {
		t.Errorf("a signed body of the wrong type: %+v", p)
	}
	if log := s.Stderr.String(); strings.Contains(log, harness.OtherSecret) || strings.Contains(log, harness.StandardSecret) {
		t.Error("the log contains a secret")
	}
}

func TestAReplayedWebhookIsHandledOnce(t *testing.T) {
	a := newWebhookApp(t)
	s := a.Serve()
	now := time.Now()
	post := func(path, id string, at time.Time, want int) {
		t.Helper()
		if got := s.Do("POST", path, "{}", append(harness.SignedStandard(id, at, "{}"), "X-Op: apiKeys.list")...); got.Status != want {
			t.Errorf("%s %s: %d %s, want %d", path, id, got.Status, got.Body, want)
		}
	}
	post("/hooks/standard", "msg_1", now, 200)
	post("/hooks/standard", "msg_1", now, 204)
	post("/hooks/standard", "msg_1", now.Add(2*time.Second), 204) // signed again, the same delivery
	post("/hooks/standard", "msg_2", now, 200)
	post("/hooks/second", "msg_1", now, 200) // each route remembers its own deliveries
	for _, failing := range []struct {
		path   string
		status int
	}{{"/hooks/fails", 400}, {"/hooks/keeps", 400}, {"/hooks/traps", 500}} {
		for range 3 { // a failed delivery may be sent again
			post(failing.path, "msg_3", now, failing.status)
		}
	}
	for _, late := range []struct {
		path   string
		age    time.Duration
		status int
	}{
		{"/hooks/standard", 240 * time.Second, 200}, {"/hooks/standard", 301 * time.Second, 401},
		{"/hooks/standard", -240 * time.Second, 200}, {"/hooks/standard", -360 * time.Second, 401},
		{"/hooks/standard", time.Duration(now.Unix()+120) * time.Second, 401}, // before 1970
		{"/hooks/soon", 40 * time.Second, 200}, {"/hooks/soon", 101 * time.Second, 401},
	} {
		post(late.path, fmt.Sprint("late", late.age), time.Now().Add(-late.age), late.status)
	}
	s.Stop()

	s = a.Serve() // deliveries are remembered across restarts
	post("/hooks/standard", "msg_2", now, 204)

	var ran, repeated atomic.Int64
	var all sync.WaitGroup
	for range 16 { // one delivery, sent many times at once
		all.Go(func() {
			switch got, err := s.Try("POST", "/hooks/standard", "{}", harness.SignedStandard("msg_9", now, "{}")...); {
			case err == nil && got.Status == 200:
				ran.Add(1)
			case err == nil && got.Status == 204:
				repeated.Add(1)
			default:
				t.Errorf("at once: %d %s %v", got.Status, got.Body, err)
			}
		})
	}
	all.Wait()
	if ran.Load() != 1 || repeated.Load() != 15 {
		t.Errorf("of 16 at once %d were handled and %d were treated as repetitions", ran.Load(), repeated.Load())
	}
}

// Senders repeat deliveries: that is counted, and is a line for debugging alone.
func TestARepeatedDeliveryIsCounted(t *testing.T) {
	a := harness.NewApp(t, webhookSchema, "[telemetry]\nlevel = \"debug\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n", "echo")
	a.Env = append(a.Env, "RUNNER_SECRETS_STANDARD="+harness.StandardSecret, "RUNNER_SECRETS_OTHER="+harness.OtherSecret)
	s := a.Serve()
	var status struct{ Metrics string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{200, 204, 204} {
		if got := s.Do("POST", "/hooks/standard", "{}", harness.SignedStandard("msg_1", time.Now(), "{}")...); got.Status != want {
			t.Fatalf("delivery %d: %d, want %d", i+1, got.Status, want)
		}
	}
	s.WaitForOutput(`"level":"DEBUG","msg":"webhook delivery ignored: it was handled before","requestId":"[^"]+",.*"route":"/hooks/standard","address":"127.0.0.1"`)
	got, err := http.Get(status.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if want := `runner_deliveries_repeated_total{route="POST /hooks/standard"} 2` + "\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the metrics lack %s (%v)", want, err)
	}
}

func TestADeliveryAtTheEndOfItsTimeIsHandledOnce(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `
secret STANDARD
entity Thing {
  id: id
  name: string
}
apiKeys { scopes: { partner: @system("partner") {
  @grant read on Thing
  @grant insert on Thing
} } }
routes("/hooks", auth: none, rateLimit: none) {
  POST /slow -> insertSlowly (as: partner, verify: webhook(standard, STANDARD, tolerance: 3s))
  POST /op -> op (as: partner)
}
`, "", "echo", "slow")
	a.Env = append(a.Env, "RUNNER_SECRETS_STANDARD="+harness.StandardSecret)
	s := a.Serve()
	// The signature is valid for 2 to 3 s more, and the handler takes 4 s: it ends when the
	// delivery could not be sent again.
	headers := harness.SignedStandard("msg_1", time.Now(), "{}")
	var statuses [3]int
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			got, err := s.Try("POST", "/hooks/slow", "{}", headers...)
			if err != nil {
				t.Error(err)
			}
			statuses[i] = got.Status
		})
	}
	all.Wait()
	slices.Sort(statuses[:])
	if statuses != [3]int{200, 204, 204} {
		t.Errorf("one delivery sent three times at once: %v, want 200, 204 and 204", statuses)
	}
	if rows := s.Do("POST", "/hooks/op", `{"from":"Thing"}`, "X-Op: count").Body; rows != `{"count":1}` {
		t.Errorf("one delivery created %s", rows)
	}
	if got := s.Do("POST", "/hooks/slow", "{}", headers...); got.Status != 401 {
		t.Errorf("the delivery after its time: %d %s", got.Status, got.Body)
	}
}

func TestAGitHubDeliveryIsIdentifiedByItsSignature(t *testing.T) {
	s := newWebhookApp(t).Serve()
	post := func(body, id string, want int) {
		t.Helper()
		headers := []string{"X-Hub-Signature-256: sha256=" + hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), body))}
		if id != "" {
			headers = append(headers, "X-GitHub-Delivery: "+id)
		}
		if got := s.Do("POST", "/hooks/github", body, headers...); got.Status != want {
			t.Errorf("%s under the id %q: %d %s, want %d", body, id, got.Status, got.Body, want)
		}
	}
	post("one", "d1", 200)
	for _, id := range []string{"d1", "d2", ""} { // this header is not signed
		post("one", id, 204)
	}
	post("two", "d1", 200)
	post("three", "", 200)
	post("three", "", 204)
}

// A clock that jumps ahead by 400 days is quarantined: otherwise all deliveries would expire.
func TestADeliveryIsRememberedWhenTheClockJumps(t *testing.T) {
	a := newWebhookApp(t)
	a.Serve().Stop()
	a.SetClockAhead(400 * 24 * time.Hour)
	headers := []string{"X-Hub-Signature-256: sha256=" + hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), "one"))}
	for i, want := range []int{200, 204, 204} {
		s := a.Serve() // removes expired deliveries
		if got := s.Do("POST", "/hooks/github", "one", headers...); got.Status != want {
			t.Errorf("delivery %d: %d %s, want %d", i, got.Status, got.Body, want)
		}
		s.Stop()
	}
}

// This is the example of GitHub's documentation. The examples of other senders have old
// timestamps; the tests of package webhook use them.
func TestTheExampleSignatureOfGitHubIsAccepted(t *testing.T) {
	a := harness.NewApp(t, `
secret HOOK
routes("/", auth: none, rateLimit: none) {
  POST /hook -> dump (verify: webhook(github, HOOK))
}
`, "", "echo")
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK=It's a Secret to Everybody")
	s := a.Serve()
	const signature = "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	for _, c := range []struct {
		body   string
		status int
	}{{"Hello, World?", 401}, {"Hello, World!", 200}, {"Hello, World!", 204}, {"Hello, World", 401}} {
		if got := s.Do("POST", "/hook", c.body, signature); got.Status != c.status {
			t.Errorf("%s: %d %s, want %d", c.body, got.Status, got.Body, c.status)
		}
	}
}

func TestAHandlerChecksTheBodyThatWasSent(t *testing.T) {
	a := harness.NewApp(t, `
secret OTHER
functions(auth: none, rateLimit: none) {
  @expose op(scheme: string = "github", secret: string = "OTHER") -> json
}
`, "", "echo")
	a.Env = append(a.Env, "RUNNER_SECRETS_OTHER="+harness.OtherSecret)
	s := a.Serve()
	for _, body := range []string{`{"scheme" : "github"}`, `{"scheme":"github","secret":"OTHER"}`, `{}`, ``, ` `} {
		signature := hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), body))
		got := s.Do("POST", "/_call/op", body, "X-Op: webhooks.verify", "X-Hub-Signature-256: sha256="+signature)
		if got.Status != 200 || !strings.Contains(got.Body, signature) {
			t.Errorf("body %q: %d %s", body, got.Status, got.Body)
		}
		filled := hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), `{"scheme":"github","secret":"OTHER"}`))
		if got := s.Do("POST", "/_call/op", body, "X-Op: webhooks.verify", "X-Hub-Signature-256: sha256="+filled); filled != signature && got.Status == 200 {
			t.Errorf("body %q with the signature of what is filled in: %d %s", body, got.Status, got.Body)
		}
	}
}

func TestExpiredDeliveriesAreRemovedAtStartup(t *testing.T) {
	a := newWebhookApp(t)
	a.Serve().Stop() // creates the store
	records := func(change func(*store.Tx) error) (n int) {
		t.Helper()
		st, err := store.Open(store.Options{Dir: a.Path("data")})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if _, err := st.Update(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		err = st.View(t.Context(), func(tx *store.Tx) error {
			for _, err := range tx.Scan([]byte("webhook/"), nil, false) {
				if err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := records(func(tx *store.Tx) error {
		for id, until := range map[string]time.Duration{"old": -time.Second, "new": time.Hour} {
			if err := (webhook.Delivery{ID: id, Until: time.Now().Add(until)}).Record(tx, "POST /hook"); err != nil {
				return err
			}
		}
		return nil
	})
	left := 0
	for end := time.Now().Add(harness.Timeout); time.Now().Before(end); { // the server may stop before it has removed the record
		s := a.Serve()
		s.Do("GET", "/_health", "")
		s.Stop()
		if left = records(func(*store.Tx) error { return nil }); left == 2 {
			break
		}
	}
	if before != 4 || left != 2 {
		t.Errorf("%d records of two deliveries, and %d after a start, want 4 and 2", before, left)
	}
}

func TestARefusedSignatureIsLoggedWithoutTheSignature(t *testing.T) {
	s := newWebhookApp(t).Serve()
	headers := harness.SignedStandard("msg_c4n4ryBird", time.Now().Add(-time.Hour), "c4n4ryBird")
	s.Do("POST", "/hooks/standard?c4n4ryBird", "c4n4ryBird", headers...)
	s.Do("POST", "/hooks/standard?c4n4ryBird", "c4n4ryBird")
	s.Stop()
	log := s.Stderr.String()
	for _, want := range []string{"time of the signature differs from now by more than 5m0s", "the header webhook-id is missing"} {
		if strings.Count(log, want) != 1 || strings.Count(log, `"msg":"signature refused"`) != 2 || strings.Count(log, `"route":"/hooks/standard"`) != 2 {
			t.Errorf("no log line contains %q:\n%s", want, log)
		}
	}
	if _, signature, _ := strings.Cut(headers[2], ","); strings.Contains(log, "c4n4ryBird") || strings.Contains(log, signature) {
		t.Errorf("the log contains data of the request:\n%s", log)
	}
}

func TestAnInvalidWebhookSecretIsRefusedAtStartup(t *testing.T) {
	a := harness.NewApp(t, webhookSchema, "", "echo")
	a.Env = append(a.Env, "RUNNER_SECRETS_STANDARD=!", "RUNNER_SECRETS_OTHER=x")
	got := a.Run("serve")
	if got.Status != 3 || strings.Count(got.Stderr, ": secret STANDARD: ") != 7 || !strings.Contains(got.Stderr, "not base64 after whsec_") {
		t.Errorf("%d\n%s", got.Status, got.Stderr)
	}
}
