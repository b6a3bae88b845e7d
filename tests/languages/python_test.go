package languages_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// pythonApp builds an app of the handlers in testdata/python/<name>, with packages of Debian.
func pythonApp(t *testing.T, name, schema, toml string, packages ...string) *harness.App {
	t.Helper()
	harness.NeedPatches(t)
	a := harness.NewApp(t, schema, toml)
	if err := os.CopyFS(a.Path("handlers"), os.DirFS(filepath.Join("testdata/python", name))); err != nil {
		t.Fatal(err)
	}
	all := pythonPackages(t)
	for _, p := range packages {
		copyPackage(t, filepath.Join(all, p), a.Path(filepath.Join("python_packages", p)))
	}
	a.Must("build")
	return a
}

// pythonPackages is the directory of Debian's packages.
func pythonPackages(t *testing.T) string {
	t.Helper()
	fetched, err := exec.Command(harness.RepoFile("tools/fetch-python-packages.sh")).Output()
	if err != nil {
		t.Fatalf("tools/fetch-python-packages.sh: %v", err)
	}
	return strings.TrimSpace(string(fetched))
}

// copyPackage copies a package without links, which lead to other packages of Debian.
func copyPackage(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(target, data, 0o644)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var flaskPackages = []string{"flask", "werkzeug", "jinja2", "click", "itsdangerous", "markupsafe"}

// A password is hashed for a second of CPU time, on a machine that does other work too, and many callers wait.
const flaskSettings = "[runtime]\ntimeout = \"60s\"\n[sandbox]\nqueue_wait = \"60s\"\n"

const flaskSchema = `app shop
entity Order {
  id: id
  number: int
  total: decimal(10,2)
  @@allow all to anonymous
}
routes("/", auth: none, rateLimit: none) {
  ANY /shop/*    -> shop
  ANY /warmed/*  -> warmed
}
`

// TestFlaskAnswersAsInAnotherPython sends random requests to an application in Flask, here and in the Python of this
// machine, which must answer the same.
func TestFlaskAnswersAsInAnotherPython(t *testing.T) {
	t.Parallel()
	a := pythonApp(t, "flask", flaskSchema, flaskSettings, flaskPackages...)
	s := a.Serve()
	native := nativeFlask(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	requests := 300
	if harness.Soak {
		requests = 10_000
	}
	for range requests {
		method, path, body, headers := flaskRequest(random)
		want := send(t, native+path, method, body, headers)
		got := send(t, s.URL+path, method, body, headers)
		if got != want {
			t.Fatalf("%s %s\n%s\nin the other Python\n%s", method, path, got, want)
		}
	}
	s.Want(200, nil, "POST", "/shop/orders", "")
	if got := s.Get("/warmed/orders", ""); got.Body != `[{"number":7,"total":"25.00"}]`+"\n" {
		t.Errorf("the rows: %s", got.Body)
	}
}

// TestFlaskDoesNotGrowUnderManyCallers: no request leaves memory, files or mappings behind, also one that fails.
func TestFlaskDoesNotGrowUnderManyCallers(t *testing.T) {
	t.Parallel()
	callers, rounds, requests := 20, 4, 400
	if harness.Soak {
		callers, rounds, requests = 200, 10, 10_000 // some ten minutes
	}
	s := pythonApp(t, "flask", flaskSchema, flaskSettings, flaskPackages...).Serve()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var was []harness.Resources
	for round := range rounds {
		var left atomic.Int64
		left.Store(int64(requests))
		var all sync.WaitGroup
		for caller := range callers {
			random := rand.New(rand.NewPCG(seed, uint64(round*callers+caller)))
			all.Go(func() {
				for left.Add(-1) >= 0 {
					method, path, body, headers := flaskRequest(random)
					send(t, s.URL+path, method, body, headers) // which is refused if the server is overloaded
				}
			})
		}
		all.Wait()
		was = append(was, s.Resources())
	}
	t.Logf("after each %d requests: %+v", requests, was)
	early, late := was[1], was[rounds-1] // the first round makes the sandboxes
	if late.Bytes > early.Bytes+early.Bytes/5 || late.Files > early.Files+callers || late.Mappings > early.Mappings+early.Mappings/5 {
		t.Errorf("the server grows: %+v", was)
	}
}

// nativeFlask starts the application in the Python of this machine, and returns its URL.
func nativeFlask(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/python/native.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH=testdata/python/flask:"+pythonPackages(t), "PYTHONDONTWRITEBYTECODE=1")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // it is killed with the context
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the other Python: %v\n%s", err, said.String())
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// flaskRequest returns a random request to the application below /shop.
func flaskRequest(random *rand.Rand) (method, path, body string, headers []string) {
	n := random.IntN(1000)
	switch random.IntN(10) {
	case 0:
		return "GET", "/shop/", "", nil
	case 1:
		return "GET", fmt.Sprintf("/shop/json/%d?a=%d&a=x&b=%%20y", n%50, n), "", nil
	case 2:
		return "GET", "/shop/messages", "", nil
	case 3:
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n" + string(data) + "\r\n--b--\r\n"
		return "POST", "/shop/upload", form, []string{"Content-Type: multipart/form-data; boundary=b"}
	case 4:
		if n < 950 {
			return "GET", "/shop/visits", "", nil
		}
		return "POST", "/shop/password", fmt.Sprintf("password=secret%d", n), []string{"Content-Type: application/x-www-form-urlencoded"}
	case 5:
		return "PUT", fmt.Sprintf("/shop/echo/a%%20b/%d", n), strings.Repeat("x", n), nil
	case 6:
		return "DELETE", "/shop/json/1", "", nil
	case 7:
		return "GET", "/shop/nothing/here", "", nil
	default:
		return "GET", "/shop/fail/" + []string{"abort", "key", "value"}[n%3], "", nil
	}
}

// plain sends requests without changing them.
var plain = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 300}

// send sends a request and returns its status, the headers that an application sets, and the body.
func send(t *testing.T, url, method, body string, headers []string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	response, err := plain.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprint(response.StatusCode)
	for _, name := range []string{"Content-Type", "Location", "Allow", "Vary", "X-Path", "X-Rest"} {
		values := strings.Split(response.Header.Get(name), ", ")
		slices.Sort(values) // Flask's Allow is in the order of a set
		said += fmt.Sprintf("\n%s: %q", name, values)
	}
	for _, cookie := range response.Cookies() { // its value has a time
		said += fmt.Sprintf("\ncookie %s %s %v", cookie.Name, cookie.Path, cookie.HttpOnly)
	}
	return said + "\n" + string(answer)
}

func TestDjangoRunsWithoutItsORM(t *testing.T) {
	t.Parallel()
	a := pythonApp(t, "django", `app site
routes("/", auth: none, rateLimit: none) { ANY /site/* -> site }
`, "", "django", "asgiref", "sqlparse", "pytz")
	s := a.Serve()
	s.Matches(200, `\{"n": 1, "page": "/site/page", "zone": "Europe/Berlin"\}`, "GET", "/site/", "", "")
	first := s.Get("/site", "")
	if cookie, _, ok := strings.Cut(first.Header.Get("Set-Cookie"), ";"); !ok {
		t.Errorf("no session: %v", first.Header)
	} else if second := s.Do("GET", "/site/", "", "Cookie: "+cookie); !strings.HasPrefix(second.Body, `{"n": 2,`) {
		t.Errorf("with the cookie of the first answer: %s", second.Body)
	}
	const form = "Content-Type: application/x-www-form-urlencoded"
	greeted := s.Do("POST", "/site/greet", "name=ada", form)
	cookie, _, _ := strings.Cut(greeted.Header.Get("Set-Cookie"), ";")
	if greeted.Status != 302 || greeted.Header.Get("Location") != "/site/page" {
		t.Errorf("a valid form: %+v", greeted)
	}
	if page := s.Do("GET", "/site/page", "", "Cookie: "+cookie); page.Body != "<b>hi ada</b><i>0</i><i>1</i><i>2</i>\n" {
		t.Errorf("the page with a message: %s", page.Body)
	}
	if got := s.Do("POST", "/site/greet", "name=adaadaada", form); got.Status != 422 || !strings.Contains(got.Body, "at most 5 characters") {
		t.Errorf("a form that is not valid: %+v", got)
	}
	upload := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n"
	if got := s.Do("POST", "/site/upload", upload, "Content-Type: multipart/form-data; boundary=b"); got.Body != `{"size": 5}` {
		t.Errorf("an upload: %+v", got)
	}
	if got := opened(t, s, "/site/parts"); got.ContentLength != -1 {
		t.Errorf("an answer in parts has the length %d", got.ContentLength)
	} else if body, err := io.ReadAll(got.Body); string(body) != "ab" || err != nil {
		t.Errorf("an answer in parts: %q, %v", body, err)
	}
	if got := s.Do("POST", "/site/protected", "", form); got.Status != 403 {
		t.Errorf("a form without the token: %+v", got)
	}
}

func TestBottleAndStarletteRun(t *testing.T) {
	t.Parallel()
	a := pythonApp(t, "frameworks", `app frameworks
routes("/", auth: none, rateLimit: none) {
  ANY /bottle/* -> in_bottle
  ANY /star/*   -> in_starlette
  ANY /header/* -> in_header
  ANY /half/*   -> in_half
}
`, "[front]\ntrusted_proxies = [\"127.0.0.1\"]\n", "bottle.py", "starlette", "anyio", "sniffio", "idna", "typing_extensions.py")
	s := a.Serve()
	s.Matches(200, "hello ada", "GET", "/bottle/hello/ada", "", "")
	upload := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n"
	if got := s.Do("POST", "/bottle/upload", upload, "Content-Type: multipart/form-data; boundary=b"); got.Body != `{"name": "a.txt", "bytes": 5}` {
		t.Errorf("an upload: %+v", got)
	}
	const https = "X-Forwarded-Proto: https"
	if got := s.Do("GET", "/bottle/url", "", https); got.Body != "https://"+s.Addr+"/bottle/url" {
		t.Errorf("the URL behind a proxy with HTTPS: %+v", got)
	}
	if got := s.Do("GET", "/star/", "", https); !strings.Contains(got.Body, `"url":"https://`+s.Addr+`/star/"`) {
		t.Errorf("the URL behind a proxy with HTTPS: %+v", got)
	}
	s.Matches(200, `\{"url":"http://127.0.0.1:\d+/star/\?q=1&q=x%20y","path":"/star/","q":\["1","x y"\],"started":\[0\],"item":"/star/item/3"\}`, "GET", "/star/?q=1&q=x%20y", "", "")
	s.Matches(200, "4 5", "POST", "/star/item/4", "hello", "")
	s.Matches(200, "done at once", "GET", "/star/thread", "", "")
	s.Matches(404, "Not Found", "GET", "/star/nothing", "", "")
	s.Matches(500, "a page about broken", "GET", "/star/broken", "", "")
	if half, err := io.ReadAll(opened(t, s, "/half/").Body); string(half) != "half" || err == nil {
		t.Errorf("an answer in parts that has no end: %q, %v", half, err)
	}
	got := s.Do("GET", "/header/", "", "Cookie: name=日本")
	if got.Body != "name=日本" || got.Header.Get("X-Value") != "name=日本" {
		t.Errorf("a header in UTF-8: %+v", got)
	}
}

// TestPackagesOfPythonDoTheirMainJob has packages of Debian that are in Python alone, or need no machine code. The build leaves
// that of four packages out.
func TestPackagesOfPythonDoTheirMainJob(t *testing.T) {
	t.Parallel()
	a := pythonApp(t, "packages", `app packages
routes("/", auth: none, rateLimit: none) { GET /packages -> packages }
`, "", "attr", "bs4", "soupsieve", "cachetools", "dateutil", "html5lib", "webencodings", "jinja2", "markupsafe", "jsonschema",
		"pyrsistent", "_pyrsistent_version.py", "pvectorc.cpython-311-x86_64-linux-gnu.so", "jwt", "mako", "markdown", "marshmallow", "packaging", "pygments", "pyparsing",
		"pytz", "simplejson", "sqlparse", "tabulate.py", "toml", "wtforms", "yaml", "six.py")
	want := map[string]any{
		"attr": "Point(x=1, y=2)", "bs4": "bold", "cachetools": []any{"b", "c"}, "dateutil": "2026-11-29T10:00:00+00:00", "rrule": 5.0,
		"html5lib": "x", "jinja2": "0,1,2,", "jsonschema": "'x' is not of type 'number'", "jwt": "ada", "mako": "hello ada",
		"markdown": "<h1>Title</h1>\n<p><em>em</em></p>", "marshmallow": "2026-11-29T10:00:00+00:00", "pygments": "x = 1",
		"pyparsing": "42", "pytz": "2:00:00", "simplejson": `{"a": [1]}`, "sqlparse": "SELECT 1 FROM x", "tabulate": "  a    b\n  1    2",
		"toml": 1.0, "wtforms": map[string]any{"name": []any{"Field cannot be longer than 3 characters."}},
		"yaml": map[string]any{"a": []any{1.0, map[string]any{"b": "c"}}},
	}
	var got map[string]any
	s := a.Serve()
	s.Want(200, &got, "GET", "/packages", "")
	for name, value := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(value) {
			t.Errorf("%s answers %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d packages have answered, want %d", len(got), len(want))
	}
}

const librarySchema = `app library
outbound { allow: ["<service>"] }
entity Order {
  id: id
  number: int
  total: decimal(10,2)
  at: time?
  day: date?
  lasts: duration?
  data: bytes?
  more: json?
  @@allow all to anonymous
}
routes("/", auth: none, rateLimit: none) {
  GET  /http       -> http_clients
  GET  /side       -> sideBySide
  GET  /derived    -> derived
  GET  /drawn      -> drawn
  GET  /logged     -> logged
  GET  /absent     -> absent
  GET  /present    -> present
  GET  /fails/:how -> fails
  POST /values     -> values
  GET  /recursions/:kind -> recursions
}
`

func TestPythonsLibraryInAHandler(t *testing.T) {
	t.Parallel()
	arrived, four := make(chan bool, 4), make(chan bool)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
			return
		case "/wait": // until all four are here
			arrived <- true
			if len(arrived) == 4 {
				close(four)
			}
			<-four
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %q %x", r.Method, r.URL, r.Header.Get("X-A"), body)
	}))
	t.Cleanup(service.Close)
	a := pythonApp(t, "library", strings.ReplaceAll(librarySchema, "<service>", service.URL), "[outbound]\nallow_private = true\n",
		"requests", "urllib3", "chardet", "certifi", "idna", "six.py")
	s := a.Serve()

	t.Run("http", func(t *testing.T) {
		var got map[string]any
		s.Want(200, &got, "GET", "/http?service="+service.URL, "")
		want := map[string]any{
			"urllib": `GET /a?x=1 "" `, "requests": []any{200.0, `POST /b "z" 7b2261223a20317d`}, "moved": []any{1.0, `GET /there "" `},
			"http.client": `PUT /c "" 00ff`, "fetch": `GET /d "" `, "refused": true,
			"other": true, "url in query": `GET /a?to=http://b.example/c "" `,
		}
		for name := range want {
			if fmt.Sprint(got[name]) != fmt.Sprint(want[name]) {
				t.Errorf("%s: %v, want %v", name, got[name], want[name])
			}
		}
	})
	t.Run("side by side", func(t *testing.T) {
		s.Matches(200, `\[200,200,200,200,7\]`, "GET", "/side?service="+service.URL, "", "")
	})
	t.Run("derived", func(t *testing.T) { // vectors of RFC 7914, and of hashlib
		s.Matches(200, `\{"pbkdf2":"632c2812e46d4604102ba7618e9d6d7d2f8128f6266b4a03264d2a0460b7dcb3",`+
			`"scrypt":"fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"\}`, "GET", "/derived", "", "")
	})
	t.Run("drawn", func(t *testing.T) {
		seen, requests := map[string]bool{}, 1000
		for range requests {
			var values []any
			s.Want(200, &values, "GET", "/drawn", "")
			for i, value := range values {
				seen[fmt.Sprint(i, value)] = true
			}
		}
		if len(seen) != 7*requests {
			t.Errorf("%d values of %d are new", len(seen), 7*requests)
		}
	})
	t.Run("absent", func(t *testing.T) {
		const (
			threads   = "a handler has one thread: run async functions side by side with asyncio.gather, or start a job with jobs.enqueue"
			sockets   = "a handler has no sockets: send HTTP requests with runner.fetch"
			processes = "a handler cannot start processes: call another service with runner.fetch, or start a job with jobs.enqueue"
		)
		var got map[string]string
		s.Want(200, &got, "GET", "/absent", "")
		for name, want := range map[string]string{
			"thread": threads, "low thread": threads, "timer": threads,
			"listen": sockets, "datagram": sockets, "raw": sockets, "name": sockets,
			"process": "OSError: " + processes, "popen": "OSError: " + processes, "system": processes, "fork": processes, "exec": processes,
			"pool": "a handler is one process: start jobs", "multiprocessing": "a handler is one process: start jobs",
			"asks": "AttributeError: module 'os' has no attribute 'nothing'", "ctypes": "machine code", "write": "Read-only",
		} {
			if !strings.Contains(got[name], want) {
				t.Errorf("%s: %q, want %q", name, got[name], want)
			}
		}
	})
	t.Run("present", func(t *testing.T) {
		s.Matches(200, `\{"offset":"2:00:00","squares":\[0,1,4,9\],"sqlite":42\}`, "GET", "/present", "", "")
	})
	t.Run("values", func(t *testing.T) {
		var got struct {
			Errors, Types map[string]string
			Row           map[string]json.RawMessage
		}
		s.Want(200, &got, "POST", "/values", "")
		for name, want := range map[string]string{
			"none": "number: the value of = is None", "nan": "number: the value of > is NaN", "naive": "values.at is a datetime without a time zone", "set": "values.number is a set",
		} {
			if !strings.Contains(got.Errors[name], want) {
				t.Errorf("%s: %q, want %q", name, got.Errors[name], want)
			}
		}
		for name, want := range map[string]string{
			"number": "1", "total": "Decimal('12.50')", "at": "datetime.datetime(2026, 1, 31, 8, 30, tzinfo=datetime.timezone.utc)",
			"day": "datetime.date(2026, 1, 31)", "lasts": "datetime.timedelta(seconds=120)", "data": `b'\x00\xff'`, "more": "{'a': [1, None]}",
		} {
			if got.Types[name] != want {
				t.Errorf("%s is %s, want %s", name, got.Types[name], want)
			}
		}
		if string(got.Row["total"]) != `"12.50"` || string(got.Row["at"]) != `"2026-01-31T08:30:00.000Z"` || string(got.Row["lasts"]) != "120" || string(got.Row["data"]) != `"AP8="` {
			t.Errorf("the row answers %s", got.Row)
		}
	})
	t.Run("recursions", func(t *testing.T) {
		for _, kind := range []string{
			"init", "repr", "getattr", "sort", "any", "list", "compare", "loads", "dumps", "compile", "copy", "pickle", "re",
		} {
			s.Matches(200, `\{"error":"(RecursionError|MemoryError)"\}`, "GET", "/recursions/"+kind, "", "")
		}
	})
	for _, how := range []string{"recursion", "json", "repr", "copy", "frames", "memory", "exit", "chain"} {
		s.Want(500, nil, "GET", "/fails/"+how, "")
	}
	s.Want(200, nil, "GET", "/fails/forgotten", "")
	s.Want(200, nil, "GET", "/logged", "")
	s.Stop() // then the log is complete
	log := s.Stderr.String()
	for _, want := range []string{
		`"level":"INFO","msg":"printed"`, `"level":"WARN","msg":"to stderr"`, `"level":"WARN","msg":"shop: careful 1"`, `"level":"INFO","msg":"told"`,
		`"level":"WARN","msg":"UserWarning: old (handlers/library.py:`,
		`"cause":"RecursionError: maximum recursion depth exceeded`, `deep (handlers/library.py:`, `"cause":"MemoryError`,
		`_deepcopy_list (python/copy.py:`, `"cause":"ValueError: many frames"`,
		`"cause":"SystemExit: 3"`, `"cause":"ValueError: no order\\ncaused by KeyError: 'x' at fails (handlers/library.py:`,
		`"level":"WARN","msg":"an update of Order was made and never run, so nothing was written: add .run()"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if t.Failed() {
		lines := strings.Split(log, "\n")
		t.Logf("the log ends with\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
}
