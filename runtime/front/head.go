package front

import (
	"bytes"
	"strconv"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// requestLineExtra limits a request line beside its target.
const requestLineExtra = 64

// maxEmptyLines is the largest number of empty lines before a request line: a few clients
// send one after a body (RFC 9112, section 2.2).
const maxEmptyLines = 2

// Refusals of heads that cannot be parsed. They quote nothing of the request.
var (
	errLineEnd = fault.New(fault.InvalidRequest,
		"every line of the head must end in CR LF, and CR may not occur elsewhere")
	errRequestLine = fault.New(fault.InvalidRequest,
		"the first line must be the method, the target and the HTTP version, separated by one space")
	errVersion = fault.New(fault.HTTPVersion, "only HTTP/1.1 and HTTP/1.0 are supported")
	errMethod  = fault.New(fault.MethodNotImplemented,
		"the method is not one of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS")
	errTarget = fault.New(fault.BadPath,
		"the target must begin with / or be an absolute http URL, and must not contain # or control characters")
	errFold        = fault.New(fault.InvalidRequest, "a header line begins with a space: folded headers are not supported")
	errHeaderName  = fault.New(fault.InvalidRequest, "a header line does not begin with a name followed by a colon")
	errHeaderValue = fault.New(fault.InvalidRequest, "a header value contains a control character")
	errTwice       = fault.New(fault.InvalidRequest,
		"Host, Content-Length, Transfer-Encoding and Expect may each occur once")
	errBothLengths = fault.New(fault.InvalidRequest, "Content-Length and Transfer-Encoding cannot be combined")
	errLength      = fault.New(fault.InvalidRequest, "Content-Length must be one decimal number")
	errEncoding    = fault.New(fault.InvalidRequest, "Transfer-Encoding must be chunked, and requires HTTP/1.1")
	errExpect      = fault.New(fault.InvalidRequest, "Expect must be 100-continue")
	errNoHost      = fault.New(fault.InvalidRequest, "HTTP/1.1 requires a Host header")
	errHost        = fault.New(fault.InvalidRequest, "Host must be a name or an address, with an optional port")
	errAuthority   = fault.New(fault.InvalidRequest, "the host of an absolute target and the Host header differ")
	errForeignHost = fault.New(fault.InvalidRequest, "this server does not serve this host")
)

// headScan searches the end of a head, line by line, and remembers how far it came: each
// byte is examined once, however slowly it arrives.
type headScan struct {
	start int // of the request line
	first int // of the first header line; 0: the request line is incomplete
	line  int // start of the line that is incomplete
	pos   int // bytes before it were examined
	lines int // header lines
	empty int // lines before the request line
}

// next returns the length of the head that b begins with, 0 if more is needed. Each call
// has the same bytes, with more after them.
func (h *headScan) next(b []byte, opt *Options) (int, *fault.Fault) {
	for {
		i := bytes.IndexByte(b[h.pos:], '\n')
		if i < 0 {
			h.pos = len(b)
			return 0, h.partial(b, opt)
		}
		end := h.pos + i
		h.pos = end + 1
		if end == h.line || b[end-1] != '\r' {
			return 0, errLineEnd
		}
		length := end - 1 - h.line
		switch {
		case h.first > 0 && length == 0:
			return h.pos, nil
		case h.first > 0:
			h.lines++
			if f := h.headers(h.pos, opt); f != nil {
				return 0, f
			}
		case length > 0:
			if f := requestLineSize(b[h.start:end-1], opt); f != nil {
				return 0, f
			}
			h.first = h.pos
		case h.empty == maxEmptyLines:
			return 0, errRequestLine
		default:
			h.empty++
			h.start = h.pos
		}
		h.line = h.pos
	}
}

// partial refuses an incomplete head that cannot become valid.
func (h *headScan) partial(b []byte, opt *Options) *fault.Fault {
	if h.first > 0 {
		return h.headers(len(b)-len("\r\n"), opt) // the last two may end the head
	}
	line := b[h.start:]
	if len(line) > 0 && !tokenByte[line[0]] && line[0] != '\r' {
		return errRequestLine // such as a TLS handshake, which may never send LF
	}
	return requestLineSize(line, opt)
}

func (h *headScan) headers(end int, opt *Options) *fault.Fault {
	if h.lines > opt.MaxHeaderLines || end-h.first > opt.MaxHeaderBytes {
		return fault.New(fault.HeadersTooLarge, "the headers of a request may have %d bytes in %d lines",
			opt.MaxHeaderBytes, opt.MaxHeaderLines)
	}
	return nil
}

// requestLineSize refuses a line that is too long, for its target if it has one.
func requestLineSize(line []byte, opt *Options) *fault.Fault {
	if len(line) <= opt.MaxTargetBytes {
		return nil
	}
	method, rest, found := bytes.Cut(line, []byte{' '})
	target, _, _ := bytes.Cut(rest, []byte{' '})
	switch {
	case found && len(method) < requestLineExtra && len(target) > opt.MaxTargetBytes:
		return tooLongTarget(opt)
	case len(line) > opt.MaxTargetBytes+requestLineExtra:
		return errRequestLine
	}
	return nil
}

func tooLongTarget(opt *Options) *fault.Fault {
	return fault.New(fault.URITooLong, "the target of a request may have %d bytes", opt.MaxTargetBytes)
}

// framing is what the head says about the message and its connection.
type framing struct {
	known      bool // it is known where the body ends
	minor      byte // of the HTTP version
	headOnly   bool // HEAD: no body in the answer
	chunked    bool
	length     int64 // of a body that is not chunked
	keepAlive  bool
	closeAsked bool
	authority  []byte // of a target in absolute form
	port       []byte // the default of its scheme, with the colon
}

// takeHead copies a complete head to the exchange and parses it.
func (x *Exchange) takeHead(b []byte) {
	x.headers.raw = append(x.headers.raw[:0], b...)
	x.refusal = x.parse()
}

// refuseHead refuses a head that was not read to its end. It matters only whether the
// answer may have a body.
func (x *Exchange) refuseHead(b []byte, refusal *fault.Fault) {
	x.refusal = refusal
	x.framing.headOnly = bytes.HasPrefix(b, []byte("HEAD "))
}

func (x *Exchange) parse() *fault.Fault {
	end := bytes.IndexByte(x.headers.raw, '\n')
	if f := x.parseRequestLine(x.headers.raw[:end-1]); f != nil {
		return f
	}
	if f := x.parseHeaders(x.headers.raw[end+1 : len(x.headers.raw)-2]); f != nil {
		return f
	}
	if f := x.parseFraming(); f != nil {
		return f
	}
	x.framing.known = true
	x.makeRoom()
	return x.parseQuery()
}

func (x *Exchange) parseRequestLine(line []byte) *fault.Fault {
	method, rest, found := bytes.Cut(line, []byte{' '})
	target, version, found2 := bytes.Cut(rest, []byte{' '})
	if !found || !found2 || !isToken(method) || len(target) == 0 {
		return errRequestLine
	}
	x.framing.headOnly = string(method) == "HEAD"
	if len(version) != len("HTTP/1.1") || string(version[:5]) != "HTTP/" ||
		!isDigit(version[5]) || version[6] != '.' || !isDigit(version[7]) {
		return errRequestLine
	}
	if version[5] != '1' || version[7] > '1' {
		return errVersion
	}
	x.framing.minor = version[7] - '0'
	if !served(method) {
		return errMethod
	}
	if !targetAllowed(target) {
		return errTarget
	}
	path, query, _ := bytes.Cut(target, []byte{'?'})
	if len(path) == 0 || path[0] != '/' {
		if path, x.framing.authority, x.framing.port = splitAbsolute(path); path == nil {
			return errTarget
		}
	}
	x.Request.Method, x.Request.Path, x.Request.RawQuery = method, path, query
	return nil
}

// targetAllowed refuses the characters that no target has.
func targetAllowed(target []byte) bool {
	for _, c := range target {
		if c <= ' ' || c == 0x7f || c == '#' {
			return false
		}
	}
	return true
}

// CheckTarget refuses a target from the body of a request, a path with a query, as a request with it is refused. The error
// is a fault.
func (s *Server) CheckTarget(target []byte) error {
	switch {
	case len(target) > s.opt.MaxTargetBytes:
		return tooLongTarget(&s.opt)
	case len(target) == 0 || target[0] != '/' || !targetAllowed(target):
		return errTarget
	}
	return nil
}

// splitAbsolute returns the path and the authority of a target in absolute form (RFC 9112,
// section 3.2.2) and the default port of its scheme, nil if it has another form.
func splitAbsolute(target []byte) (path, authority, port []byte) {
	scheme, rest, found := bytes.Cut(target, []byte("://"))
	switch {
	case found && equalFold(scheme, "http"):
		port = []byte(":80")
	case found && equalFold(scheme, "https"):
		port = []byte(":443")
	default:
		return nil, nil, nil
	}
	slash := bytes.IndexByte(rest, '/')
	if slash < 0 {
		return target[len(scheme)+1 : len(scheme)+2], rest, port // a slash stands for the empty path
	}
	return rest[slash:], rest[:slash], port
}

// served reports whether a schema can declare the method.
func served(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return true
	}
	return false
}

