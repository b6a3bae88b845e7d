package hostabi

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// The limits of an answer beside its body.
const (
	maxHeaderLines  = 100
	maxHeaderBytes  = 16 << 10
	maxMessageBytes = 8 << 10
	maxCodeBytes    = 64
)

// largeBody is the longest body in the heap when a Call has Bodies.
const largeBody = 512 << 10

func responseHeader(c *Call, g guest) int32 {
	name, ok1 := g.bytes(0)
	value, ok2 := g.bytes(2)
	if !ok1 || !ok2 || c.Response.Status != 0 {
		return int32(abi.Invalid)
	}
	errno := c.addHeader(name, value)
	if errno == 0 {
		c.moved += len(name) + len(value)
	}
	return int32(errno)
}

// addHeader adds a copy of a header to the answer, if the handler may set it.
func (c *Call) addHeader(name, value []byte) abi.Errno {
	r := &c.Response
	switch {
	case len(name)+len(value) > maxHeaderBytes: // before they are read
		return abi.TooLarge
	case !utf8.Valid(name):
		return abi.Invalid
	case !headerAllowed(name, value) || c.isHosts(name, value):
		return abi.Denied
	case isSingle(name) && hasHeader(r.Headers, name):
		return abi.Invalid
	}
	if strings.EqualFold(string(name), "location") {
		value = encodeLocation(value)
	}
	if len(r.Headers) == maxHeaderLines || r.HeaderSize()+len(name)+len(value) > maxHeaderBytes {
		return abi.TooLarge
	}
	r.AddHeader(name, value)
	return 0
}

func responseSend(c *Call, g guest) int32 {
	body, ok := g.bytes(1)
	if !ok {
		return int32(abi.Invalid)
	}
	errno := c.send(g.number(0), body)
	if errno == 0 {
		c.moved += len(body)
	}
	return int32(errno)
}

// responseSendResult answers with the result of the last operation, or a part of it. It returns not_found if a query
// found no row. It returns invalid if the operation failed or its result has no such part, because the handler
// cannot have meant that as its answer.
func responseSendResult(c *Call, g guest) int32 {
	part := [2]int{0, len(c.result.JSON)}
	switch g.number(1) {
	case abi.PartAll:
	case abi.PartRows:
		part = c.result.Rows
	case abi.PartRow:
		part = c.result.Row
		if c.succeeded && part == [2]int{} && c.result.Rows != part {
			return int32(c.foundNone(g.number(0)))
		}
	default:
		return int32(abi.Invalid)
	}
	if !c.succeeded || part[0] == part[1] {
		return int32(abi.Invalid)
	}
	return int32(c.send(g.number(0), c.result.JSON[part[0]:part[1]]))
}

// foundNone returns the errno of an answer with the row of a query that found no row. Only the status 200 can be
// the answer of a look-up.
func (c *Call) foundNone(status int32) abi.Errno {
	if status != 200 {
		return abi.Invalid
	}
	if c.Tx != nil && c.Tx.Writes() && !c.keepsWrites {
		c.Host.Logger.LogAttrs(context.Background(), slog.LevelWarn, "writes discarded", c.Request.LogID(),
			slog.String("route", c.Request.Route), slog.String("cause", "the answer is the row of a query that found none: it is 404"))
	}
	return abi.NotFound
}

// send makes a copy of body the body of the answer, which is JSON if its headers do not say otherwise.
func (c *Call) send(status int32, body []byte) abi.Errno {
	if errno := c.setBody(status, body); errno != 0 {
		return errno
	}
	if len(body) > 0 && !hasHeader(c.Response.Headers, []byte("content-type")) {
		c.Response.AddHeader([]byte("content-type"), []byte("application/json"))
	}
	return 0
}

// setBody makes a copy of body the body of the answer, whose headers are there.
func (c *Call) setBody(status int32, body []byte) abi.Errno {
	r := &c.Response
	switch {
	case r.Status != 0 || status < 200 || status > 599:
		return abi.Invalid
	case len(body) > 0 && bodiless(status):
		return abi.Invalid
	case len(body) > c.limits.ResponseBytes:
		return abi.TooLarge
	}
	room := r.Body
	if len(body) > largeBody && c.Bodies != nil {
		if room = c.Bodies.BodyMemory(len(body)); room == nil {
			c.overloaded = true
			return abi.Unavailable
		}
	}
	r.Body = append(room[:0], body...)
	r.Status = int(status)
	return 0
}

