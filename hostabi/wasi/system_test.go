package wasi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
	"runner.example/internal/component/canon"
)

const (
	clocks = "wasi:clocks/monotonic-clock@0.2 "
	random = "wasi:random/"
)

func TestStreamsAreReadAsTheirDocumentationSays(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	request, _ := g.http()
	stream := value(g.do(types+"[method]incoming-body.stream", value(g.do(types+"[method]incoming-request.consume", request))))
	g.expect("#0 ", streams+"[method]input-stream.read", stream, uint64(0))
	g.expect("#0 the", streams+"[method]input-stream.read", stream, uint64(3))
	g.expect("#0 1", streams+"[method]input-stream.skip", stream, uint64(1))
	g.expect("#0 2", streams+"[method]input-stream.blocking-skip", stream, uint64(2))
	g.expect("#0 dy", streams+"[method]input-stream.blocking-read", stream, uint64(1<<63))
	for _, name := range []string{"read", "blocking-read", "skip", "blocking-skip"} {
		g.expect("#1 #1", streams+"[method]input-stream."+name, stream, uint64(0))
	}
	ready := g.do(streams+"[method]input-stream.subscribe", stream) // for the end
	g.expect("true", poll+"[method]pollable.ready", ready)
}

// A stream takes what it permits, also of a guest that does not ask.
func TestStreamsAreWrittenAsTheirDocumentationSays(t *testing.T) {
	body := func() (*guest, any) {
		g := newGuest(t, hostabi.Limits{})
		_, body := g.response()
		return g, value(g.do(types+"[method]outgoing-body.write", body))
	}
	g, stream := body()
	g.expect("#0", streams+"[method]output-stream.write", stream, make([]byte, 1<<20))
	g.traps("a write of 1 bytes, and 0 are permitted", streams+"[method]output-stream.write", stream, []byte("a"))
	g, stream = body()
	g.expect("#0 1048576", streams+"[method]output-stream.check-write", stream)
	g.expect("#0", streams+"[method]output-stream.write", stream, make([]byte, 1<<19))
	g.expect("#0", streams+"[method]output-stream.write-zeroes", stream, uint64(1<<19))
	g.traps("a write of 1 bytes, and 0 are permitted", streams+"[method]output-stream.write-zeroes", stream, uint64(1))
	g, stream = body()
	g.do(streams+"[method]output-stream.check-write", stream)
	g.traps("permitted", streams+"[method]output-stream.write-zeroes", stream, uint64(1<<63))
	g, stream = body()
	g.expect("#0", streams+"[method]output-stream.blocking-write-and-flush", stream, make([]byte, 4096))
	g.traps("it may have 4096", streams+"[method]output-stream.blocking-write-and-flush", stream, make([]byte, 4097))
	g, stream = body()
	g.expect("#0", streams+"[method]output-stream.blocking-write-zeroes-and-flush", stream, uint64(4096))
	g.traps("4096 are permitted", streams+"[method]output-stream.blocking-write-zeroes-and-flush", stream, uint64(4097))
	g, stream = body()
	g.expect("#0", streams+"[method]output-stream.flush", stream)
	g.expect("#0", streams+"[method]output-stream.blocking-flush", stream)
	g.expect("true", poll+"[method]pollable.ready", g.do(streams+"[method]output-stream.subscribe", stream))
	g.dropTraps("1 of its children are there", streams, "output-stream", stream)
}

func TestABodyIsSpliced(t *testing.T) {
	g := newGuest(t, hostabi.Limits{ResponseBytes: 6})
	request, outparam := g.http()
	from := value(g.do(types+"[method]incoming-body.stream", value(g.do(types+"[method]incoming-request.consume", request))))
	response, body := g.response()
	g.do(types+"[static]response-outparam.set", outparam, ok(response))
	to := value(g.do(types+"[method]outgoing-body.write", body))
	g.expect("#0 2", streams+"[method]output-stream.splice", to, from, uint64(2))
	g.expect("#0 4", streams+"[method]output-stream.blocking-splice", to, from, uint64(4))
	if failed := g.do(streams+"[method]output-stream.splice", to, from, uint64(1<<40)); !strings.HasPrefix(show(failed), "#1 #0 ") {
		t.Errorf("more than the body may have: %s", show(failed))
	}
	g.expect("#1 #1", streams+"[method]output-stream.splice", to, from, uint64(1))
	out := g.do("wasi:cli/stdout@0.2 get-stdout")
	g.expect("#1 #1", streams+"[method]output-stream.splice", out, from, uint64(1)) // nothing is left
}

