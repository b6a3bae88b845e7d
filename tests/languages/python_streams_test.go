package languages_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

const streamsSchema = `app streams
entity Mark {
  id: id
  name: string(1..80) @unique
  @@allow all to anonymous
}
entity Counter {
  id: id
  n: int
  @@allow all to anonymous
}
entity Secret {
  id: id
  @@allow all to session
}
auth { session cookie { } }
jobs { inParts() }
routes("/", auth: none, rateLimit: none) {
  POST /marks/:name  -> mark
  GET  /marks        -> marks
  GET  /parts        -> parts (stream: 5m)
  GET  /parts/async  -> parts_async (stream: 5m)
  GET  /parts/queue  -> parts_queue (stream: 5m)
  GET  /parts/csv    -> parts_csv
  ANY  /flask/*      -> in_flask (stream: 5m)
  ANY  /write/*      -> in_write
  ANY  /sized/*      -> in_sized
  ANY  /asgi/*       -> in_asgi (stream: 5m)
  ANY  /star/*       -> in_starlette (stream: 5m)
  GET  /forever       -> forever
  GET  /forever/async -> forever_async
  GET  /large        -> large (stream: 5m)
  GET  /lines        -> lines (stream: 5m)
  GET  /fails/:what  -> fails
  GET  /early/:what  -> early
  GET  /counts       -> counts
  GET  /counter      -> counter
  GET  /feed         -> feed
  GET  /events/:what -> bad_event
  POST /job          -> starts_job
}
`

// streamsApp is an app whose handlers answer in parts.
func streamsApp(t *testing.T) *harness.Server {
	t.Helper()
	// A budget of CPU time of a second is more than a busy machine counts in one.
	return pythonApp(t, "streams", streamsSchema, "[sandbox]\ncpu = \"5s\"\n",
		append([]string{"starlette", "anyio", "sniffio", "idna", "typing_extensions.py"}, flaskPackages...)...).Serve()
}

// opened is the answer to a GET whose body the test reads.
func opened(t *testing.T, s *harness.Server, path string) *http.Response {
	t.Helper()
	r, err := harness.Client.Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Body.Close() })
	return r
}

// The handler makes a part when the client has read the one before.
func TestPythonSendsPartsAsTheyAreMade(t *testing.T) {
	t.Parallel()
	s := streamsApp(t)
	for path, head := range map[string]string{
		"/parts": "200 text/plain; charset=utf-8  ", "/parts/async": "200 text/plain; charset=utf-8  ", "/parts/queue": "200 text/plain; charset=utf-8 Task ",
		"/parts/csv": "201 text/csv  stream", "/flask/parts": "200 text/plain; charset=utf-8  ", "/write/": "200 text/plain  ",
		"/asgi/": "200 text/plain  ", "/star/parts": "200 text/plain; charset=utf-8  ",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			client := strings.ReplaceAll(path, "/", "-")
			r := opened(t, s, path+"?client="+client)
			h := r.Header
			if got := fmt.Sprint(r.StatusCode, " ", h.Get("Content-Type"), " ", h.Get("X-Task"), " ", h.Get("X-Made-By")); got != head || r.ContentLength != -1 {
				t.Errorf("the head is %q with length %d, want %q", got, r.ContentLength, head)
			}
			part := make([]byte, 1)
			for n := range 3 {
				if n > 0 {
					s.Want(201, nil, "POST", fmt.Sprintf("/marks/%s%d", client, n+1), "")
				}
				if _, err := io.ReadFull(r.Body, part); err != nil || part[0] != "123"[n] {
					t.Fatalf("part %d: %q, %v", n+1, part, err)
				}
			}
			if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil {
				t.Errorf("after the parts: %q, %v", rest, err)
			}
			if !strings.Contains(s.Get("/marks", "").Body, `"`+client+`end"`) {
				t.Error("the generator was not closed")
			}
		})
	}
	for path, want := range map[string]string{"/flask/whole": "whole", "/star/whole": "whole", "/sized/": "abc", "/sized/unsized": "abc"} {
		r := opened(t, s, path)
		if body, err := io.ReadAll(r.Body); string(body) != want || err != nil || r.ContentLength != int64(len(want)) {
			t.Errorf("%s: %q of length %d, %v", path, body, r.ContentLength, err)
		}
	}
}

func TestPythonClosesTheGeneratorOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	s := streamsApp(t)
	for path, mark := range map[string]string{
		"/forever": "handler", "/forever/async": "async", "/flask/forever": "flask", "/star/forever": "starlette", "/asgi/forever": "http.disconnect",
	} {
		r := opened(t, s, path)
		if _, err := io.ReadFull(r.Body, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		s.WaitUntil(mark, func() bool { return strings.Contains(s.Get("/marks", "").Body, `"`+mark+`"`) })
	}
	s.Stop() // then the log is complete
	if log := s.Stderr.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, `"level":"WARN"`) || strings.Contains(log, "Gone") {
		t.Errorf("the log has\n%s", log)
	}
}

