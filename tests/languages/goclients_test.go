package languages_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"runner.example/tests/harness"
)

// Three packages that many programs in Go use, and net/http itself, send their requests through the runner.
func TestGoPackagesForHTTPWorkInHandlers(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	origin, certificate := harness.OtherService(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/here", http.StatusSeeOther)
		case "/here":
			w.Header().Set("X-Was", r.Method)
			fmt.Fprint(w, "hello")
		case "/echo":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, r.Body)
		case "/unstable":
			if asked.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case "/repos/a/b":
			fmt.Fprintf(w, `{"full_name": %q}`, r.Header.Get("Authorization"))
		case "/slow":
			<-r.Context().Done()
		}
	})
	a := harness.NewApp(t, fmt.Sprintf(`app clients
outbound { allow: [%q] }
routes("/", auth: none, rateLimit: none, timeout: 10s) { POST /:with -> ask }
`, origin), "[outbound]\nallow_private = true\n")
	a.Write("build/clients.wasm", harness.GoModule(t, harness.Testdata("handlers/clients")))
	a.Write("roots.pem", certificate)
	a.Env = []string{"SSL_CERT_FILE=" + a.Path("roots.pem")}
	s := a.Serve()
	for with, want := range map[string]string{
		"standard": `"200 OK /here GET hello"`, "resty": `"200 ada"`, "retryable": `"200 OK"`, "github": `"Bearer token"`,
		"timeout": `"true true"`, "denied": "true",
		"machine": `"1969-12-31T19:00:00-05:00 true true true [usr]"`,
	} {
		if got := s.Do("POST", "/"+with, origin); got.Status != 200 || got.Body != want {
			t.Errorf("%s: %d %s, want %s", with, got.Status, got.Body, want)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the unstable service was asked %d times", n)
	}
}
