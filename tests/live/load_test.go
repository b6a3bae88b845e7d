package live_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const boardsSchema = `
entity Board {
  id: id
  number: int @unique
  votes: int = 0
  @@allow read, write to anonymous
}
entity Other {
  id: id
  text: string
  @@allow read, write to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  GET  /boards/:number -> board (live: 1h)
  POST /boards/:number -> vote
  POST /others -> other
}
`

const boardsHandlers = `
import { insert, ok, query, update, type RouteRequest } from "@runner/sdk";

const board1 = (req: RouteRequest) => query("Board").where("number", "=", Number(req.params.number)).first();

export const board = async (req: RouteRequest) => ok({ votes: (await board1(req))?.votes ?? 0 });

export async function vote(req: RouteRequest) {
  const row = await board1(req);
  const votes = (row?.votes ?? 0) + 1;
  if (row) await update("Board", { votes }).where("id", "=", row.id);
  else await insert("Board", { number: Number(req.params.number), votes });
  return ok(votes);
}

export const other = async () => ok((await insert("Other", { text: "unrelated" })).id);
`

// watchCount returns the number of watches in the tests with many watches: 8,000 in the long form.
func watchCount() int {
	if harness.Soak {
		return 8000
	}
	return 400
}

// serveBoards serves boards. One address may have as many connections as the tests need.
func serveBoards(t *testing.T) (s *harness.Server, metrics string) {
	a := harness.NewApp(t, boardsSchema, `
[front]
max_connections = 14000
max_connections_per_ip = 14000
idle_timeout = "30m"
[metrics]
listen = "127.0.0.1:0"
`)
	a.Write("handlers/boards.ts", boardsHandlers)
	a.Must("build")
	s = a.Serve()
	return s, a.MetricsURL()
}

// boardWatch is one connection that watches boards. One goroutine may read it.
type boardWatch struct {
	conn  net.Conn
	lines *bufio.Reader
	votes []atomic.Int64 // of each watch, the newest value
	moved func(watch int, votes int64)
}

// eachInParallel calls do for each number below n in 16 goroutines, and returns one of the errors.
func eachInParallel(n int, do func(i int) error) (err error) {
	var mu sync.Mutex
	var next atomic.Int64
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if failed := do(i); failed != nil {
					mu.Lock()
					err = failed
					mu.Unlock()
					return
				}
			}
		})
	}
	work.Wait()
	return err
}