// parseHeaders fills lines; it changes names to lower case in place.
func (x *Exchange) parseHeaders(b []byte) *fault.Fault {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		line := b[:end-1]
		b = b[end+1:]
		if line[0] == ' ' || line[0] == '\t' {
			return errFold
		}
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found || !isToken(name) {
			return errHeaderName
		}
		value = trimBlanks(value)
		if !isFieldValue(value) {
			return errHeaderValue
		}
		lowerInPlace(name)
		x.headers.lines = append(x.headers.lines, abi.Pair{Name: name, Value: value})
	}
	return nil
}

// parseFraming reads the headers that say where the message ends and whether the connection
// stays open.
func (x *Exchange) parseFraming() *fault.Fault {
	var host, length, encoding, expect []byte
	once := func(field *[]byte, value []byte) bool {
		if *field != nil {
			return false
		}
		*field = value // not nil even if empty
		return true
	}
	x.framing.keepAlive = x.framing.minor == 1
	traces := 0
	for _, l := range x.headers.lines {
		ok := true
		switch string(l.Name) {
		case "host":
			ok = once(&host, l.Value)
		case "content-length":
			ok = once(&length, l.Value)
		case "transfer-encoding":
			ok = once(&encoding, l.Value)
		case "expect":
			ok = once(&expect, l.Value)
		case "connection":
			x.parseConnection(l.Value)
		case "traceparent":
			traces++
			x.Request.Traceparent = l.Value
		case "authorization":
			x.credentials.Authorization = l.Value
			x.credentials.AuthorizationLines++
		case "x-api-key":
			x.credentials.APIKey = l.Value
			x.credentials.APIKeyLines++
		}
		if !ok {
			return errTwice
		}
	}
	if traces > 1 {
		x.Request.Traceparent = nil
	}
	switch {
	case length != nil && encoding != nil:
		return errBothLengths
	case length != nil:
		n, err := parseLength(length)
		if err != nil {
			return errLength
		}
		x.framing.length = n
	case encoding != nil:
		if x.framing.minor == 0 || !equalFold(encoding, "chunked") {
			return errEncoding
		}
		x.framing.chunked = true
	}
	x.body.done = !x.framing.chunked && x.framing.length == 0
	if expect != nil && x.framing.minor == 1 {
		if !equalFold(expect, "100-continue") {
			return errExpect
		}
		x.body.expectsContinue = !x.body.done
	}
	return x.checkHost(host)
}

