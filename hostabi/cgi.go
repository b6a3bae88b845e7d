package hostabi

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/files"
	"runner.example/internal/caller"
)

// program is a run of a command: a module without handlers. Its _start gets the request as a
// CGI script does (RFC 3875), in environment variables and on standard input, and answers
// on standard output.
type program struct {
	running bool
	// out is standard output. A write that would make it longer than most fails; most is
	// more than any answer has.
	out  []byte
	most int
	// args and env are strings that end with a zero byte each.
	args, env []byte
}

// maxHeaderBlock is the longest block of header lines of an answer, line ends included.
const maxHeaderBlock = 32 << 10

// keptOutputBytes is the largest buffer for output that a Call keeps between runs.
const keptOutputBytes = 64 << 10

// shownOutput is how much of an output that is not an answer is logged.
const shownOutput = 1 << 10

func (p *program) reset() {
	out := p.out[:0]
	if cap(out) > keptOutputBytes {
		out = nil
	}
	*p = program{out: out, args: p.args[:0], env: p.env[:0]}
}

// Write never fails, because fd_write passes at most what fits.
func (p *program) Write(b []byte) (int, error) {
	p.out = append(p.out, b...)
	return len(b), nil
}

// Program is what a program finds when it starts.
type Program struct {
	// Args are its arguments, the first one of which is its name.
	Args []string
	// Env are variables: "NAME=value".
	Env []string
	// Root has the files. It must not be changed any more.
	Root *files.Root
}

// Directory is a directory that a program has open from the beginning.
type Directory struct {
	Path string
	Node *files.Node
}

// Directories are those of a program: the root, and that of the time zones.
func (p *Program) Directories() []Directory {
	all := []Directory{{"/", &p.Root.Node}}
	if z := zonesNode(); z != nil {
		all = append(all, Directory{"/" + zonesAt, z})
	}
	return all
}

// beginProgram gives the run the arguments, the variables and the files.
func (c *Call) beginProgram(with *Program) {
	c.program.reset()
	c.program.give(with)
	c.files.reset()
	for _, d := range with.Directories() {
		c.files.open = append(c.files.open, openedFile{path: []*files.Node{d.Node}})
	}
}

// give gives the run the arguments and the variables.
func (p *program) give(with *Program) {
	for _, arg := range with.Args {
		p.args = append(append(p.args, arg...), 0)
	}
	for _, v := range with.Env {
		p.env = append(append(p.env, v...), 0)
	}
}

// BeginProgram makes the run that of a command: from now on environment, standard input and output
// are those of a CGI script. Call it after Begin and after the guest's initialization.
func (c *Call) BeginProgram(with *Program) {
	c.beginProgram(with)
	c.program.running = true
	c.program.most = c.limits.ResponseBytes + maxHeaderBlock + 1 // an output of this length is too long for an answer
	c.describeRequest()
}

// EndProgram makes the output of a command its answer, if err, of its run, is nil or an Exit
// with status 0. Otherwise, or if the output is not an answer, it returns why, and logs the
// first part of the output.
func (c *Call) EndProgram(err error) error {
	c.program.running = false
	if err = c.outcome(err); err != nil {
		_, _ = c.stdout.Write(c.program.out[:min(len(c.program.out), shownOutput)]) // never fails
	}
	if cap(c.program.out) > keptOutputBytes {
		c.program.out = nil // the answer has a copy
	}
	return err
}

func (c *Call) outcome(err error) error {
	p := &c.program
	exit, exited := errors.AsType[*Exit](err)
	switch {
	case exited && exit.Status != 0 && len(p.out) == p.most:
		return fmt.Errorf("exited with status %d after more output than an answer may have (%d bytes)",
			exit.Status, c.limits.ResponseBytes)
	case err != nil && (!exited || exit.Status != 0):
		return err
	case c.Response.Status == 0:
		return c.answer(p.out)
	case len(p.out) > 0:
		return errors.New("answered through response_send and also on standard output: use only one of them")
	}
	return nil
}

// set adds a variable, unless its value has a zero byte: for the program it would end
// there.
func (p *program) set(name string, value []byte) {
	if bytes.IndexByte(value, 0) >= 0 {
		return
	}
	p.env = append(append(p.env, name...), '=')
	p.env = append(append(p.env, value...), 0)
}

