package operations_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const enduranceSchema = `app endurance
entity Note {
  id: id
  text: string(1..40) @unique
  pad: string(1..8000)
}
apiKeys { scopes: { reader: @system("reader") { @grant read, write, delete on Note } } }
routes("/", auth: apiKey(reader), rateLimit: none) {
  GET /hello -> hello
  POST /op -> op
}
routes("/hostile", auth: none, rateLimit: none) {
  GET /loop -> loop (timeout: 100ms)
  GET /grow -> grow
  GET /trap -> trap
  GET /flood -> flood
}
`

// endurance is a server under mixed traffic.
type endurance struct {
	t        *testing.T
	a        *harness.App
	s        *harness.Server
	token    atomic.Pointer[string] // of the key that is rotated, with a grace period
	requests atomic.Int64
	stop     chan struct{}
	running  sync.WaitGroup
}

// each calls do with 0, 1, 2 … until the end, with pauses, in a goroutine of its own.
func (e *endurance) each(pause time.Duration, do func(n int) error) {
	e.running.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-e.stop:
				return
			case <-tick.C:
			}
			if err := do(n); err != nil {
				e.t.Error(err)
				return
			}
		}
	})
}

// ask sends a request, and wants one of the results in the form of harness.CheckAnswer.
func (e *endurance) ask(method, path, body string, headers []string, want ...string) error {
	got, err := e.s.Try(method, path, body, headers...)
	if err != nil {
		return err
	}
	e.requests.Add(1)
	if text := harness.CheckAnswer(e.t, got); !slices.Contains(want, text) {
		return fmt.Errorf("%s %s: %s %s, want %q", method, path, text, got.Body, want)
	}
	return nil
}

func (e *endurance) run(args ...string) error {
	if r := e.a.Run(args...); r.Status != 0 {
		return fmt.Errorf("%q: %d %s", args, r.Status, r.Stderr)
	}
	return nil
}

// begin starts the traffic: reads and writes of rows, handlers that misbehave, rotations,
// reloads that change the app, and backups.
func (e *endurance) begin(rotations, backups time.Duration, key harness.APIKey) {
	e.token.Store(&key.Token)
	e.stop = make(chan struct{})
	// So large that Badger's memory for new keys, 64 MiB, is full several times in each third.
	pad := strings.Repeat("x", 8000)
	caller := func() []string { return []string{"X-API-Key: " + *e.token.Load()} }
	for worker := range 4 {
		e.each(5*time.Millisecond, func(n int) error {
			if err := e.ask("GET", "/hello", "", caller(), "200"); err != nil || n%10 > 0 {
				return err
			}
			text := fmt.Sprintf("%d of %d", n/10%50, worker)
			if err := e.ask("POST", "/op", fmt.Sprintf(`{"from":"Note","where":[["text","=",%q]]}`, text), append(caller(), "X-Op: delete"), "200", "409 conflict"); err != nil {
				return err
			}
			return e.ask("POST", "/op", fmt.Sprintf(`{"into":"Note","values":{"text":%q,"pad":%q}}`, text, pad), append(caller(), "X-Op: insert"), "200", "299", "409 conflict")
		})
	}
	for path, want := range map[string]string{"loop": "504 handler_timeout", "grow": "500 handler_out_of_memory", "trap": "500 handler_failed", "flood": "200"} {
		e.each(100*time.Millisecond, func(int) error {
			return e.ask("GET", "/hostile/"+path, "", nil, want, "503 overloaded")
		})
	}
	e.each(time.Second, func(n int) error {
		var err error
		if n%2 == 0 {
			e.a.Write("app.schema", strings.Replace(enduranceSchema, "GET /hello -> hello", "GET /hello -> hello\n  GET /hi -> hello", 1))
			err = e.s.Cmd.Process.Signal(syscall.SIGHUP)
		} else {
			e.a.Write("app.schema", enduranceSchema)
			err = e.run("reload")
		}
		return err
	})
	e.each(rotations, func(int) error { // a key has five live tokens at most
		r := e.a.Run("api-keys", "rotate", key.ID, "--grace-period", "5s", "--json")
		if r.Status != 0 {
			return errors.New(r.Stderr)
		}
		_, token, _ := strings.Cut(r.Stdout, `"token": "`)
		token, _, _ = strings.Cut(token, `"`)
		if !harness.TokenForm.MatchString(token) {
			return fmt.Errorf("rotate printed %q", r.Stdout)
		}
		e.token.Store(&token)
		return nil
	})
	e.each(backups, func(int) error {
		return errors.Join(e.run("backup", "b", "--force"), e.run("backup", "--check", "b"))
	})
}