// dialBoards opens a connection that watches one board, or a shared connection that watches several.
func dialBoards(s *harness.Server, boards ...int) (*boardWatch, error) {
	request := fmt.Sprintf("GET /v1/boards/%d HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n", boards[0])
	if len(boards) > 1 {
		var specs []string
		for i, board := range boards {
			specs = append(specs, fmt.Sprintf(`{"name":"%d","path":"/v1/boards/%d"}`, i, board))
		}
		body := `{"watches":[` + strings.Join(specs, ",") + "]}"
		request = fmt.Sprintf("POST /v1/_live HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	w := &boardWatch{conn: conn, lines: bufio.NewReaderSize(conn, 512), votes: make([]atomic.Int64, len(boards))}
	for i := range w.votes {
		w.votes[i].Store(-1)
	}
	return w, nil
}

// dialIdle opens a connection, and sends a request and reads its answer.
func dialIdle(s *harness.Server) (net.Conn, error) {
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	if _, err = io.WriteString(conn, "GET /v1/boards/1 HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
		var answer [1 << 10]byte
		_, err = conn.Read(answer[:])
	}
	return conn, err
}

// read reads n events, or events until the connection ends if n is 0. Comments do not count.
func (w *boardWatch) read(n int) error {
	watch := 0
	for got := 0; n == 0 || got < n; {
		line, err := w.lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if name, ok := bytes.CutPrefix(line, []byte("watch: ")); ok {
			watch, err = strconv.Atoi(string(bytes.TrimSpace(name)))
		} else if data, ok := bytes.CutPrefix(line, []byte(`data: {"votes":`)); ok {
			var votes int64
			votes, err = strconv.ParseInt(string(bytes.TrimRight(data, "}\r\n")), 10, 64)
			w.votes[watch].Store(votes)
			if w.moved != nil {
				w.moved(watch, votes)
			}
			got++
		} else if bytes.HasPrefix(line, []byte("HTTP/")) && !bytes.Contains(line, []byte(" 200 ")) || bytes.HasPrefix(line, []byte("event: end")) {
			err = fmt.Errorf("the server answers %s", line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watchBoards opens n connections and waits for the first values. board says which boards a connection watches.
func watchBoards(t *testing.T, s *harness.Server, n int, board func(i int) []int) []*boardWatch {
	t.Helper()
	all := make([]*boardWatch, n)
	err := eachInParallel(n, func(i int) (err error) {
		if all[i], err = dialBoards(s, board(i)...); err != nil {
			return err
		}
		return all[i].read(len(all[i].votes))
	})
	if err != nil {
		t.Fatalf("watch: %v\n%s", err, s.Stderr.String())
	}
	t.Cleanup(func() {
		for _, w := range all {
			_ = w.conn.Close()
		}
	})
	return all
}

// followBoards reads the events of all connections until they end.
func followBoards(all []*boardWatch) {
	for _, w := range all {
		go func() { _ = w.read(0) }()
	}
}

// vote adds a vote to a board, and returns the number of votes.
func vote(s *harness.Server, board int) (int64, error) {
	got, err := s.Try("POST", fmt.Sprint("/v1/boards/", board), "")
	if err != nil || got.Status != 200 {
		return 0, fmt.Errorf("vote: %d %s %w", got.Status, got.Body, err)
	}
	return strconv.ParseInt(got.Body, 10, 64)
}

// quantile returns a quantile of times. It sorts them.
func quantile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))].Round(10 * time.Microsecond)
}

// liveMetrics returns the metrics of the watches.
func liveMetrics(t *testing.T, url string) (queries, watches, runs, events float64) {
	t.Helper()
	m := harness.Metrics(t, harness.Scrape(t, url))
	return m["runner_live_queries"], m["runner_live_watches"], m["runner_live_runs_total"], m[`runner_live_events_total{kind="value"}`]
}

// ownMemory returns the server's own memory when it does not shrink any more.
func ownMemory(s *harness.Server) int64 {
	var last int64
	for range 20 { // Go gives memory back in the background
		now := s.Resources().OwnBytes
		if last != 0 && now >= last-last/200 {
			break
		}
		last = now
		<-time.After(time.Second)
	}
	return s.Resources().OwnBytes
}

func TestEachWatcherGetsTheNewestOfManyWrites(t *testing.T) {
	if !harness.Soak {
		t.Parallel()
	}
	watches, rate, length := watchCount(), 100, 2*time.Second
	if harness.Soak {
		rate, length = 500, 10*time.Minute
	}
	if text := os.Getenv("RUNNER_LIVE_LOAD"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	boards := watches / 8
	s, metrics := serveBoards(t)
	if err := eachInParallel(boards, func(i int) error { _, err := vote(s, i); return err }); err != nil {
		t.Fatal(err)
	}
	all := watchBoards(t, s, watches, func(i int) []int { return []int{i % boards} })
	// acknowledged has the time when each vote of a board was answered.
	type vector struct {
		sync.Mutex
		at []time.Time
	}
	acknowledged := make([]vector, boards)
	var mu sync.Mutex
	var delays []time.Duration // from the answer of a write, which its commit precedes, to its event
	for i := range acknowledged {
		acknowledged[i].at = make([]time.Time, 1) // the first vote
	}
	for i, w := range all {
		seen := int64(1)
		w.moved = func(_ int, votes int64) {
			now := time.Now()
			v := &acknowledged[i%boards]
			v.Lock()
			// An event may arrive before the answer of its write. It includes the votes since the event before.
			var of []time.Duration
			for n := seen; n < votes; n++ {
				if int(n) < len(v.at) && !v.at[n].IsZero() {
					of = append(of, now.Sub(v.at[n]))
				} else {
					of = append(of, 0)
				}
			}
			v.Unlock()
			seen = votes
			mu.Lock()
			delays = append(delays, of...)
			mu.Unlock()
		}
	}
	followBoards(all)
	_, _, runsBefore, _ := liveMetrics(t, metrics)
	before := s.Resources()
	began := time.Now()
	var writers sync.WaitGroup
	var due, failed atomic.Int64
	for i := range 16 {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		writers.Go(func() {
			for {
				at := began.Add(time.Duration(due.Add(1)) * time.Second / time.Duration(rate))
				if at.Sub(began) > length {
					return
				}
				<-time.After(time.Until(at))
				board := random.IntN(boards)
				votes, err := vote(s, board)
				if err != nil {
					failed.Add(1)
					continue
				}
				now := time.Now()
				v := &acknowledged[board]
				v.Lock()
				for int64(len(v.at)) < votes {
					v.at = append(v.at, time.Time{})
				}
				v.at[votes-1] = now
				v.Unlock()
			}
		})
	}
	writers.Wait()
	wrote := time.Since(began)
	for i, w := range all {
		v := &acknowledged[i%boards]
		s.WaitUntil("each watcher has the last value", func() bool {
			v.Lock()
			defer v.Unlock()
			return w.votes[0].Load() == int64(len(v.at))
		})
	}
	after := s.Resources()
	_, _, runs, _ := liveMetrics(t, metrics)
	writes := 0
	for i := range acknowledged {
		writes += len(acknowledged[i].at) - 1
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d watches of %d boards, %d writes in %s, %d failed: from the answer of a write to its event p50 %s, p99 %s, the longest %s; %.3f runs for a write; own memory %d MB, and %d MB after it; %.2f processors",
		watches, boards, writes, wrote.Round(time.Second), failed.Load(), quantile(delays, 0.5), quantile(delays, 0.99), quantile(delays, 1),
		(runs-runsBefore)/float64(writes), before.OwnBytes>>20, after.OwnBytes>>20, (after.CPU-before.CPU).Seconds()/wrote.Seconds())
	if failed.Load() > 0 {
		t.Errorf("%d writes failed", failed.Load())
	}
	if runs-runsBefore > float64(writes) {
		t.Errorf("%v runs for %d writes, each of which 8 watch", runs-runsBefore, writes)
	}
}

func TestEqualWatchesShareTheirRuns(t *testing.T) {
	t.Parallel()
	s, metrics := serveBoards(t)
	all := watchBoards(t, s, 100, func(int) []int { return []int{1} })
	if queries, watches, runs, events := liveMetrics(t, metrics); queries != 1 || watches != 100 || runs != 1 || events != 100 {
		t.Errorf("%v queries, %v watches, %v runs, %v events; want 1, 100, 1, 100", queries, watches, runs, events)
	}
	followBoards(all)
	for n := range 3 {
		if _, err := vote(s, 1); err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			s.WaitUntil("each has the value", func() bool { return w.votes[0].Load() == int64(n+1) })
		}
	}
	for began := time.Now(); time.Since(began) < 1500*time.Millisecond; { // commits of other rows
		s.Want(200, nil, "POST", "/v1/others", "")
	}
	if _, _, runs, events := liveMetrics(t, metrics); runs != 4 || events != 400 {
		t.Errorf("%v runs, %v events after 3 changes; want 4, 400", runs, events)
	}
}

// TestWatchesTakeLittleMemory compares watches with connections that wait for a request.
func TestWatchesTakeLittleMemory(t *testing.T) {
	if !harness.Soak {
		t.Skip("RUNNER_SOAK is not set: it compares the memory of thousands of connections")
	}
	n := watchCount()
	idle := func(s *harness.Server, connections int) {
		all := make([]net.Conn, connections)
		if err := eachInParallel(connections, func(i int) (err error) { all[i], err = dialIdle(s); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, c := range all {
				_ = c.Close()
			}
		})
	}
	measure := func(what string, open func(s *harness.Server)) int64 {
		s, metrics := serveBoards(t)
		defer s.Kill()
		followBoards(watchBoards(t, s, 1, func(int) []int { return []int{1} })) // the memory of the first run is not measured
		before := ownMemory(s)
		open(s)
		after := ownMemory(s)
		m := harness.Metrics(t, harness.Scrape(t, metrics))
		t.Logf("%s: %d bytes each: %d MB and before %d MB; heap in use %.0f MB, stacks %.0f MB, %v goroutines", what, (after-before)/int64(n),
			after>>20, before>>20, m["go_memstats_heap_inuse_bytes"]/(1<<20), m["go_memstats_stack_inuse_bytes"]/(1<<20), m["go_goroutines"])
		return after - before
	}
	idleMany := measure(fmt.Sprint(n, " idle connections"), func(s *harness.Server) { idle(s, n) })
	alone := measure(fmt.Sprint(n, " connections with a watch each"), func(s *harness.Server) {
		watchBoards(t, s, n, func(i int) []int { return []int{i % (n / 8)} })
	})
	idleFew := measure(fmt.Sprint(n/100, " idle connections"), func(s *harness.Server) { idle(s, n/100) })
	shared := measure(fmt.Sprint(n/100, " connections with 100 watches each"), func(s *harness.Server) {
		watchBoards(t, s, n/100, func(i int) []int {
			boards := make([]int, 100)
			for j := range boards {
				boards[j] = (i*100 + j) % (n / 8)
			}
			return boards
		})
	})
	t.Logf("a watch takes %d bytes on a connection of its own, beside the connection's, and %d on a shared one", (alone-idleMany)/int64(n), (shared-idleFew)/int64(n))
}

// TestIdleWatchesDoNotSlowWrites measures rows inserted per second with watches of others, and without, by turns: each watch
// on its own connection, and 100 on each.
func TestIdleWatchesDoNotSlowWrites(t *testing.T) {
	if !harness.Soak {
		t.Skip("RUNNER_SOAK is not set: it compares times")
	}
	n := watchCount()
	s, _ := serveBoards(t)
	rate := func() float64 {
		var done atomic.Int64
		var writers sync.WaitGroup
		began := time.Now()
		for range 16 {
			writers.Go(func() {
				for time.Since(began) < 3*time.Second {
					if got, err := s.Try("POST", "/v1/others", ""); err != nil || got.Status != 200 {
						t.Errorf("%d %s %v", got.Status, got.Body, err)
						return
					}
					done.Add(1)
				}
			})
		}
		writers.Wait()
		return float64(done.Load()) / time.Since(began).Seconds()
	}
	rate()
	for _, each := range []int{1, 100} {
		var ratios, alone []float64
		for range 5 {
			files := s.Resources().Files
			without := rate()
			all := watchBoards(t, s, n/each, func(i int) (boards []int) {
				for j := range each {
					boards = append(boards, (i*each+j)%(n/8))
				}
				return boards
			})
			followBoards(all)
			with := rate()
			for _, w := range all {
				_ = w.conn.Close()
			}
			s.WaitUntil("the watches have ended", func() bool { return s.Resources().Files < files+n/each/2 })
			alone, ratios = append(alone, without), append(ratios, with/without)
		}
		slices.Sort(ratios)
		slices.Sort(alone)
		t.Logf("%.0f inserts per second without watches; with %d idle ones, %d on each connection, %.3f times as many (%.3f)",
			alone[2], n, each, ratios[2], ratios)
		if ratios[2] < 0.95 {
			t.Errorf("with %d idle watches, %d on each connection, %.3f times as many inserts", n, each, ratios[2])
		}
	}
}

// TestRequestsAreAnsweredWhileAllWatchersWake measures requests while one commit after the other wakes all watchers.
func TestRequestsAreAnsweredWhileAllWatchersWake(t *testing.T) {
	if !harness.Soak {
		t.Skip("RUNNER_SOAK is not set: it compares times")
	}
	n := watchCount()
	s, _ := serveBoards(t)
	followBoards(watchBoards(t, s, n, func(int) []int { return []int{1} }))
	// measure returns the time of each request: one after the other, with a pause.
	measure := func(length time.Duration) (all []time.Duration) {
		for began := time.Now(); time.Since(began) < length; <-time.After(time.Millisecond) {
			start := time.Now()
			if got, err := s.Try("GET", "/v1/boards/2", ""); err != nil || got.Status != 200 {
				t.Fatalf("%d %s %v", got.Status, got.Body, err)
			}
			all = append(all, time.Since(start))
		}
		return all
	}
	measure(time.Second)
	var quiet, busy []time.Duration
	for range 5 {
		quiet = append(quiet, measure(4*time.Second)...)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				if _, err := vote(s, 1); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
			}
		}()
		busy = append(busy, measure(4*time.Second)...)
		close(stop)
		<-stopped
	}
	t.Logf("requests beside %d watches: p50 %s, p99 %s; while a commit a second wakes them all p50 %s, p99 %s",
		n, quantile(quiet, 0.5), quantile(quiet, 0.99), quantile(busy, 0.5), quantile(busy, 0.99))
	if ratio := float64(quantile(busy, 0.99)) / float64(quantile(quiet, 0.99)); ratio > 1.5 {
		t.Errorf("the 99th percentile is %.2f times as high while all watchers wake", ratio)
	}
}