// bodiless reports whether an answer of that status has no body (RFC 9110,
// sections 15.3.5, 15.3.6 and 15.4.5).
func bodiless(status int32) bool { return status == 204 || status == 205 || status == 304 }

func responseError(c *Call, g guest) int32 {
	status := g.number(0)
	code, ok1 := g.bytes(1)
	message, ok2 := g.bytes(3)
	r := &c.Response
	if c.collecting { // nothing was sent
		r.Status, r.Body, c.collecting = 0, r.Body[:0], false
	}
	switch {
	case !ok1 || !ok2 || r.Status != 0 && !c.streaming || status < 400 || status > 599:
		return int32(abi.Invalid)
	case len(message) > maxMessageBytes: // before it is read
		return int32(abi.TooLarge)
	case len(code) > maxCodeBytes:
		return int32(abi.Invalid)
	case !codeValid(code) || !utf8.Valid(message):
		return int32(abi.Invalid)
	}
	c.moved += len(code) + len(message)
	failed := string(code) == string(fault.HandlerFailed) // then its headers belong to an answer that was not sent
	r.Headers = slices.DeleteFunc(r.Headers, func(h abi.Pair) bool {
		return failed || strings.EqualFold(string(h.Name), "content-type")
	})
	if c.streaming {
		c.breakOff(status, code, message)
		return 0
	}
	if c.answerUncaught(status, code, message) {
		return 0
	}
	r.Code, r.Detail = string(code), string(message)
	if r.Code == "" {
		r.Code = string(fault.OfStatus(int(status)))
	}
	r.Status = int(status)
	return 0
}

// codeValid reports whether code, which is short, is empty or snake_case.
func codeValid(code []byte) bool {
	for i, b := range code {
		letter := 'a' <= b && b <= 'z'
		if !letter && (i == 0 || b != '_' && (b < '0' || b > '9')) {
			return false
		}
	}
	return true
}

func keepWrites(c *Call, _ guest) int32 {
	c.keepsWrites = true
	return 0
}

// hostHeaders are set only by the host: they frame the message, or describe the server and
// the caller's rate limit.
var hostHeaders = map[string]bool{
	"connection": true, "transfer-encoding": true, "content-length": true, "date": true, "server": true,
	"trailer": true, "upgrade": true, "te": true, "keep-alive": true, "x-request-id": true,
}

// isHosts reports whether only the host may set the header on this answer.
func (c *Call) isHosts(name, value []byte) bool {
	lower := strings.ToLower(string(name))
	switch {
	case hostHeaders[lower], strings.HasPrefix(lower, "proxy-"), strings.HasPrefix(lower, "ratelimit"):
		return true
	case lower == "www-authenticate":
		return !c.OwnChallenge
	case strings.HasPrefix(lower, "access-control-"):
		return c.HostCORS
	case lower == "set-cookie" && c.Host.Schema != nil && c.Host.Schema.Auth.Cookie != nil:
		return setsCookie(value, c.Host.Schema.Auth.Cookie.Name)
	}
	return false
}

// setsCookie reports whether some browser sends a cookie of that name after this value of
// Set-Cookie. Some send one without a name, "=name=x", as "name=x".
func setsCookie(value []byte, name string) bool {
	pair, _, _ := bytes.Cut(value, []byte{';'})
	first, _, _ := bytes.Cut(bytes.TrimLeft(pair, " \t="), []byte{'='})
	return strings.EqualFold(string(bytes.TrimSpace(first)), name)
}

// headerAllowed reports whether the name is a token and the value is printable text (RFC
// 9110, sections 5.1 and 5.5).
func headerAllowed(name, value []byte) bool {
	lower := strings.ToLower(string(name))
	switch {
	case len(name) == 0 || !all(name, isTokenByte):
		return false
	case !all(value, isValueByte) || len(bytes.Trim(value, " \t")) != len(value):
		return false
	case lower == "location":
		return locationAllowed(string(value))
	}
	return true
}

func all(b []byte, in func(byte) bool) bool {
	for _, c := range b {
		if !in(c) {
			return false
		}
	}
	return true
}

func isTokenByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
}

func isValueByte(b byte) bool { return b == '\t' || b >= ' ' && b != 0x7f }

// isSingle reports whether an answer may have only one header of that name.
func isSingle(name []byte) bool {
	return strings.EqualFold(string(name), "content-type") || strings.EqualFold(string(name), "location")
}

func hasHeader(headers []abi.Pair, name []byte) bool {
	return slices.ContainsFunc(headers, func(h abi.Pair) bool { return bytes.EqualFold(h.Name, name) })
}
