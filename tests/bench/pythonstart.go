//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"
)

// starts has the measurements of starts, and of requests to an app with and without `warm`.
type starts struct {
	servers []*startRounds
	arms    []*arm
	others  float64
}

// startRounds are the starts of one server, in ms.
type startRounds struct {
	name, what       string
	listening, first []float64 // until it listens, and until it has answered a request
	cpu              []float64 // until then
}

// warmTasks are the pages of the application that are measured with and without `warm`.
var warmTasks = []task{{handler: "hello", status: 200}, {handler: "page", status: 200}}

// measureStarts starts servers with the application in Flask in turns, and compares the app with `warm` and without.
func (p *pythonBench) measureStarts(rounds int, length time.Duration) (s *starts, err error) {
	warm, err := p.app("flask", "warm")
	if err != nil {
		return nil, err
	}
	cold, err := p.app("flask", "cold", `wsgi(app, warm=("/hello", "/page"))`, "wsgi(app)")
	if err != nil {
		return nil, err
	}
	servers := []struct {
		name, what string
		start      func(*arm) error
	}{
		{flaskArm, "code in the cache", serve(p.runner, warm)},
		{coldArm, "the same", serve(p.runner, cold)},
		{gunicornFlaskArm, "4 workers, bytecode in the cache", p.gunicornCommand("site_pages:app", "--workers", "4")},
		{gunicornFlaskArm, "1 worker", p.gunicornCommand("site_pages:app")},
	}
	s = &starts{servers: make([]*startRounds, len(servers))}
	for i, server := range servers {
		s.servers[i] = &startRounds{name: server.name, what: server.what}
	}
	for round := range 1 + rounds {
		for i, server := range servers {
			if err := s.servers[i].measure(server.start, round > 0); err != nil {
				return nil, err
			}
		}
	}
	defer func() { stop(s.arms) }()
	for _, server := range servers[:2] {
		a := &arm{name: server.name, tasks: []string{warmTasks[0].handler, warmTasks[1].handler}}
		if err := a.start(server.start); err != nil {
			return nil, err
		}
		s.arms = append(s.arms, a)
	}
	for _, t := range warmTasks {
		if err := checkSame(s.arms, t); err != nil {
			return nil, err
		}
	}
	s.others, err = measureRounds(s.arms, warmTasks, rounds, func(a *arm, t task) (sample, error) { return a.compute(t, length) })
	return s, err
}

// measure starts a server and sends it a request. The first start, which fills the caches, is not kept.
func (r *startRounds) measure(start func(*arm) error, keep bool) error {
	a := &arm{name: r.name}
	if err := a.start(start); err != nil {
		return err
	}
	defer stop([]*arm{a})
	listening := time.Since(a.began)
	if err := a.check(serverTasks()[0]); err != nil {
		return err
	}
	first := time.Since(a.began)
	cpu, err := cpuTimeOfAll(a.server.Process.Pid)
	if err != nil || !keep {
		return err
	}
	r.listening = append(r.listening, listening.Seconds()*1000)
	r.first = append(r.first, first.Seconds()*1000)
	r.cpu = append(r.cpu, cpu.Seconds()*1000)
	return nil
}

const pythonStartText = `The application in Flask, from the start of the server until it has answered one request, in ms. gunicorn listens
before its workers have imported the application. CPU time is that of all processes until then.

`

// table compares the starts with each other, and the pages with and without warm.
func (s *starts) table() string {
	var b strings.Builder
	b.WriteString("| server | what it is | first answer | CPU time |\n|---|---|---|---|\n")
	for _, r := range s.servers {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, r.what, spread(r.first, "%.0f"), spread(r.cpu, "%.0f"))
	}
	fmt.Fprintf(&b, "\nThe goal of the runner's start is ≤ 1,000 ms until it listens: %s ms.\n", spread(s.servers[0].listening, "%.0f"))
	b.WriteString("\nServer CPU per request, in ms, with `warm=(\"/hello\", \"/page\")` and without. *page* has a template of 20 rows.\n\n" +
		"| page | with `warm` | without | ratio |\n|---|---|---|---|\n")
	warm, cold := s.arms[0], s.arms[1]
	for _, t := range warmTasks {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", t.handler, spread(values(warm, t.handler, sample.cpuMillis), "%.2f"),
			spread(values(cold, t.handler, sample.cpuMillis), "%.2f"), spread(ratios(cold, warm, t.handler, sample.cpu), "%.2f"))
	}
	return b.String()
}
