package runnerhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"runner.example/sdk/go/internal/host"
)

// fake is a host that answers each fetch with a text.
type fake struct {
	host.Blank
	asked  *string
	answer string
	err    error
}

func (f fake) Call(op string, args []byte) error { *f.asked = op + " " + string(args); return f.err }

func (f fake) Result() ([]byte, error) { return []byte(f.answer), nil }

func TestARequestIsAFetch(t *testing.T) {
	var asked string
	client := http.Client{Transport: fetcher{fake{asked: &asked, answer: `{"status":404,"headers":[["content-type","text/plain"]],"body":"none"}`}}}
	request, err := http.NewRequest("PUT", "https://user@example.com/a?b=c#d", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-A", "1")
	request.Header.Set("Connection", "close")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	got := fmt.Sprint(response.Status, " ", response.Header.Get("Content-Type"), " ", response.ContentLength, " ", string(body), " ", err)
	if got != "404 Not Found text/plain 4 none <nil>" {
		t.Error(got)
	}
	for _, want := range []string{`"url":"https://example.com/a?b=c"`, `"method":"PUT"`, `["X-A","1"]`, `"body":"body"`, `"redirect":"manual"`, `"timeout":60`} {
		if !strings.Contains(asked, want) {
			t.Errorf("asked %s, want %s", asked, want)
		}
	}
	if strings.Contains(asked, "Connection") {
		t.Errorf("asked %s", asked)
	}
}

func TestWhatCannotBeSentIsAnError(t *testing.T) {
	var asked string
	f := fetcher{fake{asked: &asked, err: &host.Error{Code: "deadline"}}}
	request := httptest.NewRequest("GET", "https://example.com/", nil)
	_, err := f.RoundTrip(request)
	if timeout, ok := err.(interface{ Timeout() bool }); !ok || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a fetch that took too long: %v", err)
	}
	asked = ""
	request.Host = "other.example"
	if _, err := f.RoundTrip(request); err == nil || !strings.Contains(err.Error(), "the header Host of a request to example.com cannot be other.example") {
		t.Errorf("another host: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.RoundTrip(request.WithContext(ended)); !errors.Is(err, context.Canceled) || asked != "" {
		t.Errorf("a cancelled request: %v, asked %s", err, asked)
	}
}

// Unit tests of handlers use the network as usual.
func TestOutsideOfAHandlerTheClientConnects(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "native") }))
	defer s.Close()
	response, err := Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "native" {
		t.Errorf("%s %v", body, err)
	}
}
