package hostabi_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/schema"
)

// program makes the guest's run that of a command.
func (g *guest) program() {
	g.t.Helper()
	g.call.Begin()
	g.call.BeginProgram(&hostabi.Program{Args: []string{"hello"}, Root: hostabi.NewRoot()})
}

// strings reads what args_get or environ_get give, by their pointers.
func (g *guest) strings(sizes, get string) []string {
	g.t.Helper()
	if errno := g.system(sizes, 0, 4); errno != wasiOK {
		g.t.Fatalf("%s: %d", sizes, errno)
	}
	memory := g.module.Memory()
	count, _ := memory.ReadUint32Le(0)
	size, _ := memory.ReadUint32Le(4)
	const list, block = 4096, 16384
	if errno := g.system(get, list, block); errno != wasiOK {
		g.t.Fatalf("%s: %d", get, errno)
	}
	var all []string
	for i := range count {
		at, _ := memory.ReadUint32Le(list + 4*i)
		if at < block || at >= block+size {
			g.t.Fatalf("%s points to %d, outside of its strings", get, at)
		}
		text, _, _ := bytes.Cut(g.at(at, block+size-at), []byte{0})
		all = append(all, string(text))
	}
	return all
}

// input reads standard input to its end, in pieces of two parts each.
func (g *guest) input(first, second uint32) (all []byte) {
	g.t.Helper()
	memory := g.module.Memory()
	for {
		memory.WriteUint64Le(0, uint64(first)<<32|1024)
		memory.WriteUint64Le(8, uint64(second)<<32|uint64(1024+first))
		if errno := g.system("fd_read", 0, 0, 2, 16); errno != wasiOK {
			g.t.Fatalf("fd_read: %d", errno)
		}
		n, _ := memory.ReadUint32Le(16)
		if n == 0 {
			return all
		}
		all = append(all, g.at(1024, n)...)
	}
}

func pair(name, value string) abi.Pair { return abi.Pair{Name: []byte(name), Value: []byte(value)} }

func TestACommandGetsItsRequestLikeACGIScript(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Address = netip.MustParseAddr("192.0.2.7")
	g.call.Caller = caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "read_only"}
	g.call.Request = &abi.Request{
		ID: "01", Method: []byte("POST"), Path: []byte("/v1/files/a%20b/c"), Route: "/v1/files/:name/*rest",
		RawQuery: []byte("q=%41&z"), Body: []byte("12345"),
		Params: []abi.Pair{pair("name", "a b"), pair("rest", "c")},
		Headers: []abi.Pair{
			pair("host", "shop.example:8443"), pair("content-type", "text/plain"), pair("content-length", "5"),
			pair("x-trace-id", "t1"), pair("authorization", "Bearer secret"), pair("x-api-key", "secret"),
			pair("proxy", "http://evil.example"), pair("proxy-authorization", "secret"), pair("x_trace_id", "spoofed"),
			pair("cookie", "theme=dark"), pair("x-zero", "a\x00b"),
		},
	}
	g.program()
	got := g.strings("environ_sizes_get", "environ_get")
	slices.Sort(got)
	want := []string{
		"AUTH_TYPE=apiKey", "CONTENT_LENGTH=5", "CONTENT_TYPE=text/plain", "GATEWAY_INTERFACE=CGI/1.1",
		"HTTP_COOKIE=theme=dark", "HTTP_HOST=shop.example:8443", "HTTP_X_TRACE_ID=t1", "PATH_INFO=/a b/c", "QUERY_STRING=q=%41&z",
		"REMOTE_ADDR=192.0.2.7", "REMOTE_USER=key_1", "REQUEST_METHOD=POST", "RUNNER_PARAM_name=a b", "RUNNER_PARAM_rest=c",
		"SCRIPT_NAME=/v1/files", "SERVER_NAME=shop.example", "SERVER_PORT=8443", "SERVER_PROTOCOL=HTTP/1.1", "SERVER_SOFTWARE=runner",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the environment is\n%q, want\n%q", got, want)
	}
	if args := g.strings("args_sizes_get", "args_get"); !slices.Equal(args, []string{"hello"}) {
		t.Errorf("the arguments are %q", args)
	}
}

