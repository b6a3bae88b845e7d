package sandbox_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const hostWorkSchema = `app work
entity Row {
  id: id
  text: text
  @@allow read to anonymous
}
apiKeys { scopes: { key: @system("key") { @grant read on Row } } }
type Form {
  names: string(2000)[] @pattern("^([a-z]*[a-z]*){100}b?$")
}
routes("/", auth: none, rateLimit: none, timeout: 60s) {
  GET /hello -> hello
  GET /loop -> loop
  POST /op -> op
  POST /form -> empty (input: Form)
  POST /keyForm -> empty (input: Form, auth: apiKey(key))
  POST /quickForm -> empty (input: Form, auth: apiKey(key), timeout: 200ms)
}
`

// hostWork is an app with equal rows of 60 kB.
func hostWork(t *testing.T, rows int, cpu string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, hostWorkSchema, fmt.Sprintf("[sandbox]\nbreaker = false\ninstances = 16\ncpu = %q\n[runtime]\nshutdown_timeout = \"100ms\"\n", cpu), "echo", "hostile")
	a.Serve().Stop() // creates the data directory
	line := `{"text":"` + strings.Repeat("a", 60_000) + `"}` + "\n"
	a.Write("rows.jsonl", strings.Repeat(line, rows))
	a.Must("data", "import", "Row", "rows.jsonl")
	return a
}

// search is a count with 250 searches in each row's text. None finds anything, and each
// reads the whole text.
func search() string {
	part := strings.Repeat("a", 62) + "b"
	return `{"from":"Row","where":[["or"` + strings.Repeat(`,["text","contains","`+part+`"]`, 250) + `]]}`
}

// processorTime returns the CPU time that the server has used.
func processorTime(s *harness.Server) time.Duration {
	s.T.Helper()
	return harness.CPUTime(s.T, harness.ClockOf(s.Cmd.Process.Pid))
}

// The host's work for a handler counts against the handler's CPU time.
func TestHostWorkCountsAsCPUTimeOfTheHandler(t *testing.T) {
	rows, cpu := 300, 200*time.Millisecond
	if harness.Soak {
		rows, cpu = 2500, time.Second
	}
	s := hostWork(t, rows, cpu.String()).Serve()
	s.Do("GET", "/hello", "")
	before := processorTime(s)
	if got := s.Do("POST", "/op", search(), "x-op: count"); harness.CheckAnswer(t, got) != "504 handler_timeout" {
		t.Errorf("a long count: %d %.200s", got.Status, got.Body)
	}
	used := processorTime(s) - before
	t.Logf("a count that may have %s used %s, what the request takes beside it included", cpu, used)
	if used > cpu+cpu/4+50*time.Millisecond || used < cpu/10 { // the clock is not exact on a busy machine
		t.Errorf("it used %s of a processor, and may have %s", used, cpu)
	}
	if got := s.Do("POST", "/op", `{"from":"Row","where":[["text","contains","aa"]]}`, "x-op: count"); got.Status != 200 || got.Body != fmt.Sprintf(`{"count":%d}`, rows) {
		t.Errorf("a short count: %d %.200s", got.Status, got.Body)
	}
}

// Long work of the host takes CPU slots like guests do. Another handler is served beside
// twelve such requests as beside twelve spinning guests.
func TestAHandlerIsServedBesideHostWork(t *testing.T) {
	rows, n, rounds := 200, 100, 1
	if harness.Soak {
		rows, n, rounds = 2500, 1000, 5
	}
	a := hostWork(t, rows, "60s")
	beside := func(method, path, body string, headers ...string) (p50, p99 time.Duration) {
		s := a.Serve()
		var others sync.WaitGroup
		for range 12 {
			others.Go(func() {
				for { // until the server stops
					if got, err := s.Try(method, path, body, headers...); err != nil || got.Status != 200 {
						return
					}
				}
			})
		}
		latencies(s, "/hello", 20) // until the others run
		all := latencies(s, "/hello", n)
		s.Stop()
		others.Wait()
		return all[n/2], all[n*99/100]
	}
	var counts, loops []time.Duration
	for range rounds {
		countP50, countP99 := beside("POST", "/op", search(), "x-op: count")
		loopP50, loopP99 := beside("GET", "/loop", "")
		counts, loops = append(counts, countP99), append(loops, loopP99)
		t.Logf("beside 12 counts p50 %s, p99 %s; beside 12 loops p50 %s, p99 %s", countP50, countP99, loopP50, loopP99)
	}
	slices.Sort(counts)
	slices.Sort(loops)
	ratio := float64(counts[rounds/2]) / float64(loops[rounds/2])
	t.Logf("p99 beside counts is %.2f times that beside loops, by their medians", ratio)
	if harness.Soak && ratio > 5 { // counts also cause garbage collection
		t.Errorf("p99 beside counts is %s, beside loops %s", counts[rounds/2], loops[rounds/2])
	}
}

// Checking the body of a caller without a credential has a small time limit. For other
// callers it counts against the request's time.
func TestCheckingABodyIsLimited(t *testing.T) {
	a := hostWork(t, 1, "1s")
	s := a.Serve()
	text := strings.Repeat("a", 1999)                                  // fits
	body := `{"names":[` + strings.Repeat(`"`+text+`",`, 500) + `""]}` // 1 MB; checking takes about 4 s
	before := processorTime(s)
	if got := s.Do("POST", "/form", body, "content-type: application/json"); harness.CheckAnswer(t, got) != "413 body_too_large" {
		t.Errorf("a caller without a credential: %d %.300s", got.Status, got.Body)
	}
	open := processorTime(s) - before
	t.Logf("checking the body of a caller without a credential used %s", open)
	if got := s.Do("POST", "/form", `{"names":["aab"]}`); got.Status != 204 {
		t.Errorf("a valid body: %d %.300s", got.Status, got.Body)
	}
	if got := s.Do("POST", "/keyForm", body); harness.CheckAnswer(t, got) != "401 missing_credentials" {
		t.Errorf("without a key: %d %.300s", got.Status, got.Body)
	}
	key := "X-API-Key: " + a.Token("key")
	used := map[string]time.Duration{}
	for _, path := range []string{"/keyForm", "/quickForm"} { // with 1 s and 200 ms
		before := processorTime(s)
		if got := s.Do("POST", path, body, key); harness.CheckAnswer(t, got) != "504 handler_timeout" {
			t.Errorf("%s with a key: %d %.300s", path, got.Status, got.Body)
		}
		used[path] = processorTime(s) - before
		t.Logf("checking the body for %s used %s", path, used[path])
	}
	if long := used["/keyForm"]; open > long/2 || used["/quickForm"] > long*3/4 {
		t.Errorf("of a processor, a caller without a credential used %s, and with a key 200 ms became %s and a second %s", open, used["/quickForm"], long)
	}
	if long := used["/keyForm"]; harness.Soak && long > 1300*time.Millisecond {
		t.Errorf("checking the body for /keyForm used %s of a processor, and may have a second", long)
	}
}
