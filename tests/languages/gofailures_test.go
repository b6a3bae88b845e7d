package languages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// TestAGoHandlerThatFailsIsOneRecordWithItsLines reads the log of a server whose handlers in Go fail. Each
// failure must be one record with the lines of the source.
func TestAGoHandlerThatFailsIsOneRecordWithItsLines(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(harness.Testdata("handlers/failing/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	line := func(name string) string {
		before, _, ok := strings.Cut(string(source), "// line "+name+"\n")
		if !ok {
			t.Fatalf("no line %s", name)
		}
		return fmt.Sprintf("(main.go:%d)", strings.Count(before, "\n")+1)
	}
	a := harness.NewApp(t, `app failing
routes("/", auth: none, rateLimit: none) {
  GET /nilMap  -> nilMap
  GET /endless -> endless
}
routes("/waits", auth: none, rateLimit: none, timeout: 1s) { GET /slow -> slow }
`, "[sandbox]\ncpu = \"200ms\"\n")
	a.Write("build/failing.wasm", harness.GoModule(t, harness.Testdata("handlers/failing")))
	s := a.Serve()
	for _, row := range []struct {
		path, handler string
		status        int
		kind, cause   string
		frames        []string // beginnings of the first ones
	}{
		{"/nilMap", "nilMap", 500, "panic", "assignment to entry in nil map", []string{"main.totals.add " + line("nilMap"), "main.nilMap (main.go:"}},
		{"/endless", "endless", 504, "CPU limit", "handler used more than 200ms of CPU", []string{"main.rounds " + line("endless"), "main.endless (main.go:"}},
		{"/waits/slow", "slow", 504, "time limit", "handler took longer than 1s", []string{"time.Sleep (runtime/time.go:", "main.slow " + line("slow")}},
	} {
		before := len(s.Stderr.String())
		if got := s.Do("GET", row.path, ""); got.Status != row.status {
			t.Errorf("%s answers %d %s", row.path, got.Status, got.Body)
		}
		s.WaitForOutput(`"handler":"` + row.handler + `"`)
		var records []string
		for text := range strings.Lines(s.Stderr.String()[before:]) {
			var r struct {
				Level, Msg, RequestID, Route, Handler, Module, Kind, Cause string
				Frames                                                     []string
			}
			if json.Unmarshal([]byte(text), &r) != nil || r.Level != "ERROR" && r.Level != "WARN" {
				continue
			}
			records = append(records, text)
			begins := len(r.Frames) >= len(row.frames)
			for i := range row.frames {
				begins = begins && strings.HasPrefix(r.Frames[i], row.frames[i])
			}
			if r.Msg != "handler failed" || r.Handler != row.handler || r.Module != "build/failing.wasm" || r.RequestID == "" || r.Kind != row.kind || !strings.HasPrefix(r.Cause, row.cause) || !begins {
				t.Errorf("%s: the record is %s\nwant %s, %s, %q", row.path, text, row.kind, row.cause, row.frames)
			}
		}
		if len(records) != 1 {
			t.Errorf("%s: %d records:\n%s", row.path, len(records), strings.Join(records, ""))
		}
	}
}