// describeRequest sets the variables of RFC 3875, section 4.1, and one per path
// parameter.
func (c *Call) describeRequest() {
	p, r := &c.program, c.Request
	script, info := splitPath(r.Route, string(r.Path))
	host, port := serverOf(r.Headers)
	address := ""
	if c.Address.IsValid() {
		address = c.Address.String()
	}
	p.set("GATEWAY_INTERFACE", []byte("CGI/1.1"))
	p.set("SERVER_SOFTWARE", []byte("runner"))
	p.set("SERVER_PROTOCOL", []byte("HTTP/1.1"))
	p.set("SERVER_NAME", []byte(host))
	p.set("SERVER_PORT", []byte(port))
	p.set("REMOTE_ADDR", []byte(address))
	p.set("REQUEST_METHOD", r.Method)
	p.set("SCRIPT_NAME", []byte(script))
	if info != "" {
		p.set("PATH_INFO", []byte(info))
	}
	p.set("QUERY_STRING", r.RawQuery)
	length := int64(len(r.Body))
	if c.BodyStream != nil {
		length = c.BodyStream.Length()
	}
	if length > 0 {
		p.set("CONTENT_LENGTH", strconv.AppendInt(nil, length, 10))
	}
	switch c.Caller.Kind {
	case caller.Session, caller.System:
		p.set("REMOTE_USER", []byte(c.Caller.UserID))
		p.set("AUTH_TYPE", []byte(c.Caller.Kind.String()))
	case caller.APIKey:
		p.set("REMOTE_USER", []byte(c.Caller.KeyID))
		p.set("AUTH_TYPE", []byte(c.Caller.Kind.String()))
	}
	for _, param := range r.Params {
		p.set("RUNNER_PARAM_"+string(param.Name), param.Value)
	}
	for _, h := range r.Headers {
		if name, value, ok := c.headerVariable(h); ok {
			p.set(name, value)
		}
	}
}

// headerVariable returns the variable of a header. Credentials have none on any route. Proxy
// has none, because programs would take it for a setting, nor has a name that could be
// taken for another.
func (c *Call) headerVariable(h abi.Pair) (name string, value []byte, ok bool) {
	switch string(h.Name) {
	case "content-type":
		return "CONTENT_TYPE", h.Value, true
	case "content-length", "authorization", "proxy-authorization", "x-api-key", "proxy":
		return "", nil, false
	}
	variable := []byte("HTTP_")
	for _, b := range h.Name {
		switch {
		case 'a' <= b && b <= 'z':
			b -= 'a' - 'A'
		case b == '-':
			b = '_'
		case b < '0' || b > '9':
			return "", nil, false
		}
		variable = append(variable, b)
	}
	value = h.Value
	if string(h.Name) == "cookie" && c.Host.Schema != nil && c.Host.Schema.Auth.Cookie != nil {
		value = withoutCookie(value, c.Host.Schema.Auth.Cookie.Name)
	}
	return string(variable), value, len(value) > 0 || len(h.Value) == 0
}

// withoutCookie removes the cookies of a name (RFC 6265, section 4.2).
func withoutCookie(cookies []byte, name string) []byte {
	var kept [][]byte
	for cookie := range bytes.SplitSeq(cookies, []byte{';'}) {
		cookie = bytes.Trim(cookie, " \t")
		if n, _, _ := bytes.Cut(cookie, []byte{'='}); string(bytes.Trim(n, " \t")) != name {
			kept = append(kept, cookie)
		}
	}
	return bytes.Join(kept, []byte("; "))
}

// splitPath returns the part of the path before the template's first parameter as the script,
// and the rest, decoded, as the path info. Without parameters all is the script.
func splitPath(template, path string) (script, info string) {
	script, rest := "", path
	for segment := range strings.SplitSeq(strings.TrimPrefix(template, "/"), "/") {
		if strings.HasPrefix(segment, ":") || strings.HasPrefix(segment, "*") {
			break
		}
		here, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		script += rest[:len(rest)-len(strings.TrimPrefix(rest, "/"))+len(here)]
		rest = path[len(script):]
	}
	return unescaped(script), unescaped(rest)
}

