package operations_test

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// activator returns a function that activates one of the releases over the admin listener. Unlike a
// command, it takes no time of the processors beside the server.
func (s *switches) activator() func(index int) {
	token := strings.TrimSpace(harness.MustRead(s.T.(*testing.T), s.flags[5]))
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	s.T.Cleanup(transport.CloseIdleConnections)
	client := http.Client{Transport: transport}
	return func(index int) {
		s.change(index, func() {
			request, err := http.NewRequest("POST", s.flags[1]+"/v1/releases.activate", strings.NewReader(`{"id":"`+s.ids[index]+`"}`))
			if err != nil {
				s.T.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
			answer, err := client.Do(request)
			if err != nil {
				s.T.Fatal(err)
			}
			defer answer.Body.Close()
			if text, _ := io.ReadAll(answer.Body); answer.StatusCode != 200 {
				s.T.Fatalf("%d %s", answer.StatusCode, text)
			}
		})
	}
}

// addGoModule adds a module in Go, which is the same in all releases.
func addGoModule(t *testing.T, a *harness.App) {
	t.Helper()
	a.Write("build/census.wasm", harness.GoModule(t, harness.Testdata("handlers/census")))
	a.Write("count.schema", "routes(\"/count\", auth: none, rateLimit: none) { GET / -> count }\n")
}

// p99 is the 99th percentile of the times of the requests that began in a second, in milliseconds.
// The samples are in the order of their beginning.
func p99(samples []sample, from time.Duration) float64 {
	at := func(moment time.Duration) int {
		i, _ := slices.BinarySearchFunc(samples, moment, func(s sample, t time.Duration) int { return cmp.Compare(s.began, t) })
		return i
	}
	var took []float64
	for _, s := range samples[at(from):at(from+time.Second)] {
		took = append(took, float64(s.took)/float64(time.Millisecond))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// Three releases of an app with two modules, one of which they share, are activated in turn under full
// load of 16 connections: first one every three seconds, for the slowest requests in the second before
// and in the second from the beginning of the activation; then 200, one each second, and before each five
// of them five seconds without.
func TestASwitchOfReleasesCostsLittle(t *testing.T) {
	if !harness.Soak {
		t.Skip("compares speeds: make soak does it")
	}
	const slow, rounds, each = 30, 40, 5
	s := startSwitches(t, slow+rounds*each+5, func(_ int, a *harness.App) { addGoModule(t, a) })
	activate := s.activator()
	l := newTraffic(t, s.Addr, s.begin, func(begun, status int, body []byte) error {
		if status == 200 && string(body) == "0" { // of the module in Go
			return nil
		}
		return s.check(begun, status, body)
	})
	l.clients(12, 0, getRelease)
	l.clients(4, 0, "GET /count HTTP/1.1\r\nHost: switched\r\n\r\n")
	next := 0
	change := func() {
		activate(next)
		next = (next + 1) % len(s.ids)
	}
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	wait := func(seconds int) {
		for range seconds {
			<-clock.C
		}
	}
	memory := func() float64 { // at rest, when what the last activation has left is returned
		l.paused.Lock()
		defer l.paused.Unlock()
		change()
		var all []float64
		for range 6 {
			wait(1)
			all = append(all, float64(s.Resources().Bytes))
		}
		return slices.Min(all)
	}
	for range 3 {
		wait(1)
		change()
	}
	memoryBefore := memory()
	var moments []time.Duration
	for range slow {
		wait(3)
		moments = append(moments, time.Since(l.began))
		change()
	}
	wait(2)
	perSecond := func(perAnswer *[]float64, do func()) float64 {
		began, before, used := time.Now(), l.answers.Load(), s.Resources().CPU
		for range each {
			do()
			wait(1)
		}
		answers := float64(l.answers.Load() - before)
		*perAnswer = append(*perAnswer, float64((s.Resources().CPU-used).Microseconds())/answers)
		return answers / time.Since(began).Seconds()
	}
	var quietCPU, busyCPU []float64
	quiet, busy := alternately(rounds, func() float64 {
		wait(1)
		return perSecond(&quietCPU, func() {})
	}, func() float64 { return perSecond(&busyCPU, change) })
	memoryAfter := memory()
	l.end()
	if t.Failed() {
		return
	}
	slices.SortFunc(l.samples, func(a, b sample) int { return cmp.Compare(a.began, b.began) })
	var before, after []float64
	for _, moment := range moments {
		before, after = append(before, p99(l.samples, moment-time.Second)), append(after, p99(l.samples, moment))
	}
	b, a := median(before), median(after)
	t.Logf("%d answers; 99th percentile in the second before an activation %.2f ms, in the second after it %.2f ms: %.2f times", len(l.samples), b, a, a/b)
	t.Logf("%.0f requests per second, %.0f with an activation each second: %.3f times", quiet, busy, busy/quiet)
	q, u := median(quietCPU), median(busyCPU)
	t.Logf("%.1f µs of the server's CPU time for an answer, %.1f µs with an activation each second: %.3f times", q, u, u/q)
	t.Logf("%.1f MiB at rest before, %.1f MiB after: %.3f times", memoryBefore/(1<<20), memoryAfter/(1<<20), memoryAfter/memoryBefore)
	if a > 1.5*b {
		t.Error("the 99th percentile is more than 1.5 times that before")
	}
	if busy < 0.9*quiet {
		t.Error("fewer than 0.9 of the requests")
	}
	if memoryAfter > 1.05*memoryBefore {
		t.Error("more than 1.05 of the memory")
	}
}

// An app with a module in Go is deployed to a new node, and then the same again. The times are those of
// the whole command.
func TestTheSameDeploymentAgainTakesLittleTime(t *testing.T) {
	if !harness.Soak {
		t.Skip("compares times: make soak does it")
	}
	a := markedApp(t, marks[0], "")
	addGoModule(t, a)
	var node *edge
	deploy := func() float64 {
		began := time.Now()
		node.must(a, "deploy", "--yes")
		return time.Since(began).Seconds()
	}
	first, again := alternately(5, func() float64 {
		node = startEdge(t)
		return deploy()
	}, deploy)
	t.Logf("a deployment takes %.2f s, the same again %.3f s: %.3f times", first, again, again/first)
	if again > 0.1*first {
		t.Error("more than 0.1 of the time")
	}
}

// A server starts with one release, and with ten that it keeps.
func TestReleasesThatAreKeptDelayNoStart(t *testing.T) {
	if !harness.Soak {
		t.Skip("compares times: make soak does it")
	}
	var nodes []*edge
	for _, releases := range []int{1, 10} {
		e := startEdge(t)
		for i := range releases {
			e.must(markedApp(t, fmt.Sprint(3000+i), ""), "deploy", "--yes")
		}
		e.Stop()
		nodes = append(nodes, e)
		if files, err := filepath.Glob(filepath.Join(e.data, "blobs", "*")); err != nil || len(files) != 2*releases {
			t.Fatalf("%d files, %v", len(files), err)
		}
	}
	start := func(e *edge) func() float64 {
		return func() float64 {
			began := time.Now()
			s := e.app.Serve("--data", e.data)
			took := time.Since(began).Seconds()
			s.Want(200, nil, "GET", "/release/x", "")
			s.Stop()
			return took
		}
	}
	one, ten := alternately(25, start(nodes[0]), start(nodes[1]))
	t.Logf("a start takes %.0f ms with one release, %.0f ms with ten: %.3f times", 1000*one, 1000*ten, ten/one)
	if ten > 1.1*one {
		t.Error("more than 1.1 times")
	}
}