func TestServerNameAndPortAreThoseOfTheHostHeader(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct{ host, name, port string }{
		{"x", "x", "80"}, {"x:", "x", "80"}, {"x:81", "x", "81"}, {"[::1]", "[::1]", "80"}, {"[::1]:", "[::1]", "80"}, {"[::1]:82", "[::1]", "82"},
	} {
		g.call.Request.Headers = []abi.Pair{pair("host", row.host)}
		g.program()
		if env := g.strings("environ_sizes_get", "environ_get"); !slices.Contains(env, "SERVER_NAME="+row.name) || !slices.Contains(env, "SERVER_PORT="+row.port) {
			t.Errorf("Host: %s: %q", row.host, env)
		}
	}
}

func TestTheSessionCookieIsNotInTheEnvironment(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Host.Schema = &schema.Schema{Auth: schema.AuthSettings{Cookie: &schema.CookieSession{Name: "sid"}}}
	g.call.Caller = caller.Caller{Kind: caller.Session, UserID: "ada"}
	for cookies, want := range map[string]string{
		"sid=secret":                     "",
		"a=1; sid=secret; b=2":           "HTTP_COOKIE=a=1; b=2",
		"sid = secret;sid=secret;sids=1": "HTTP_COOKIE=sids=1",
	} {
		g.call.Request.Headers = []abi.Pair{pair("cookie", cookies)}
		g.program()
		env := g.strings("environ_sizes_get", "environ_get")
		if strings.Contains(strings.Join(env, "\n"), "secret") {
			t.Errorf("%q: the environment has the credential: %q", cookies, env)
		}
		if want != "" && !slices.Contains(env, want) {
			t.Errorf("%q: the environment is %q, want %q in it", cookies, env, want)
		}
		if !slices.Contains(env, "REMOTE_USER=ada") || !slices.Contains(env, "AUTH_TYPE=session") {
			t.Errorf("the user is missing: %q", env)
		}
	}
	g.call.Caller = caller.Caller{Kind: caller.System, UserID: "uid:7"}
	g.program()
	if env := g.strings("environ_sizes_get", "environ_get"); !slices.Contains(env, "REMOTE_USER=uid:7") || !slices.Contains(env, "AUTH_TYPE=system") {
		t.Errorf("the operator is missing: %q", env)
	}
}

func TestScriptNameIsTheRouteUpToItsFirstParameter(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct{ route, path, script, info string }{
		{"/", "/", "/", ""},
		{"/hello", "/hello", "/hello", ""},
		{"/:name", "/x", "", "/x"},
		{"/a/:b/c", "/a/1/c", "/a", "/1/c"},
		{"/a/*rest", "/a/1/2", "/a", "/1/2"},
		{"/é/:b", "/%C3%A9/%C3%A9", "/é", "/é"},
	} {
		g.call.Request = &abi.Request{Method: []byte("GET"), Path: []byte(row.path), Route: row.route}
		g.program()
		env := g.strings("environ_sizes_get", "environ_get")
		info := ""
		for _, v := range env {
			if text, ok := strings.CutPrefix(v, "PATH_INFO="); ok {
				info = text
			}
		}
		if !slices.Contains(env, "SCRIPT_NAME="+row.script) || info != row.info {
			t.Errorf("%s of %s: %q", row.path, row.route, env)
		}
		for _, v := range env {
			if strings.HasPrefix(v, "CONTENT_LENGTH=") || strings.HasPrefix(v, "AUTH_TYPE=") && g.call.Caller.Kind == caller.Anonymous {
				t.Errorf("a request without body has %s", v)
			}
		}
	}
}