// parseConnection reads one Connection line: close wins over keep-alive in any order.
func (x *Exchange) parseConnection(value []byte) {
	for option := range bytes.SplitSeq(value, []byte{','}) {
		option = trimBlanks(option)
		switch {
		case equalFold(option, "close"):
			x.framing.keepAlive, x.framing.closeAsked = false, true
		case equalFold(option, "keep-alive"):
			x.framing.keepAlive = !x.framing.closeAsked
		}
	}
}

// parseLength accepts only digits: no sign, no list, no overflow.
func parseLength(b []byte) (int64, error) {
	for _, c := range b {
		if !isDigit(c) {
			return 0, strconv.ErrSyntax
		}
	}
	return strconv.ParseInt(string(b), 10, 64)
}

func (x *Exchange) checkHost(host []byte) *fault.Fault {
	live := x.srv.live.Load()
	anyHost := len(live.hosts) == 0 || x.srv.opt.servesAnyHost(x.Request.Path)
	switch {
	case len(host) == 0 && (x.framing.minor == 1 || !anyHost):
		return errNoHost
	case len(host) == 0 && x.framing.authority == nil:
		return nil
	case !ValidHost(host):
		return errHost
	case x.framing.authority != nil && !x.framing.isAuthority(host):
		return errAuthority
	case anyHost || accepted(live.hosts, host):
		return nil
	}
	live.refused.log(x.srv.opt.Logger, host, x.conn.peer)
	return errForeignHost
}

// isAuthority reports whether host is that of the target in absolute form. Without a port it is
// that of the scheme (RFC 9110, section 4.2.3).
func (f *framing) isAuthority(host []byte) bool {
	return equalFold(bytes.TrimSuffix(f.authority, f.port), string(bytes.TrimSuffix(host, f.port)))
}

// tokenByte holds the characters of a method or a header name (RFC 9110,
// section 5.6.2).
var tokenByte = func() (set [256]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		set[c] = true
	}
	return set
}()

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenByte[c] {
			return false
		}
	}
	return len(b) > 0
}

// isFieldValue refuses control characters other than the tab: some parsers end a line at
// them.
func isFieldValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// trimBlanks cuts spaces and tabs from both ends. Unlike bytes.Trim it never returns nil: a
// header without a value is still present.
func trimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func lowerInPlace(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
}

// equalFold compares ASCII letters in either case. Unicode letters that fold to ASCII are
// not equal to them.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		d := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if 'A' <= d && d <= 'Z' {
			d |= 0x20
		}
		if c != d {
			return false
		}
	}
	return true
}
