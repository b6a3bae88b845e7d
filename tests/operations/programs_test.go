package operations_test

import (
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// makeWait replaces the module of a marked app by a program that waits for requests, with the mark in its code and in its
// file.
func makeWait(t *testing.T, a *harness.App, mark string) {
	t.Helper()
	const code = "mark of the code: "
	module := harness.CProgram(t, harness.Testdata("programs/waits.c"))
	if strings.Count(module, code+"0000") != 1 {
		t.Fatalf("the program has no mark, or several")
	}
	a.Write("build/release.wasm", strings.Replace(module, code+"0000", code+mark, 1))
	a.Write("lib/mark.txt", mark)
	a.Write("files.schema", "module release { files: \"lib\", startTimeout: 10s }\n")
}

// startWaiting is startSwitches with two releases of programs that wait, and a third one of ordinary handlers.
func startWaiting(t *testing.T, most int) *switches {
	t.Helper()
	return startSwitches(t, most, func(index int, a *harness.App) {
		if index < 2 {
			makeWait(t, a, marks[index])
		}
	})
}

// Each of the releases replaces each other one under load, by a deployment and by a rollback. No request fails, and each
// answer is from one release, which is active.
func TestProgramsThatWaitAreSwitchedUnderLoad(t *testing.T) {
	harness.NeedPatches(t)
	rounds := 1
	if harness.Soak {
		rounds = 30
	}
	order := []int{0, 1, 2, 1, 0, 2}
	s := startWaiting(t, 2*rounds*len(order))
	token := s.app.Token("writer", "--data", s.data)
	l := newTraffic(t, s.Addr, s.begin, s.check)
	l.clients(6, 0, getRelease)
	l.clients(2, 0, postNote(token))
	for range rounds {
		for _, next := range order {
			s.switchTo(next, "deploy", "--yes")
		}
		for _, next := range order {
			s.switchTo(next, "rollback", s.ids[next])
		}
	}
	l.end()
	t.Logf("%d answers during %d activations", l.answers.Load(), 2*rounds*len(order))
	if l.answers.Load() < int64(100*rounds) {
		t.Error("there was too little traffic")
	}
}

// While a program starts, and when its start fails, the previous release serves all requests.
func TestAReleaseWhoseProgramDoesNotStartIsRefusedUnderLoad(t *testing.T) {
	harness.NeedPatches(t)
	s := startWaiting(t, 3)
	l := newTraffic(t, s.Addr, s.begin, s.check)
	l.clients(4, 0, getRelease)
	for _, active := range []int{0, 2} {
		s.switchTo(active, "rollback", s.ids[active])
		for how, want := range map[string]string{
			"exit": "exits with status 3 before it waits for a request; its last log lines: there is no configuration",
			"trap": "wasm error: unreachable; its last log lines: there is no configuration",
			"loop": "takes longer than 1s (startTimeout) before it waits for a request; its last log lines: there is no configuration",
		} {
			a := markedApp(t, "1009", "")
			makeWait(t, a, "1009")
			a.Write("lib/start.txt", how)
			a.Write("files.schema", "module release { files: \"lib\", startTimeout: 1s }\n")
			r := s.run(a, "deploy", "--yes")
			if r.Status != 3 || !strings.Contains(r.Stderr, "build/release.wasm: ") || !strings.Contains(r.Stderr, want) {
				t.Errorf("%s: %d %s, want %q", how, r.Status, r.Stderr, want)
			}
			if list := s.app.Must(append([]string{"releases"}, s.flags...)...); !strings.Contains(list, s.ids[active]+"  active") {
				t.Errorf("%s: %s is not active:\n%s", how, s.ids[active], list)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}

	// Two starts of 300 ms each.
	makeWait(t, s.apps[1], marks[1])
	s.apps[1].Write("lib/start.txt", "slow")
	before := l.answers.Load()
	s.switchTo(1, "deploy", "--yes")
	during := l.answers.Load() - before
	l.end()
	t.Logf("%d answers, %d while the last program started", l.answers.Load(), during)
	if during < 20 {
		t.Error("there was too little traffic")
	}
}

// A program that was deployed starts again with the server, from the release.
func TestAProgramStartsAgainWithTheServer(t *testing.T) {
	harness.NeedPatches(t)
	s := startWaiting(t, 1)
	s.switchTo(1, "rollback", s.ids[1])
	for i := range 2 {
		if i == 0 {
			s.Stop()
		} else {
			s.Kill()
		}
		s.start()
		if mark, err := markOf([]byte(s.Do("GET", "/release/x", "").Body)); err != nil || mark != marks[1] {
			t.Errorf("after start %d: %s, %v", i, mark, err)
		}
	}
}
