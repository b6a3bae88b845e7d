package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// The handler, its caller's service and a private service are in a network of their own, in which 93.184.216.34 is a
// machine with a public address.
func TestPublicHostsAreReachedWithinABudget(t *testing.T) {
	network := harness.NewNetwork(t, 1)
	const public = "93.184.216.34"
	private := "http://" + network.Address(0)
	network.PublicService(0, public, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, "public")
	})
	network.PublicService(0, network.Address(0), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://"+public+"/", http.StatusFound)
		}
		fmt.Fprint(w, "private")
	})
	schema := strings.Replace(fmt.Sprintf(harness.OutboundSchema, private), "] }", "], public: true }", 1)
	a := harness.NewApp(t, schema, "[outbound]\nallow_private = true\npublic_rate = 9\n")
	a.Namespace = network.Namespace(0)
	a.Write("build/outbound.wasm", harness.GoModule(t, harness.Testdata("handlers/outbound")))
	acme, other := "X-API-Key: "+a.Token("worker", "--tenant", "acme"), "X-API-Key: "+a.Token("worker", "--tenant", "globex")
	s := a.Serve()
	ask := func(path, target, key, want string) {
		t.Helper()
		var got struct{ Body, Code, Message string }
		s.Want(200, &got, "POST", path, target, key)
		if got.Body+got.Code != want {
			t.Errorf("%s: %+v, want %s", target, got, want)
		}
	}
	check := func(target, key, want string) { t.Helper(); ask("/one", target, key, want) }
	const at = "http://" + public
	for _, row := range []struct{ target, want string }{
		{at + "/", "public"}, // 1
		{at + ":80/x", "public"},
		{at + "/?to=/again", "public"},
		{at + "/?to=" + private + "/", "denied"}, // declared, but not public
		{at + "/?to=http://127.0.0.1/", "denied"},
		{at + "/?to=http://169.254.169.254/", "denied"},
		{at + "/?to=" + at + ":8080/", "denied"}, // 7
		{at + ":8080/", "denied"},
		{"http://127.0.0.1/", "denied"},
		{"http://10.77.0.99/", "denied"},
		{"http://localhost/", "denied"}, // 8: known to be private when its name is resolved
		{private + "/", "private"},      // declared
		{private + "/away", "denied"},   // a declared origin leads to declared ones only
		{at + "/", "public"},            // 9
		{at + "/", "limit"},
		{private + "/", "private"},
	} {
		check(row.target, acme, row.want)
	}
	check(at+"/", other, "public")
	ask("/one?publicOnly=1", private+"/", other, "denied") // as a client may send it
	ask("/one?publicOnly=1", at+"/?to="+private+"/", other, "denied")
	ask("/one?publicOnly=1", at+"/", other, "public")
	s.Stop()
	for line, want := range map[string]int{
		`"msg":"public request sent","requestId":"`: 12, `"host":"` + public + `","tenant":"acme"`: 9, `"msg":"public request refused"`: 1,
	} {
		if n := strings.Count(s.Stderr.String(), line); n != want {
			t.Errorf("the log has %s %d times, want %d", line, n, want)
		}
	}
}

// A request counts when it is sent, whatever becomes of it.
func TestRequestsToPublicHostsAreCountedByTenant(t *testing.T) {
	t.Parallel()
	schema := strings.Replace(harness.OutboundSchema, `outbound { allow: ["%s"] }`, "outbound { public: true }", 1)
	a := harness.NewApp(t, schema, "[outbound]\nallow_private = true\npublic_rate = 2\n[metrics]\nlisten = \"127.0.0.1:0\"\n")
	a.Write("build/outbound.wasm", harness.GoModule(t, harness.Testdata("handlers/outbound")))
	var keys []string
	for _, tenant := range []string{"", "acme", "globex"} {
		flags := []string{}
		if tenant != "" {
			flags = []string{"--tenant", tenant}
		}
		keys = append(keys, "X-API-Key: "+a.Token("worker", flags...))
	}
	s := a.Serve()
	for _, key := range keys {
		for _, want := range []string{"denied", "denied", "limit"} {
			var got struct{ Code, Message string }
			s.Want(200, &got, "POST", "/one", "http://localhost/", key)
			if got.Code != want {
				t.Errorf("with %.14s: %+v, want %s", key, got, want)
			}
		}
	}
	counted := a.Metrics()
	for outcome, want := range map[string]float64{"sent": 6, "refused": 3} {
		if n := counted[`runner_public_requests_total{outcome="`+outcome+`"}`]; n != want {
			t.Errorf("%s: %v requests, want %v", outcome, n, want)
		}
	}
}
