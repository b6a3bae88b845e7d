package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const shutdownSchema = `
outbound { allow: [%q] }
routes("/", auth: none, rateLimit: none) {
  GET /sleeps  -> sleeps (stream: 10m)
  GET /floods  -> floods (stream: 10m)
  GET /fetches -> fetches (stream: 10m)
  GET /spins   -> spins (stream: 10m)
}
`

// A shutdown ends open streams, whatever their handlers do, and closes the store.
func TestAShutdownEndsManyStreams(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	origin, certificate := harness.OtherService(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: first\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-left:
		}
	})
	defer close(left)
	a := harness.NewApp(t, fmt.Sprintf(shutdownSchema, origin), `
[outbound]
allow_private = true
[sandbox]
cpu = "10m"
[runtime]
shutdown_timeout = "6s"
`)
	a.Write("handlers/streams.ts", fmt.Sprintf(`
import { stream } from "@runner/sdk";
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
export const sleeps = () => stream(async function* () { try { yield "begun\n"; for (;;) { await pause(1000); yield "more\n"; } } finally { console.log("sleeper left"); } });
export const floods = () => stream(async function* () { try { for (;;) yield "x".repeat(60_000); } finally { console.log("flooder left"); } });
export const fetches = async () => new Response((await fetch(%q)).body);
export const spins = () => stream(async function* () { yield "begun\n"; for (let n = 0; ; n++) if (n < 0) yield "never"; });
`, origin))
	a.Write("roots.pem", certificate)
	a.Env = []string{"SSL_CERT_FILE=" + a.Path("roots.pem")}
	a.Must("build")
	s := a.Serve()
	kinds := []string{"/sleeps", "/floods", "/fetches", "/spins"}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { open(t, s, "GET", kinds[i%len(kinds)], "") })
	}
	all.Wait()
	began := time.Now()
	s.Stop()
	if took := time.Since(began); took > harness.Timeout/2 {
		t.Errorf("stopping took %s", took)
	}
	if log := s.Stderr.String(); strings.Contains(log, "store not closed") {
		t.Errorf("the log has\n%s", log)
	}
	if r := a.Run("audit", "verify"); r.Status != 0 {
		t.Errorf("the store afterwards: %d %s", r.Status, r.Stderr)
	}
}
