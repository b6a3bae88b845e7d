package operations_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// switchedSchema is that of all releases here, with the mark of each in place of 0000: in the
// default of a query, in the pattern of a route, and in the default of a field.
const switchedSchema = `app switched
entity Note {
  id: id
  text: string(1..40)
  mark: string(4..4) = "0000"
}
type Which { schema: string(4..4) = "0000" }
apiKeys { scopes: { writer: @system("writer") { @grant read, write on Note } } }
routes("/release", auth: none, rateLimit: none) { GET /:r0000 -> release (query: Which) }
routes("/note", auth: apiKey(writer), rateLimit: none) { POST / -> note }
`

// extraField is the field that one of the releases adds.
const extraField = `  extra: string(1..9) = "more"` + "\n"

// markedApp is an app with a mark of four digits in its schema, and in the code and the data of its
// module.
func markedApp(t *testing.T, mark string, fields string) *harness.App {
	t.Helper()
	schema := strings.ReplaceAll(switchedSchema, "0000", mark)
	a := harness.NewApp(t, strings.Replace(schema, "  id: id\n", "  id: id\n"+fields, 1), "", "release")
	module := harness.MustRead(t, a.Path("build/release.wasm"))
	constant := func(mark string) string { // as the code has it: LEB128
		return string(binary.AppendUvarint(nil, uint64(binary.LittleEndian.Uint32([]byte(mark)))))
	}
	for old, marked := range map[string]string{constant("0000"): constant(mark), `["....","0000",`: `["....","` + mark + `",`} {
		if strings.Count(module, old) != 1 || len(old) != len(marked) {
			t.Fatalf("the module has %q %d times", old, strings.Count(module, old))
		}
		module = strings.Replace(module, old, marked, 1)
	}
	a.Write("build/release.wasm", module)
	return a
}

// markOf reads the answer of a handler of a marked app, and returns its mark. It is an error if parts
// of the answer belong to different releases.
func markOf(body []byte) (mark string, err error) {
	var code, data string
	var context struct{ Route string }
	var rest struct {
		Schema string
		Rows   []struct{ Mark, Extra string }
	}
	if err := json.Unmarshal(body, &[...]any{&code, &data, &context, &rest}); err != nil {
		return "", fmt.Errorf("%s: %w", body, err)
	}
	whole := code == data
	switch {
	case context.Route == "/release/:r"+code:
		whole = whole && rest.Schema == code
	case context.Route == "/note" && len(rest.Rows) == 1:
		row := rest.Rows[0]
		whole = whole && row.Mark == code && (row.Extra == "more") == (code == marks[2])
	default:
		whole = false
	}
	if !whole {
		return "", fmt.Errorf("not from one release: %s", body)
	}
	return code, nil
}

// The marks of the three releases. The third one adds a field.
var marks = []string{"1001", "1002", "1003"}

// sample is an answer of a server.
type sample struct{ began, took time.Duration } // since the traffic began

// traffic are clients that each send a request when the answer to the one before has arrived.
type traffic struct {
	t       *testing.T
	addr    string
	began   time.Time
	stop    chan struct{}
	running sync.WaitGroup
	failed  chan struct{} // closed after an error
	fail    sync.Once
	answers atomic.Int64
	paused  sync.RWMutex // locked while no client sends a request
	// check gets each answer. active is what begin returned before the request was sent.
	begin func() int
	check func(active int, status int, body []byte) error

	mu      sync.Mutex
	samples []sample
}

func newTraffic(t *testing.T, addr string, begin func() int, check func(active, status int, body []byte) error) *traffic {
	return &traffic{t: t, addr: addr, began: time.Now(), stop: make(chan struct{}), failed: make(chan struct{}), begin: begin, check: check}
}

// clients starts n clients. pause is the time between two requests of a client.
func (l *traffic) clients(n int, pause time.Duration, request string) {
	for range n {
		l.running.Go(func() {
			samples, err := l.client(pause, request)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.samples = append(l.samples, samples...)
			if err != nil {
				l.t.Error(err)
				l.fail.Do(func() { close(l.failed) })
			}
		})
	}
}

// client sends requests on one connection until the end.
func (l *traffic) client(pause time.Duration, request string) (samples []sample, err error) {
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		if pause > 0 {
			<-time.After(pause)
		}
		select {
		case <-l.stop:
			return samples, nil
		case <-l.failed:
			return samples, nil
		default:
		}
		l.paused.RLock()
		active, began := l.begin(), time.Now()
		l.paused.RUnlock()
		_ = conn.SetDeadline(began.Add(harness.Timeout))
		if _, err := io.WriteString(conn, request); err != nil {
			return samples, err
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return samples, fmt.Errorf("after %d answers: %w", len(samples), err)
		}
		body, err := io.ReadAll(answer.Body)
		if err == nil && answer.Close {
			err = errors.New("the server ends the connection")
		}
		if err == nil {
			err = l.check(active, answer.StatusCode, body)
		}
		if err != nil {
			return samples, err
		}
		l.answers.Add(1)
		samples = append(samples, sample{began.Sub(l.began), time.Since(began)})
	}
}