func TestTheBodyIsStandardInput(t *testing.T) {
	g := newGuest(t, hostabi.Limits{MovedBytes: 1 << 16})
	body := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // more than may be moved otherwise
	for _, parts := range [][2]uint32{{1, 0}, {0, 7}, {1000, 24}, {60_000, 60_000}} {
		if parts[0] == 1 {
			g.call.Request.Body = body[:1000]
		} else {
			g.call.Request.Body = body
		}
		g.program()
		if got := g.input(parts[0], parts[1]); !bytes.Equal(got, g.call.Request.Body) {
			t.Errorf("in pieces of %v, %d of %d bytes came or were others", parts, len(got), len(g.call.Request.Body))
		}
	}
	for _, end := range []uint64{2 << 16, 1<<32 - 4} {
		g.program()
		if errno := g.system("fd_read", 0, end, 1, 16); errno != wasiFault {
			t.Errorf("a list at %#x: %d", end, errno)
		}
		g.module.Memory().WriteUint64Le(0, 100<<32|end)
		if errno := g.system("fd_read", 0, 0, 1, 16); errno != wasiFault {
			t.Errorf("room at %#x: %d", end, errno)
		}
	}
	if errno := g.system("fd_read", 1, 0, 1, 16); errno != wasiBadFD {
		t.Errorf("standard output is read: %d", errno)
	}
}

func TestOnlyCommandsHaveTheRequestInTheEnvironment(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.program()
	if err := g.call.EndProgram(nil); err == nil {
		t.Error("a command that wrote nothing has answered")
	}
	g.call.Begin()
	g.call.Request.Body = []byte("body")
	if env, args := g.strings("environ_sizes_get", "environ_get"), g.strings("args_sizes_get", "args_get"); len(env)+len(args) > 0 {
		t.Errorf("environment %q, arguments %q", env, args)
	}
	if in := g.input(10, 10); len(in) > 0 {
		t.Errorf("standard input is %q", in)
	}
	g.print(1, "a line\n")
	if !strings.Contains(g.log.String(), "a line") || g.call.Response.Status != 0 {
		t.Errorf("standard output is not in the log: %s", g.log)
	}
}

// longestHeaders are as many bytes of header lines as may be written.
var longestHeaders = "Content-Type: a/b\n" + strings.Repeat("Server: me\n", 2976) + "Server: mine\n\n"