func TestOutputIsLogged(t *testing.T) {
	g := newGuest(t, hostabi.Limits{LogLines: 2})
	out, err := g.do("wasi:cli/stdout@0.2 get-stdout"), g.do("wasi:cli/stderr@0.2 get-stderr")
	for stream, text := range map[any]string{out: "to out\nrest", err: "to err\n"} {
		g.do(streams+"[method]output-stream.check-write", stream)
		g.expect("#0", streams+"[method]output-stream.write", stream, []byte(text))
	}
	g.expect("#1 #1", streams+"[method]input-stream.read", g.do("wasi:cli/stdin@0.2 get-stdin"), uint64(1))
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		g.expect("#0", "wasi:cli/terminal-"+name+"@0.2 get-terminal-"+name)
	}
	g.call.End()
	for _, want := range []string{`level=INFO msg="to out"`, `level=WARN msg="to err"`, `msg="1 lines dropped"`} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, g.log)
		}
	}
}

func TestClocksAndPollables(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	grain := uint64(hostabi.ClockGrain)
	g.expect(fmt.Sprint(grain), clocks+"resolution")
	g.expect(fmt.Sprintf("[0 %d]", grain), "wasi:clocks/wall-clock@0.2 resolution")
	before := g.do(clocks + "now").(uint64)
	if before < uint64(time.Second) || before%grain != 0 {
		t.Errorf("the monotonic clock is at %d", before)
	}
	at := time.Unix(1_700_000_000, 123_456_789)
	g.call.Host.Calendar = func() time.Time { return at }
	g.expect("[1700000000 123000000]", "wasi:clocks/wall-clock@0.2 now")
	g.expect("[0 UTC false]", "wasi:clocks/timezone@0.2 display", []any{uint64(0), uint64(0)})
	g.expect("0", "wasi:clocks/timezone@0.2 utc-offset", []any{uint64(0), uint64(0)})

	past := g.do(clocks+"subscribe-instant", before)
	never := g.do(clocks+"subscribe-duration", uint64(1<<64-1))
	far := g.do(clocks+"subscribe-instant", uint64(1<<64-1))
	soon := g.do(clocks+"subscribe-instant", before+5*grain)
	g.expect("true", poll+"[method]pollable.ready", past)
	g.expect("false", poll+"[method]pollable.ready", never)
	g.expect("[1 3]", poll+"poll", []any{never, past, far, past}) // in the order of the list
	g.do(poll+"[method]pollable.block", past)
	g.expect("[1]", poll+"poll", []any{never, soon})
	if after := g.do(clocks + "now").(uint64); after < before+5*grain {
		t.Errorf("the wait took from %d to %d", before, after)
	}
	g.traps("poll without pollables", poll+"poll", []any{})
	g.traps("handle 99 of pollable is unknown", poll+"poll", []any{past, uint32(99)})
}

func TestRandomBytes(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, name := range []string{"random@0.2 get-random", "insecure@0.2 get-insecure-random"} {
		a, b := g.do(random+name+"-bytes", uint64(32)), g.do(random+name+"-bytes", uint64(32))
		if len(a.([]byte)) != 32 || show(a) == show(b) {
			t.Errorf("%s: %x, %x", name, a, b)
		}
		g.expect("", random+name+"-bytes", uint64(0))
		if a, b := g.do(random+name+"-u64"), g.do(random+name+"-u64"); a == b {
			t.Errorf("%s: %d twice", name, a)
		}
	}
	if seed := g.do(random + "insecure-seed@0.2 insecure-seed").([]any); seed[0] == seed[1] {
		t.Errorf("the seed is %v", seed)
	}
	g.traps("more than a request may move", random+"random@0.2 get-random-bytes", uint64(1<<63))
}

func TestArgumentsAndVariables(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.expect("[]", "wasi:cli/environment@0.2 get-environment")
	g.expect("[]", "wasi:cli/environment@0.2 get-arguments")
	g.expect("[]", "wasi:filesystem/preopens@0.2 get-directories")
	g.program = &hostabi.Program{Args: []string{"name", "a b"}, Env: []string{"A=b=c", "D="}, Root: hostabi.NewRoot()}
	g.begin(nil)
	g.expect("[[A b=c] [D ]]", "wasi:cli/environment@0.2 get-environment")
	g.expect("[name a b]", "wasi:cli/environment@0.2 get-arguments")
	g.expect("#0", "wasi:cli/environment@0.2 initial-cwd")
}