func TestAFailureOfPythonAfterTheBeginningCutsTheAnswerOff(t *testing.T) {
	t.Parallel()
	s := streamsApp(t)
	for path, want := range map[string]string{"/fails/later": "a part", "/fails/abort": "", "/fails/denied": "a part"} {
		r := opened(t, s, path)
		if body, err := io.ReadAll(r.Body); r.StatusCode != 200 || string(body) != want || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %d %q, %v", path, r.StatusCode, body, err)
		}
	}
	// The writes before and after the beginning are kept, and cannot be made twice.
	s.Matches(200, `\[\{"name":"after"\},\{"name":"before"\}\]`, "GET", "/marks", "", "")
	s.Want(409, nil, "GET", "/flask/fails", "") // its first row is there already
	if body, err := io.ReadAll(opened(t, s, "/fails/events").Body); !strings.HasPrefix(string(body), "data: a part\n\nevent: error\ndata: {\"code\":\"handler_failed\"") || err == nil {
		t.Errorf("events: %q, %v", body, err)
	}
	for _, path := range []string{"/fails/part", "/fails/status", "/fails/iterator"} {
		s.Want(500, nil, "GET", path, "")
	}
	s.Want(201, nil, "POST", "/marks/aborted2", "")
	s.Want(201, nil, "POST", "/marks/aborted3", "")
	s.Matches(200, "123", "GET", "/fails/aborted", "", "")
	s.Want(400, nil, "GET", "/early/abort", "")
	s.Want(404, nil, "GET", "/early/absent", "")
	s.Want(200, nil, "GET", "/early/empty", "") // else the row were there already
	s.Stop()
	log := s.Stderr.String()
	for _, want := range []string{
		`"cause":"ValueError: the rest is missing","frames":["failing (handlers/streams.py:`,
		`TypeError: a part of the answer is a int: yield text or bytes`, `answer in parts with status 204: invalid`, `is an iterator: write list(…), or answer with stream(…)`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s\n%s", want, log)
		}
	}
}

func TestEventsOfPython(t *testing.T) {
	t.Parallel()
	s := streamsApp(t)
	got := s.Get("/feed", "")
	want := "data: one\ndata: two\ndata: three\ndata: four\u2028five\n\n" +
		"event: order\nid: 7\ndata: {\"n\":\"1.50\",\"é\":null}\n\n" +
		"data: \"2026-01-02T00:00:00.000Z\"\n\n" +
		"event: change\ndata: [1,\"a\\nb\"]\n\n" +
		"event: change\nretry: 1500\ndata: \n\n" + "id: \n\n" + "data: null\n\n"
	if h := got.Header; got.Body != want || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Feed") != "1" {
		t.Errorf("got %v\n%s\nwant\n%s", h, got.Body, want)
	}
	for _, what := range []string{"event", "id", "nul", "retry", "type", "number", "set"} {
		r := opened(t, s, "/events/"+what)
		if body, _ := io.ReadAll(r.Body); !strings.HasPrefix(string(body), "event: error\n") {
			t.Errorf("%s: %s", what, body)
		}
	}
	r := opened(t, s, "/fails/unknown")
	_, _ = io.ReadAll(r.Body)
	s.Stop()
	log := s.Stderr.String()
	for _, want := range []string{
		`event of an event is 'a\\rb': it is text without line ends and NUL`, `id of an event is 'a\\nb'`, `id of an event is '\\x00'`, `retry of an event is '1': it is the milliseconds as an int`,
		`an event is a int: yield text`, `event of an event is 1`, `an event cannot be sent: data is a set`, `an event has the field 'name'`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s\n%s", want, log)
		}
	}
}

// What a handler reads and writes before the beginning is one transaction, which runs again after a conflict.
func TestPythonRunsAgainIfTheBeginningIsNotCommitted(t *testing.T) {
	t.Parallel()
	s := streamsApp(t)
	s.Matches(200, "0", "GET", "/counter", "", "")
	const callers = 12
	seen := make(chan string, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() { seen <- s.Get("/counts", "").Body })
	}
	all.Wait()
	close(seen)
	numbers := map[string]bool{}
	for n := range seen {
		numbers[n] = true
	}
	s.Matches(200, fmt.Sprint(callers), "GET", "/counter", "", "")
	if len(numbers) != callers {
		t.Errorf("the answers have %v", numbers)
	}
	s.Want(204, nil, "POST", "/job", "")
	s.WaitUntil("the job has run", func() bool { return strings.Contains(s.Get("/marks", "").Body, `"job later"`) })
}

// The budgets of a run are budgets of a second: the client's speed limits an answer.
func TestPythonStreamsMoreThanABudget(t *testing.T) {
	t.Parallel()
	s := streamsApp(t)
	const megabytes, lines = 300, 30_000
	if n, err := io.Copy(io.Discard, opened(t, s, fmt.Sprint("/large?megabytes=", megabytes)).Body); n != megabytes<<20 || err != nil {
		t.Errorf("%d bytes, %v\n%s", n, err, s.Stderr.String())
	}
	scan := bufio.NewScanner(opened(t, s, fmt.Sprint("/lines?n=", lines)).Body)
	n := 0
	for ; scan.Scan(); n++ {
		if scan.Text() != fmt.Sprint(n) {
			t.Fatalf("line %d is %q", n, scan.Text())
		}
	}
	if n != lines || scan.Err() != nil {
		t.Errorf("%d lines, %v\n%s", n, scan.Err(), s.Stderr.String())
	}
}
