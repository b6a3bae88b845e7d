//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// inFlight is how many requests wait while the memory is measured.
const inFlight = 64

// memoryRounds are the measurements of one server.
type memoryRounds struct {
	arm           arm
	idle, waiting []memory
}

// measureMemory starts servers with the same application in Flask, in turns, and measures what each holds after some
// requests, and while requests wait for another server.
func (p *pythonBench) measureMemory(rounds int) ([]*memoryRounds, error) {
	slow, err := newSlowServer()
	if err != nil {
		return nil, err
	}
	defer slow.close()
	app, err := p.app("flask", "memory", "http://127.0.0.1:8000", slow.url)
	if err != nil {
		return nil, err
	}
	// One worker may accept all connections.
	threads := []string{"--worker-class", "gthread", "--workers", "4", "--threads", fmt.Sprint(inFlight)}
	workers := []string{"--workers", fmt.Sprint(inFlight)}
	servers := []struct {
		name, what string
		start      func(*arm) error
	}{
		{flaskArm, "a sandbox for each request", serve(p.runner, app)},
		{gunicornFlaskArm, "4 workers, `--threads 64`; requests share a process", p.gunicornCommand("site_pages:app", threads...)},
		{gunicornFlaskArm, "64 workers", p.gunicornCommand("site_pages:app", workers...)},
		{gunicornFlaskArm, "64 workers, `--preload`", p.gunicornCommand("site_pages:app", append(workers, "--preload")...)},
	}
	all := make([]*memoryRounds, len(servers))
	for range rounds {
		for i, s := range servers {
			if all[i] == nil {
				all[i] = &memoryRounds{arm: arm{name: s.name, what: s.what}}
			}
			if err := all[i].measure(s.start, slow); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// measure measures a server that has just started and served requests.
func (m *memoryRounds) measure(start func(*arm) error, slow *slowServer) (err error) {
	a := &m.arm
	if err := a.start(start); err != nil {
		return err
	}
	defer stop([]*arm{a})
	for range 20 {
		if err := a.check(serverTasks()[0]); err != nil {
			return err
		}
	}
	idle, err := memoryOf(a.server.Process.Pid)
	if err != nil {
		return err
	}
	// The last of three: each worker has answered.
	var waiting memory
	for range 3 {
		err := slow.hold(a, func() (err error) {
			waiting, err = memoryOf(a.server.Process.Pid)
			return err
		})
		if err != nil {
			return err
		}
	}
	m.idle, m.waiting = append(m.idle, idle), append(m.waiting, waiting)
	return nil
}

// slowServer answers no request before it is told to.
type slowServer struct {
	url      string
	arrived  chan chan struct{} // requests, each with what it waits for
	listener net.Listener
}

func newSlowServer() (*slowServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &slowServer{url: "http://" + listener.Addr().String(), arrived: make(chan chan struct{}), listener: listener}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:errcheck // ends with the listener
		wait := make(chan struct{})
		s.arrived <- wait
		<-wait
		_, _ = w.Write([]byte("done"))
	}))
	return s, nil
}

func (s *slowServer) close() { _ = s.listener.Close() }

// hold sends requests to a server, each of which waits for s, calls a function when all wait, and lets them end.
func (s *slowServer) hold(a *arm, while func() error) error {
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), ":")
	t := task{handler: "wait/" + port, status: 200}
	answers := make(chan error, inFlight)
	for range inFlight {
		go func() {
			status, body, err := a.call(t)
			if err == nil && (status != t.status || string(body) != "done") {
				err = fmt.Errorf("%s in %s (%s) answers %d %q", t.handler, a.name, a.what, status, body)
			}
			answers <- err
		}()
	}
	var waiting []chan struct{}
	var err error
	for len(waiting) < inFlight && err == nil {
		select {
		case wait := <-s.arrived:
			waiting = append(waiting, wait)
		case err = <-answers:
			if err == nil {
				err = errors.New("a request has not waited")
			}
		case <-time.After(20 * time.Second):
			err = fmt.Errorf("%s (%s): only %d requests are in flight", a.name, a.what, len(waiting))
		}
	}
	if err == nil {
		err = while()
	}
	for _, wait := range waiting {
		close(wait)
	}
	if err != nil {
		return err
	}
	for range inFlight {
		err = errors.Join(err, <-answers)
	}
	return err
}

const pythonMemoryText = `The application in Flask, in servers that have just started and have answered 20 requests. Then 64 requests wait for
another server at the same time, three times. In MiB: PSS divides a page among the processes that share it, RSS counts
it in each. The last column is the PSS that a waiting request adds. 64 workers have not all imported the application
when 20 requests are answered, so the last column has a part of that.

`

// memoryTable compares the servers.
func memoryTable(all []*memoryRounds) string {
	var b strings.Builder
	b.WriteString("| server | what it is | idle, PSS | idle, RSS | 64 waiting, PSS | 64 waiting, RSS | each |\n|---|---|---|---|---|---|---|\n")
	for _, m := range all {
		column := func(of func(idle, waiting memory) float64) string {
			var values []float64
			for i := range m.idle {
				values = append(values, of(m.idle[i], m.waiting[i])/1024)
			}
			return spread(values, "%.0f")
		}
		each := make([]float64, len(m.idle))
		for i := range each {
			each[i] = (m.waiting[i].proportional - m.idle[i].proportional) / inFlight
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s KiB |\n", m.arm.name, m.arm.what,
			column(func(idle, _ memory) float64 { return idle.proportional }), column(func(idle, _ memory) float64 { return idle.resident }),
			column(func(_, waiting memory) float64 { return waiting.proportional }), column(func(_, waiting memory) float64 { return waiting.resident }),
			spread(each, "%.0f"))
	}
	return b.String()
}

// pythonVersion is how a CPython names itself, "CPython 3.11.2".
func pythonVersion(python string) (string, error) {
	out, err := exec.Command(python, "-c", "import platform; print(platform.python_implementation(), platform.python_version())").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", python, err)
	}
	return strings.TrimSpace(string(out)), nil
}
