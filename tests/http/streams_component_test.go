package http_test

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// The component is runtime/sandbox/testdata/component/streams.wat.
func TestTheBodyOfAComponentIsSentAsItIsWritten(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `routes("/", auth: none, rateLimit: none) {
  GET /parts   -> streams (stream: 1m)
  GET /waits   -> streams (stream: 1m)
  GET /head    -> streams (stream: 1m)
  GET /endless -> streams (stream: 1m)
  GET /traps   -> streams (stream: 1m)
  GET /plain   -> streams
}
`, "")
	component, err := os.ReadFile(harness.RepoFile("runtime/sandbox/testdata/component/streams.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	a.Write("build/streams.wasm", string(component))
	s := a.Serve()
	parts := open(t, s, "GET", "/parts", "")
	if body, whole := readAll(t, parts); body != "part\npart\npart\n" || !whole || len(parts.TransferEncoding) != 1 {
		t.Errorf("three parts: %q, whole %v, %v", body, whole, parts.TransferEncoding)
	}
	if got := s.Get("/plain", ""); got.Body != "part\npart\npart\n" || got.Header.Get("Content-Length") != "15" {
		t.Errorf("on a route without stream: %+v", got)
	}
	open(t, s, "GET", "/head", "") // it has a head before the first part
	waits := open(t, s, "GET", "/waits", "")
	if line, err := bufio.NewReader(waits.Body).ReadString('\n'); line != "part\n" || err != nil {
		t.Errorf("the first part is %q (%v)", line, err)
	}
	if body, whole := readAll(t, open(t, s, "GET", "/traps", "")); body != "part\n" || whole {
		t.Errorf("a trap after the first part: %q, whole %v", body, whole)
	}
	s.WaitForOutput(`"msg":"handler failed".*"route":"/traps"`)
	endless := open(t, s, "GET", "/endless", "")
	if _, err := io.ReadFull(endless.Body, make([]byte, 500)); err != nil {
		t.Error(err)
	}
	endless.Body.Close()
	s.WaitForOutput("the component was left by its client")
	if log := s.Stderr.String(); strings.Count(log, `"msg":"handler failed"`) != 1 {
		t.Errorf("a client that hangs up is logged as a failure:\n%s", log)
	}
}