// A component that exits has answered if its answer is complete.
func TestExit(t *testing.T) {
	for _, row := range []struct {
		name    string
		status  any
		exit    string
		answers int
	}{
		{"exit", ok(nil), "exited with status 0", 200},
		{"exit", some(nil), "exited with status 1", 0},
		{"exit-with-code", uint64(0), "exited with status 0", 200},
		{"exit-with-code", uint64(7), "exited with status 7", 0},
	} {
		g := newGuest(t, hostabi.Limits{})
		_, outparam := g.http()
		g.do(types+"[static]response-outparam.set", outparam, ok(g.do(types+"[constructor]outgoing-response", g.fields())))
		g.traps(row.exit, "wasi:cli/exit@0.2 "+row.name, row.status)
		if g.call.Response.Status != row.answers {
			t.Errorf("%s %v: status %d", row.name, row.status, g.call.Response.Status)
		}
	}
}

// withFiles is a guest with files, and its root directory.
func withFiles(t *testing.T) (*guest, any) {
	g := newGuest(t, hostabi.Limits{})
	g.program = &hostabi.Program{Root: hostabi.NewRoot()}
	broken := files.File{Path: "app/broken", Size: 1, Read: func() ([]byte, error) { return nil, fmt.Errorf("no disk") }}
	for _, f := range []files.File{
		{Path: "app/a.txt", Size: 5, Read: func() ([]byte, error) { return []byte("hello"), nil }},
		{Path: "app/sub/b", Size: 0}, broken,
	} {
		if err := g.program.Root.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	g.begin(nil)
	opened := g.do("wasi:filesystem/preopens@0.2 get-directories").([]any)
	if path := opened[0].([]any)[1]; path != "/" {
		t.Errorf("the first directory is %v", path)
	}
	return g, opened[0].([]any)[0]
}

const descriptor = fs + "[method]descriptor."

// open opens a file to be read.
func (g *guest) open(at any, path string) any {
	g.t.Helper()
	return value(g.do(descriptor+"open-at", at, uint64(0), path, uint64(0), uint64(1)))
}

func TestFilesCanBeRead(t *testing.T) {
	g, root := withFiles(t)
	file := g.open(root, "app/./sub/../a.txt")
	g.expect("#0 [hello true]", descriptor+"read", file, uint64(100), uint64(0))
	g.expect("#0 [el false]", descriptor+"read", file, uint64(2), uint64(1))
	g.expect("#0 [ true]", descriptor+"read", file, uint64(2), uint64(1<<63))
	stream := value(g.do(descriptor+"read-via-stream", file, uint64(3)))
	g.drop(fs, "descriptor", file) // the stream is not its child
	g.expect("#0 lo", streams+"[method]input-stream.read", stream, uint64(9))
	g.expect("#1 #1", streams+"[method]input-stream.read", stream, uint64(9))

	app := g.open(root, "app")
	g.expect("#0 #3", descriptor+"get-type", app)
	g.expect("#0 #6", descriptor+"get-type", g.open(app, "a.txt"))
	g.expect("#0 1", descriptor+"get-flags", app)
	g.expect("#0 [#6 1 5 #1 [315532800 0] #1 [315532800 0] #1 [315532800 0]]", descriptor+"stat", g.open(app, "a.txt"))
	g.expect("#0 [#6 1 5 #1 [315532800 0] #1 [315532800 0] #1 [315532800 0]]", descriptor+"stat-at", root, uint64(1), "app/a.txt")
	entries := value(g.do(descriptor+"read-directory", app))
	for _, want := range []string{"#0 #1 [#6 a.txt]", "#0 #1 [#6 broken]", "#0 #1 [#3 sub]", "#0 #0", "#0 #0"} {
		g.expect(want, fs+"[method]directory-entry-stream.read-directory-entry", entries)
	}
	g.expect("true", descriptor+"is-same-object", app, g.open(root, "app"))
	g.expect("false", descriptor+"is-same-object", app, root)
	hash := show(g.do(descriptor+"metadata-hash", app))
	g.expect(hash, descriptor+"metadata-hash-at", root, uint64(0), "app")
	if other := show(g.do(descriptor+"metadata-hash", root)); other == hash {
		t.Errorf("two directories have the hash %s", hash)
	}
	for _, name := range []string{"sync", "sync-data"} {
		g.expect("#0", descriptor+name, app)
	}
	g.expect("#0", descriptor+"advise", app, uint64(0), uint64(1), canon.Case{Index: 3})
}

// fsCodes are the numbers of the error-codes that are expected.
var fsCodes = map[string]int{
	"exist": 7, "invalid": 12, "io": 13, "is-directory": 14, "name-too-long": 18, "no-entry": 20, "not-directory": 24,
	"not-permitted": 31, "read-only": 33,
}

func TestFilesCannotBeChanged(t *testing.T) {
	g, root := withFiles(t)
	file, noTime := g.open(root, "app/a.txt"), canon.Case{}
	refused := func(want, name string, args ...any) {
		t.Helper()
		g.expect(fmt.Sprintf("#1 #%d", fsCodes[want]), descriptor+name, args...)
	}
	refused("read-only", "write-via-stream", file, uint64(0))
	refused("read-only", "append-via-stream", file)
	refused("read-only", "set-size", file, uint64(0))
	refused("read-only", "set-times", file, noTime, noTime)
	refused("read-only", "write", file, []byte("a"), uint64(0))
	refused("read-only", "create-directory-at", root, "new")
	refused("read-only", "set-times-at", root, uint64(0), "app/a.txt", noTime, noTime)
	refused("no-entry", "set-times-at", root, uint64(0), "app/c.txt", noTime, noTime)
	refused("read-only", "link-at", root, uint64(0), "app/a.txt", root, "b")
	refused("read-only", "remove-directory-at", root, "app")
	refused("read-only", "rename-at", root, "app", root, "b")
	refused("read-only", "symlink-at", root, "app", "b")
	refused("read-only", "unlink-file-at", root, "app/a.txt")
	refused("invalid", "readlink-at", root, "app/a.txt")
	refused("no-entry", "readlink-at", root, "app/c.txt")

	open := func(want, path string, how, flags uint64) {
		t.Helper()
		refused(want, "open-at", root, uint64(0), path, how, flags)
	}
	const create, directory, exclusive, truncate, read, write, mutate = 1, 2, 4, 8, 1, 2, 32
	open("no-entry", "app/c.txt", 0, read)
	open("no-entry", "", 0, read)
	open("read-only", "app/c.txt", create, read)
	open("exist", "app/a.txt", create|exclusive, read)
	open("not-directory", "app/a.txt", directory, read)
	open("not-directory", "app/a.txt/b", 0, read)
	open("not-directory", "app/a.txt/", 0, read)
	open("read-only", "app/a.txt", truncate, read)
	open("read-only", "app/a.txt", 0, write)
	open("read-only", "app", 0, mutate)
	open("not-permitted", "/app", 0, read)
	open("not-permitted", "..", 0, read)
	open("not-permitted", "app/../../app", 0, read)
	open("name-too-long", strings.Repeat("a", hostabi.MaxPath+1), 0, read)
	open("no-entry", hostabi.HostFile, 0, read)
	app := g.open(root, "app")
	refused("not-permitted", "stat-at", app, uint64(0), "../app")
	refused("is-directory", "read", app, uint64(1), uint64(0))
	refused("is-directory", "read-via-stream", app, uint64(0))
	refused("not-directory", "read-directory", file)
	refused("not-directory", "stat-at", file, uint64(0), "x")
	refused("io", "read", g.open(root, "app/broken"), uint64(1), uint64(0))
	if !strings.Contains(g.log.String(), "no disk") {
		t.Errorf("the log does not say why:\n%s", g.log)
	}
}

func TestSocketsAreRefused(t *testing.T) {
	const denied = "#1 #1"
	g := newGuest(t, hostabi.Limits{})
	network := g.do("wasi:sockets/instance-network@0.2 instance-network")
	g.expect(denied, "wasi:sockets/tcp-create-socket@0.2 create-tcp-socket", canon.Case{})
	g.expect(denied, "wasi:sockets/udp-create-socket@0.2 create-udp-socket", canon.Case{Index: 1})
	g.expect(denied, "wasi:sockets/ip-name-lookup@0.2 resolve-addresses", network, "example.com")
	g.traps("handle 1 is unknown", "wasi:sockets/tcp@0.2 [method]tcp-socket.finish-bind", network)
	g.dropTraps("not of tcp-socket", "wasi:sockets/tcp@0.2 ", "tcp-socket", network)
	g.drop("wasi:sockets/network@0.2 ", "network", network)
}
