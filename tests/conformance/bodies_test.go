package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// post sends a body as it comes, and returns when the head of the answer has arrived.
func (s *liveServer) post(t *testing.T, path string, body io.Reader) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// streamsBodies sends bodies while their handlers run.
func (g *guest) streamsBodies(t *testing.T) {
	s := g.serveLive(t)

	body, client := io.Pipe()
	echo := make(chan *http.Response, 1)
	go func() { echo <- s.post(t, "/bodies/echo", body) }()
	if _, err := io.WriteString(client, "one\n"); err != nil {
		t.Fatal(err)
	}
	answer := <-echo // before the end of the body
	part := make([]byte, len("one\n"))
	if _, err := io.ReadFull(answer.Body, part); err != nil || string(part) != "one\n" || answer.StatusCode != 200 {
		t.Errorf("the first part comes back as %q of %v, %v", part, answer, err)
	}
	const rest = 1 << 20
	go func() {
		_, err := io.WriteString(client, strings.Repeat("0123456789abcdef", rest/16))
		_ = client.CloseWithError(err)
	}()
	if back, err := io.ReadAll(answer.Body); err != nil || string(back) != strings.Repeat("0123456789abcdef", rest/16) {
		t.Errorf("%d bytes come back, want %d: %v", len(back), rest, err)
	}

	read := func(what string, length int) (int, string) {
		t.Helper()
		answer := s.post(t, "/bodies/"+what, io.MultiReader(strings.NewReader(strings.Repeat("\x01\x02", length/2)))) // in chunks
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		return answer.StatusCode, string(text)
	}
	const large, tooLarge = 300_000, 2<<20 + 2
	if status, got := read("count", large); status != 200 || got != fmt.Sprintf(`{"bytes":%d,"sum":%d}`, large, large/2*3) {
		t.Errorf("count: %d %s", status, got)
	}
	if status, got := read("whole", large); status != 200 || got != fmt.Sprintf(`{"bytes":%d}`, large) {
		t.Errorf("whole: %d %s", status, got)
	}
	if status, got := read("count", tooLarge); status != 413 || !strings.Contains(got, `"body_too_large"`) {
		t.Errorf("too large: %d %s", status, got)
	}
	if _, got, err := s.read(t, "/go/count?q=body"); err != nil || got != `{"count":1}` {
		t.Errorf("after a body that is too large there are %s orders, %v", got, err)
	}
	s.stop()
	if strings.Contains(s.log.String(), "handler failed") {
		t.Errorf("what the client did is logged as a failure:\n%s", s.log.String())
	}
}