// unescaped decodes a path that the router has accepted.
func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// serverOf returns the name and the port of the server by the header Host.
func serverOf(headers []abi.Pair) (host, port string) {
	i := slices.IndexFunc(headers, func(h abi.Pair) bool { return string(h.Name) == "host" })
	if i < 0 {
		return "localhost", "80"
	}
	whole := string(headers[i].Value)
	if host, port, err := net.SplitHostPort(whole); err == nil {
		if port == "" { // RFC 3986, section 3.2.3
			port = "80"
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return host, port
	}
	return whole, "80"
}

// answer makes the output of a command the answer (RFC 3875, section 6): header lines, an
// empty line, the body. The RFC permits to serve a redirect to a local path at once; here
// the client is redirected. Headers that only the host sets are skipped (6.3.4).
func (c *Call) answer(out []byte) error {
	status, body, err := c.answerHead(out)
	if err != nil {
		return err
	}
	switch errno := c.send(int32(status), body); {
	case errno == abi.TooLarge:
		return fmt.Errorf("wrote a body of more than %d bytes", c.limits.ResponseBytes)
	case errno != 0 && bodiless(int32(status)):
		return fmt.Errorf("wrote a body, which Status: %d cannot have", status)
	case errno != 0:
		return fmt.Errorf("wrote Status: %d, which is not between 200 and 599", status)
	}
	c.moved += len(out)
	return nil
}

// answerHead reads the header lines, and what they mean for the status.
func (c *Call) answerHead(out []byte) (status int, body []byte, err error) {
	if status, body, err = c.answerHeaders(out); err != nil {
		return 0, nil, err
	}
	typed := hasHeader(c.Response.Headers, []byte("content-type"))
	moved := hasHeader(c.Response.Headers, []byte("location"))
	switch {
	case len(body) > 0 && !typed:
		return 0, nil, errors.New("wrote a body without a Content-Type header")
	case status == 0 && !typed && !moved:
		return 0, nil, errors.New("wrote header lines without Content-Type, Location or Status")
	case status == 0 && moved:
		status = 302
	case status == 0:
		status = 200
	}
	return status, body, nil
}

// streamOutput sends what a command has written, on a route with stream: and from the empty line after its headers on.
func (c *Call) streamOutput() {
	p := &c.program
	switch {
	case !p.running || !c.streamsOutput():
		return
	case c.streaming:
	case !headEnded(p.out):
		return
	default:
		status, body, err := c.answerHead(p.out)
		if err != nil || c.beginAnswer(int32(status)) != 0 { // the end of the run says what is wrong
			c.Response.Headers, c.StreamsOutput = c.Response.Headers[:0], false
			return
		}
		p.out = append(p.out[:0], body...)
	}
	_ = c.sendParts(p.out) // if the client is gone the program goes on, for a moment
	p.out = p.out[:0]
}

// streamsOutput reports whether what a guest writes is sent at once: on a route with stream: and to a client.
func (c *Call) streamsOutput() bool { return c.StreamsOutput && c.Stream != nil && c.Player == nil }

// headEnded reports whether the header lines are complete.
func headEnded(out []byte) bool {
	out = out[:min(len(out), maxHeaderBlock)]
	return bytes.Contains(out, []byte("\n\n")) || bytes.Contains(out, []byte("\n\r\n"))
}

// answerHeaders reads the header lines. The status is 0 if there is none.
func (c *Call) answerHeaders(out []byte) (status int, body []byte, err error) {
	if len(out) == 0 {
		return 0, nil, errors.New("ended without an answer: it wrote nothing to standard output")
	}
	for rest, n := out, 1; ; n++ {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		line, rest = bytes.TrimSuffix(line, []byte{'\r'}), after
		switch {
		case len(out)-len(rest) > maxHeaderBlock:
			return 0, nil, fmt.Errorf("wrote header lines of more than %d bytes", maxHeaderBlock)
		case ended && len(line) == 0:
			return status, rest, nil
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		value = bytes.Trim(value, " \t")
		switch {
		case !ok || len(name) == 0 || !all(name, isTokenByte):
			return 0, nil, fmt.Errorf(
				"wrote line %d of standard output as %q, which is not a header: begin with header lines and an empty line",
				n, shortened(line))
		case !ended:
			return 0, nil, errors.New("wrote header lines without an empty line after them")
		case len(value) == 0: // as if it were absent (6.3)
		case strings.EqualFold(string(name), "status"):
			if status != 0 {
				return 0, nil, errors.New("wrote Status twice")
			}
			if status = statusOf(value); status == 0 {
				return 0, nil, fmt.Errorf("wrote Status: %q: write three digits, then a space before any text", shortened(value))
			}
		case c.isHosts(name, value):
		default:
			if errno := c.addHeader(name, value); errno != 0 {
				return 0, nil, fmt.Errorf("wrote the header %s, which cannot be sent: %s", shortened(name), errno)
			}
		}
	}
}

// statusOf returns the code of "404 Not Found", or 0 if it is not valid.
func statusOf(value []byte) int {
	code, _, _ := bytes.Cut(value, []byte{' '})
	n, err := strconv.ParseUint(string(code), 10, 16)
	if err != nil || len(code) != 3 {
		return 0
	}
	return int(n)
}

// shortened cuts a program's text for a message.
func shortened(text []byte) []byte { return text[:min(len(text), 40)] }