// end ends all clients.
func (l *traffic) end() {
	close(l.stop)
	l.running.Wait()
}

const getRelease = "GET /release/x HTTP/1.1\r\nHost: switched\r\n\r\n"

// postNote is a request that inserts a row.
func postNote(token string) string {
	const row = `{"into":"Note","values":{"text":"a note"}}`
	return fmt.Sprintf("POST /note HTTP/1.1\r\nHost: switched\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n%s", token, len(row), row)
}

// switches is a node with three releases that are activated one after the other, while clients send
// requests.
type switches struct {
	*edge
	apps []*harness.App
	ids  []string
	// history has the mark of the active release after each switch. begun of them have begun, and
	// done are complete.
	history     []string
	begun, done atomic.Int64
}

// startSwitches deploys the releases on a new node, for so many switches. prepare changes the app with an index.
func startSwitches(t *testing.T, most int, prepare func(index int, a *harness.App)) *switches {
	t.Helper()
	s := &switches{edge: startEdge(t, "RUNNER_METRICS_LISTEN=127.0.0.1:0"), history: make([]string, len(marks)+most)}
	for i, fields := range []string{"", "", extraField} {
		s.apps = append(s.apps, markedApp(t, marks[i], fields))
		prepare(i, s.apps[i])
		s.change(i, func() { s.ids = append(s.ids, s.must(s.apps[i], "deploy", "--yes").After) })
	}
	return s
}

// change activates the release with an index.
func (s *switches) change(index int, activate func()) {
	s.history[s.begun.Load()] = marks[index]
	s.begun.Add(1)
	activate()
	s.done.Store(s.begun.Load())
}

// switchTo activates the release with an index by a command, and checks that it is served.
func (s *switches) switchTo(index int, command ...string) {
	s.T.Helper()
	s.change(index, func() {
		if r := s.run(s.apps[index], command...); r.Status != 0 {
			s.T.Errorf("%v: %d %s", command, r.Status, r.Stderr)
		}
	})
	if mark, err := markOf([]byte(s.Do("GET", "/release/x", "").Body)); err != nil || mark != marks[index] {
		s.T.Errorf("after %v: %s is active, and not %s: %v", command, mark, marks[index], err)
	}
}

// begin returns the number of complete switches, for check.
func (s *switches) begin() int { return int(s.done.Load()) }

// check checks an answer: all of it is from one release, which was active while the request ran.
func (s *switches) check(begun, status int, body []byte) error {
	if status != 200 {
		return fmt.Errorf("%d %s", status, body)
	}
	mark, err := markOf(body)
	if err != nil {
		return err
	}
	if possible := s.history[begun-1 : s.begun.Load()]; !slices.Contains(possible, mark) {
		return fmt.Errorf("an answer from %s while %v were active: %s", mark, possible, body)
	}
	return nil
}

// Three releases are deployed and rolled back again and again under full load. No request fails, each
// answer is from one release, and nothing is left behind: the long form compares what the server
// holds in the last third of the switches with the middle third.
func TestReleasesAreSwitchedUnderLoad(t *testing.T) {
	count := 10
	if harness.Soak {
		count = 200
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := startSwitches(t, count, func(int, *harness.App) {})
	token := s.app.Token("writer", "--data", s.data)
	l := newTraffic(t, s.Addr, s.begin, s.check)
	l.clients(14, 0, getRelease)
	l.clients(2, 20*time.Millisecond, postNote(token))
	metrics := s.status().Metrics
	samples := make([][]int64, len(heldNames))
	commands := map[string]int{}
	active, previous := 2, 1
	for range count {
		next := (active + 1 + random.IntN(2)) % 3
		command := []string{"deploy", "--yes"}
		switch random.IntN(3) {
		case 0:
			command = []string{"rollback", s.ids[next]}
		case 1:
			next, command = previous, []string{"rollback"}
		}
		commands[command[0]]++
		s.switchTo(next, command...)
		active, previous = next, active
		for i, n := range held(t, s.Server, metrics) {
			samples[i] = append(samples[i], n)
		}
		if t.Failed() {
			break
		}
	}
	l.end()
	answers := l.answers.Load()
	t.Logf("%d answers during %d deployments and %d rollbacks in %s", answers, commands["deploy"], commands["rollback"], time.Since(l.began).Round(time.Second))
	if answers < int64(10*count) || commands["deploy"] == 0 || commands["rollback"] == 0 {
		t.Error("there was too little traffic")
	}
	if t.Failed() {
		return
	}
	for i, all := range samples {
		compareThirds(t, heldNames[i], all)
	}
}