func TestTheOutputOfACommandIsItsAnswer(t *testing.T) {
	g := newGuest(t, hostabi.Limits{ResponseBytes: 1000})
	for _, row := range []struct {
		out    string
		status int // 0: it is none
		want   string
	}{
		{"Content-Type: text/plain\n\nhello", 200, "content-type: text/plain|hello"},
		{"Content-Type: text/plain\r\nStatus: 404 Not Found\r\n\r\nhe\r\nllo\n", 404, "content-type: text/plain|he\r\nllo\n"},
		{"STATUS:201\ncontent-type:\ttext/plain \n\n", 201, "content-type: text/plain|"},
		{"Status: 204\n\n", 204, "|"},
		{"Location: /here?x=1#y\n\n", 302, "location: /here?x=1#y|"},
		{"Location: https://other.example/\nStatus: 308 Permanent Redirect\nContent-Type: text/html\n\n<a>", 308, "location: https://other.example/|content-type: text/html|<a>"},
		{"Content-Type: a/b\nX-One: 1\nSet-Cookie: a=b\nSet-Cookie: c=d\n\n", 200, "content-type: a/b|x-one: 1|set-cookie: a=b|set-cookie: c=d|"},
		{"Content-Type: a/b\nX-Empty:\nStatus: \n\n", 200, "content-type: a/b|"},
		{"Content-Type: a/b\nContent-Length: 1\nServer: me\nConnection: close\nTransfer-Encoding: chunked\nWWW-Authenticate: x\n\nabc", 200, "content-type: a/b|abc"},
		{"Content-Type: a/b\n\n" + strings.Repeat("x", 1000), 200, "content-type: a/b|" + strings.Repeat("x", 1000)},

		{"", 0, "wrote nothing to standard output"},
		{"hello world", 0, `line 1 of standard output as "hello world", which is not a header`},
		{"<html>a: b</html>\n\n", 0, "line 1"},
		{"Content-Type: a/b\nno header\n\n", 0, "line 2"},
		{"Content-Type: a/b\n X: folded\n\n", 0, "line 2"},
		{"Content-Type: a/b", 0, "without an empty line"},
		{"Content-Type: a/b\n", 0, "line 2"},
		{"\nhello", 0, "without a Content-Type"},
		{"\n", 0, "without Content-Type, Location or Status"},
		{"X-One: 1\n\n", 0, "without Content-Type"},
		{"Status: 200\n\nhello", 0, "without a Content-Type"},
		{"Status: 204\nContent-Type: a/b\n\nhello", 0, "which Status: 204 cannot have"},
		{"Status: 205\nContent-Type: a/b\n\nhello", 0, "which Status: 205 cannot have"},
		{"Status: fine\n\n", 0, "write three digits"},
		{"Status: 99\n\n", 0, "write three digits"},
		{"Status: 2000\n\n", 0, "write three digits"},
		{"Status: 200OK\n\n", 0, `Status: "200OK": write three digits, then a space before any text`},
		{"Status: 200\nStatus: 200\n\n", 0, "Status twice"},
		{"Status: 100\n\n", 0, "not between 200 and 599"},
		{"Status: 600\n\n", 0, "not between 200 and 599"},
		{"Content-Type: a/b\nContent-Type: a/b\n\n", 0, "header Content-Type, which cannot be sent: invalid"},
		{"Location: //other.example\n\n", 0, "header Location, which cannot be sent: denied"},
		{"Location: javascript:alert(1)\n\n", 0, "header Location, which cannot be sent: denied"},
		{"Location: https://evil.example\\@good.example\n\n", 0, "header Location, which cannot be sent: denied"},
		{"Content-Type: a/b\nX: a\rb\n\n", 0, "header X, which cannot be sent: denied"},
		{"Content-Type: a/b\nX: \xff\n\n", 200, "content-type: a/b|x: \xff|"},
		{"Content-Type: a/b\n" + strings.Repeat("X: y\n", 101) + "\n", 0, "cannot be sent: too_large"},
		{"X: " + strings.Repeat("y", 40_000), 0, "header lines of more than"},
		{"Content-Type: a/b\n\n" + strings.Repeat("x", 1001), 0, "a body of more than 1000 bytes"},
		{longestHeaders + strings.Repeat("x", 1000), 200, "content-type: a/b|" + strings.Repeat("x", 1000)},
		{longestHeaders + strings.Repeat("x", 1001), 0, "a body of more than 1000 bytes"}, // not as far as it fits
	} {
		g.program()
		g.printUntil(row.out)
		err := g.call.EndProgram(&hostabi.Exit{})
		r := &g.call.Response
		if row.status == 0 {
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.60q: %v, want %q", row.out, err, row.want)
			}
			continue
		}
		var got strings.Builder
		for _, h := range r.Headers {
			got.WriteString(strings.ToLower(string(h.Name)) + ": " + string(h.Value) + "|")
		}
		got.Write(r.Body)
		if want := strings.TrimPrefix(row.want, "|"); err != nil || r.Status != row.status || got.String() != want {
			t.Errorf("%.60q: %v, %d %q, want %d %q", row.out, err, r.Status, got.String(), row.status, want)
		}
	}
}