func (e *endurance) end() {
	close(e.stop)
	e.running.Wait()
}

// heldNames are what held returns.
var heldNames = []string{"bytes of memory without mapped files", "mappings", "descriptors", "goroutines", "bytes of heap"}

// held returns what a server holds. metrics is the URL of its metrics.
func held(t *testing.T, s *harness.Server, metrics string) []int64 {
	t.Helper()
	r, text := s.Resources(), harness.Scrape(t, metrics)
	metric := func(name string) int64 {
		_, value, _ := strings.Cut(text, "\n"+name+" ")
		n, err := strconv.ParseFloat(strings.SplitN(value, "\n", 2)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		return int64(n)
	}
	return []int64{r.OwnBytes, int64(r.Mappings), int64(r.Files), metric("go_goroutines"), metric("go_memstats_heap_inuse_bytes")}
}

// compareThirds compares the means of the thirds of samples. In the long form the last one must not be
// larger than the middle one.
func compareThirds(t *testing.T, name string, samples []int64) {
	t.Helper()
	third := len(samples) / 3
	mean := func(from int) (sum float64) {
		for _, n := range samples[from : from+third] {
			sum += float64(n)
		}
		return sum / float64(third)
	}
	first, middle, last := mean(0), mean(third), mean(2*third)
	t.Logf("%s: mean of the thirds %.0f, %.0f, %.0f: the last is %.3f times the middle one", name, first, middle, last, last/middle)
	if harness.Soak && last > 1.05*middle {
		t.Errorf("%s grow", name)
	}
}

// Mixed traffic with reloads, rotations, hostile handlers and backups leaves nothing behind.
// The long form compares what the server holds in the last third of the time with the middle
// third.
func TestMixedTrafficLeavesNothingBehind(t *testing.T) {
	length, rotations, backups := 3*time.Second, 2*time.Second, time.Second
	if harness.Soak {
		length, rotations, backups = 30*time.Minute, 5*time.Second, time.Minute
	}
	a := harness.NewApp(t, enduranceSchema, "[metrics]\nlisten = \"127.0.0.1:0\"\n[sandbox]\nbreaker = false\n", "echo", "hostile")
	key := a.Key("create", "--scope", "reader", "--name", "rotated")
	e := &endurance{t: t, a: a, s: a.Serve()}
	url := a.MetricsURL()
	e.begin(rotations, backups, key)
	samples := make([][]int64, len(heldNames))
	tick := time.NewTicker(length / 300)
	defer tick.Stop()
	for range 300 {
		<-tick.C
		for i, n := range held(t, e.s, url) {
			samples[i] = append(samples[i], n)
		}
		if t.Failed() {
			break
		}
	}
	e.end()
	t.Logf("resident memory at the end %d MiB, tables included", e.s.Resources().Bytes>>20)
	if t.Failed() {
		return
	}
	for i, all := range samples {
		compareThirds(t, heldNames[i], all)
	}
	reloads := strings.Count(e.s.Stderr.String(), `"msg":"reloaded"`)
	t.Logf("%d requests, %d reloads in %s", e.requests.Load(), reloads, length)
	if e.requests.Load() < 100 || reloads == 0 {
		t.Error("there was too little traffic")
	}
	a.Must("backup", "--check", "b")
}