func TestWatchersThatHangUpLeaveNothing(t *testing.T) {
	t.Parallel()
	n := 100
	if harness.Soak {
		n = 1000
	}
	s, metrics := serveBoards(t)
	warm := watchBoards(t, s, 20, func(i int) []int { return []int{i} })
	for _, w := range warm {
		_ = w.conn.Close()
	}
	nothing := func() bool {
		queries, watches, _, _ := liveMetrics(t, metrics)
		return queries == 0 && watches == 0
	}
	s.WaitUntil("nothing is watched", nothing)
	read := func(name string) float64 { return harness.Metrics(t, harness.Scrape(t, metrics))[name] }
	before, goroutines := s.Resources(), read("go_goroutines")
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex // guards random
	stop := make(chan struct{})
	var writer sync.WaitGroup
	for first := range 4 {
		writer.Go(func() {
			for i := first; ; i += 4 {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := vote(s, i%10); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	err := eachInParallel(n, func(i int) error {
		mu.Lock()
		boards := []int{random.IntN(10)}
		for random.IntN(4) == 0 {
			boards = append(boards, random.IntN(10))
		}
		events, reset := random.IntN(4), random.IntN(2) == 0
		mu.Unlock()
		w, err := dialBoards(s, boards...)
		if err != nil {
			return err
		}
		if reset { // the server gets RST instead of FIN
			_ = w.conn.(*net.TCPConn).SetLinger(0)
		}
		defer w.conn.Close()
		if events == 0 {
			return nil // perhaps before the watch begins
		}
		return w.read(events)
	})
	close(stop)
	writer.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Stderr.String())
	}
	began := time.Now()
	s.WaitUntil("nothing is watched", nothing)
	took := time.Since(began)
	harness.Client.CloseIdleConnections()
	s.WaitUntil("no connection and no goroutine is left", func() bool {
		now, left := s.Resources(), read("go_goroutines")
		return now.Files <= before.Files+2 && left <= goroutines+4
	})
	if got := read("runner_live_value_bytes"); got != 0 {
		t.Errorf("%v bytes of values are left", got)
	}
	t.Logf("%d watchers hung up; nothing was watched %s after the last one", n, took.Round(time.Millisecond))
}