// TestACommandCannotSetSessionOrCORSHeaders: such lines are left out like other
// headers of the host's.
func TestACommandCannotSetSessionOrCORSHeaders(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Host.Schema = &schema.Schema{Auth: schema.AuthSettings{Cookie: &schema.CookieSession{Name: "__Host-session"}}}
	const out = "Content-Type: a/b\nSet-Cookie: a=b\nSet-Cookie: __Host-session=x; Secure\nAccess-Control-Allow-Origin: *\n\n"
	for hostCORS, want := range map[bool]string{
		true: "content-type: a/b\nset-cookie: a=b\n", false: "content-type: a/b\nset-cookie: a=b\naccess-control-allow-origin: *\n",
	} {
		g.program()
		g.call.HostCORS = hostCORS
		g.printUntil(out)
		if err := g.call.EndProgram(&hostabi.Exit{}); err != nil || strings.ToLower(headerText(g.call.Response)) != want {
			t.Errorf("CORS of the host %v: %v, %q, want %q", hostCORS, err, headerText(g.call.Response), want)
		}
	}
}

// printUntil writes to standard output as far as that goes.
func (g *guest) printUntil(text string) {
	g.t.Helper()
	for text != "" {
		g.next = 1024
		at, n := g.put(text)
		g.module.Memory().WriteUint64Le(0, uint64(n)<<32|uint64(at))
		if errno := g.system("fd_write", 1, 0, 1, 8); errno != wasiOK {
			return
		}
		written, _ := g.module.Memory().ReadUint32Le(8)
		text = text[written:]
	}
}

func TestOutputIsLimitedToTheLargestAnswer(t *testing.T) {
	g := newGuest(t, hostabi.Limits{ResponseBytes: 1000})
	g.program()
	const fBig = 22
	g.module.Memory().WriteUint64Le(0, 50_000<<32|1024)
	written := uint32(0)
	for range 100 {
		if errno := g.system("fd_write", 1, 0, 1, 8); errno == fBig {
			break
		} else if errno != wasiOK {
			t.Fatalf("fd_write: %d", errno)
		}
		n, _ := g.module.Memory().ReadUint32Le(8)
		written += n
	}
	if written < 1000 || written > 1000+64<<10 {
		t.Errorf("%d bytes were taken for an answer of 1000", written)
	}
	if err := g.call.EndProgram(&hostabi.Exit{Status: 1}); err == nil || !strings.Contains(err.Error(), "status 1 after more output than an answer may have (1000 bytes)") {
		t.Errorf("ends with %v", err)
	}
}

func TestTheOutputOfAFailedCommandIsLogged(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	trap := errors.New("unreachable")
	for _, end := range []error{&hostabi.Exit{Status: 3}, trap} {
		g.program()
		g.print(1, "Content-Type: text/plain\n\nhalf an answer\n")
		if err := g.call.EndProgram(end); !errors.Is(err, end) || g.call.Response.Status != 0 {
			t.Errorf("ends with %v, status %d", err, g.call.Response.Status)
		}
		g.call.End()
		if !strings.Contains(g.log.String(), "half an answer") {
			t.Errorf("the log does not say what was written: %s", g.log)
		}
		g.log.Reset()
	}
}

func TestACommandMayAnswerThroughTheGuestABI(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.program()
	at, n := g.put("hello")
	g.raw("response_send", 200, at, n)
	if err := g.call.EndProgram(nil); err != nil || string(g.call.Response.Body) != "hello" {
		t.Errorf("%v, body %q", err, g.call.Response.Body)
	}
	g.program()
	g.raw("response_send", 200, at, n)
	g.print(1, "Content-Type: text/plain\n\n")
	if err := g.call.EndProgram(nil); err == nil || !strings.Contains(err.Error(), "use only one of them") {
		t.Errorf("two answers: %v", err)
	}
}

