package http_test

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"

	"runner.example/tests/harness"
)

// The service sends its second event when the client has read the first, and ends when the client has read the second.
func TestTheBodyOfAFetchIsPassedOnAsItComes(t *testing.T) {
	t.Parallel()
	read, left := make(chan struct{}), make(chan struct{})
	origin, certificate := harness.OtherService(t, func(w http.ResponseWriter, r *http.Request) {
		kind := r.URL.Query().Get("type")
		w.Header().Set("Content-Type", kind)
		for n := 0; n < 2 || kind == "text/endless"; n++ {
			fmt.Fprintf(w, "data: %d\n\n", n)
			w.(http.Flusher).Flush()
			select {
			case <-read:
			case <-r.Context().Done():
				left <- struct{}{}
				return
			}
		}
	})
	a := harness.NewApp(t, fmt.Sprintf(`
outbound { allow: [%q] }
routes("/", auth: none, rateLimit: none) {
  GET /words -> words (stream: 1m)
  GET /again -> again (stream: 1m)
}
`, origin), "[outbound]\nallow_private = true\n")
	a.Write("handlers/words.ts", fmt.Sprintf(`
import { type RouteRequest } from "@runner/sdk";

const from = (req: RouteRequest) => fetch(%q + "/?type=" + req.query.type);

export const words = async (req: RouteRequest) => new Response((await from(req)).body, { headers: { "content-type": "text/plain" } });

export const again = (req: RouteRequest) => from(req);
`, origin))
	a.Write("roots.pem", certificate)
	a.Env = []string{"SSL_CERT_FILE=" + a.Path("roots.pem")}
	a.Must("build")
	s := a.Serve()
	for path, kind := range map[string]string{
		"/words?type=text/event-stream": "text/plain",
		"/words?type=text/html":         "text/plain",
		"/again?type=text/event-stream": "text/event-stream",
	} {
		answer := open(t, s, "GET", path, "")
		if got := answer.Header.Get("Content-Type"); got != kind {
			t.Errorf("%s has the content type %q", path, got)
		}
		lines := bufio.NewReader(answer.Body)
		for n := range 2 {
			if line, err := lines.ReadString('\n'); line != fmt.Sprintf("data: %d\n", n) {
				t.Fatalf("%s: line %d is %q (%v)", path, n, line, err)
			}
			_, _ = lines.ReadString('\n')
			read <- struct{}{}
		}
		if rest, err := lines.ReadString('\n'); rest != "" || err == nil {
			t.Errorf("%s: then %q (%v)", path, rest, err)
		}
	}
	// A client that hangs up ends the request to the service.
	answer := open(t, s, "GET", "/words?type=text/endless", "")
	lines := bufio.NewReader(answer.Body)
	if line, err := lines.ReadString('\n'); line != "data: 0\n" {
		t.Errorf("the first line is %q (%v)", line, err)
	}
	answer.Body.Close()
	for more := true; more; {
		select {
		case read <- struct{}{}: // soon a part cannot be sent
		case <-left:
			more = false
		}
	}
}