func TestTheFilesOfACommandArePipesAndInputHasASize(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, fd := range []uint64{0, 1, 2} {
		g.call.Begin()
		if errno := g.system("fd_fdstat_get", fd, 64); errno != wasiOK || g.at(64, 1)[0] != 2 {
			t.Errorf("file %d of a handler: %d, type %d", fd, errno, g.at(64, 1)[0])
		}
		g.program()
		if errno := g.system("fd_fdstat_get", fd, 64); errno != wasiOK || g.at(64, 1)[0] != 0 {
			t.Errorf("file %d of a command: %d, type %d", fd, errno, g.at(64, 1)[0])
		}
	}
	g.call.Request.Body = []byte("12345")
	g.program()
	for _, want := range []struct {
		bytes uint64
		flags uint16
	}{{5, 0}, {0, 1}} {
		memory := g.module.Memory()
		memory.Write(0, make([]byte, 48))
		memory.WriteByte(8, 1) // readable
		if errno := g.system("poll_oneoff", 0, 512, 1, 600); errno != wasiOK {
			t.Fatalf("poll_oneoff: %d", errno)
		}
		n, _ := memory.ReadUint64Le(512 + 16)
		flags, _ := memory.ReadUint16Le(512 + 24)
		if n != want.bytes || flags != want.flags {
			t.Errorf("standard input has %d bytes and flags %d, want %v", n, flags, want)
		}
		g.input(100, 0)
	}
}

// FuzzProgramOutput: any output of a command is either a valid answer, whose body is the
// end of the output, or is refused with an error of one line.
func FuzzProgramOutput(f *testing.F) {
	f.Add([]byte("Content-Type: text/plain\nStatus: 201 Created\n\nhello"))
	f.Add([]byte("Location: /x\r\n\r\n"))
	f.Add([]byte("Status: 204\nX-A: b\n\n"))
	root := hostabi.NewRoot()
	f.Fuzz(func(t *testing.T, out []byte) {
		c := &hostabi.Call{Input: hostabi.Input{Context: context.Background(), Host: hostabi.NewHost(hostabi.Host{Logger: slog.New(slog.DiscardHandler)}), Request: &abi.Request{Route: "/"}}}
		c.Begin()
		c.BeginProgram(&hostabi.Program{Root: root})
		g := &guest{t: t, module: memoryOf(t, out), wasi: wasiFunctions, call: c}
		written := 0
		for written < len(out) {
			g.module.Memory().WriteUint64Le(0, uint64(len(out)-written)<<32|uint64(64+written))
			if errno := g.system("fd_write", 1, 0, 1, 8); errno != wasiOK {
				t.Fatalf("fd_write: %d", errno)
			}
			n, _ := g.module.Memory().ReadUint32Le(8)
			written += int(n)
		}
		err := c.EndProgram(nil)
		r := &c.Response
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
				t.Errorf("%q is not a line", err)
			}
			return
		}
		if r.Status < 200 || r.Status > 599 || !bytes.HasSuffix(out, r.Body) || len(r.Body) > 0 && slices.Contains([]int{204, 205, 304}, r.Status) {
			t.Errorf("%d %q of %q", r.Status, r.Body, out)
		}
		for _, h := range r.Headers {
			if len(h.Name) == 0 || bytes.ContainsAny(h.Name, " \t\r\n:") || bytes.ContainsAny(h.Value, "\r\n\x00") ||
				strings.EqualFold(string(h.Name), "content-length") || strings.EqualFold(string(h.Name), "status") {
				t.Errorf("header %q: %q of %q", h.Name, h.Value, out)
			}
		}
	})
}

var wasiFunctions = func() map[string]hostabi.Function {
	all := map[string]hostabi.Function{}
	for _, f := range hostabi.WASI() {
		all[f.Name] = f
	}
	return all
}()

// memoryOf is a module whose memory has text at 64, and nothing of a request.
func memoryOf(t *testing.T, text []byte) api.Module {
	t.Helper()
	if len(text) > memoryBytes-64 {
		t.Skip("longer than the memory")
	}
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	module, err := runtime.Instantiate(ctx, emptyModule)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runtime.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	module.Memory().Write(64, text)
	return module
}
