package front

import (
	"bytes"
	"fmt"
	"net/http"
	"os"

	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/system/socket"
	"runner.example/runtime/content"
)

const (
	// copyBytes is the size of the buffer for content that the kernel does not send.
	copyBytes = 64 << 10
	// copiedBytes is the largest body that is copied behind its header: fasthttp would need two writes for a larger one, and
	// two packets cost more than all else that a small answer needs.
	copiedBytes = 2 << 10
	// progressBytes is how many bytes of content a client must take within each write timeout.
	progressBytes = 64 << 10
)

// contentBody is the body of an answer that is read from a source while it is sent.
type contentBody struct {
	source content.Source
	file   *os.File // the file of source, if the kernel sends it; nil: source is read
	parts  []content.Part
	length int64 // of all parts
}

// SendContent sends c as the body of r, which has no body and no code. For a GET or HEAD, and with the status 200, the
// conditions and ranges of the request apply. Headers of r that describe the content are replaced. If neither r nor the
// exchange decides about caching, the answer has Cache-Control: no-cache.
//
// If the content cannot be opened, SendContent returns the error, and the exchange has no answer yet. Otherwise it returns
// nil, and the content is sent after handle has returned. Each 64 KiB must then be taken within WriteTimeout; the whole
// content may take any time. An answer uses at most 64 KiB of MaxAnswerMemory, and nothing if the kernel sends the file.
func (x *Exchange) SendContent(r *abi.Response, c *content.Content) error {
	a := x.contentAnswer(r.Status, c)
	var small []byte
	var body *contentBody
	if a.Length > 0 && !x.framing.headOnly {
		var err error
		if small, body, err = x.openContent(c, &a); err != nil {
			return err
		}
	}
	switch a.Status {
	case http.StatusPreconditionFailed:
		x.sendContentError(r, fault.PreconditionFailed)
	case http.StatusRequestedRangeNotSatisfiable:
		x.AddHeader("Content-Range", []byte(a.Range))
		x.sendContentError(r, fault.RangeNotSatisfiable)
	default:
		x.sendContent(r, c, &a, small, body)
	}
	return nil
}

// contentAnswer evaluates the conditions and the ranges of the request.
func (x *Exchange) contentAnswer(status int, c *content.Content) content.Answer {
	method := string(x.Request.Method)
	if status != http.StatusOK || method != "GET" && method != "HEAD" {
		whole := c.Answer(&content.Request{})
		whole.Status = status
		return whole
	}
	r := content.Request{HeadOnly: method == "HEAD"}
	for _, l := range x.headers.lines {
		switch string(l.Name) {
		case "if-match":
			r.IfMatch = joinList(r.IfMatch, l.Value)
		case "if-none-match":
			r.IfNoneMatch = joinList(r.IfNoneMatch, l.Value)
		case "if-modified-since":
			r.IfModifiedSince = l.Value
		case "if-unmodified-since":
			r.IfUnmodifiedSince = l.Value
		case "if-range":
			r.IfRange = l.Value
		case "range":
			r.Range = joinList(r.Range, l.Value) // two lines join to an invalid header
		}
	}
	return c.Answer(&r)
}

// joinList adds another line of a header that is a list.
func joinList(list, line []byte) []byte {
	if list == nil {
		return line
	}
	return bytes.Join([][]byte{list, line}, []byte(", "))
}

// openContent opens the bytes. It returns the whole of a small body, which is not copied if it is one part of content in
// memory; for a large one it allocates the buffer.
func (x *Exchange) openContent(c *content.Content, a *content.Answer) (small []byte, body *contentBody, err error) {
	source, err := c.Open()
	if err != nil {
		return nil, nil, err
	}
	direct := x.conn.direct()
	if memory, ok := source.(*content.Memory); ok && len(a.Parts) == 1 && (a.Length <= keptBodyBytes || direct != nil && a.Length <= progressBytes) {
		if p := a.Parts[0]; p.From+p.Size <= int64(len(memory.Bytes)) {
			return memory.Bytes[p.From:][:p.Size], nil, nil
		}
	}
	if a.Length <= keptBodyBytes {
		small, err = readParts(source, a)
		_ = source.Close() // only read
		return small, nil, err
	}
	body = &contentBody{source: source, parts: a.Parts, length: a.Length}
	switch f := source.(type) {
	case *os.File:
		body.file = f
	case interface{ File() *os.File }:
		body.file = f.File()
	}
	if direct == nil {
		body.file = nil
	}
	if body.file == nil && x.BodyMemory(int(min(copyBytes, a.Length))) == nil {
		_ = source.Close()
		return nil, nil, fault.New(fault.Overloaded, "")
	}
	return nil, body, nil
}

// readParts returns the whole body.
func readParts(source content.Source, a *content.Answer) ([]byte, error) {
	b := make([]byte, 0, a.Length)
	for _, p := range a.Parts {
		b = append(b, p.Head...)
		start := len(b)
		b = b[:start+int(p.Size)]
		if n, err := source.ReadAt(b[start:], p.From); int64(n) < p.Size {
			return nil, fmt.Errorf("read %d bytes of content at %d: %w", p.Size, p.From, err)
		}
	}
	return b, nil
}

// sendContentError sends a problem with the headers of r, and forbids to cache it: from a cache, it would also answer
// requests without the condition.
func (x *Exchange) sendContentError(r *abi.Response, code fault.Code) {
	x.NoStore = true
	outcome, _ := fault.OutcomeOf(code)
	problem := *r
	problem.Status, problem.Code = outcome.HTTP, string(code)
	x.Send(&problem)
}

// sendContent begins the answer a. Its body is small or body; without both, no bytes follow the header.
func (x *Exchange) sendContent(r *abi.Response, c *content.Content, a *content.Answer, small []byte, body *contentBody) {
	whole := *r
	whole.Status = a.Status
	h := x.head(&whole)
	for _, name := range [...]string{"Content-Encoding", "Content-Range", "ETag", "Last-Modified"} {
		h.Del(name)
	}
	unchanged := a.Status == http.StatusNotModified
	h.SetContentType(a.Type)
	if c.Encoding != "" && !unchanged {
		h.Set("Content-Encoding", c.Encoding)
	}
	if c.ETag != "" {
		h.Set("ETag", c.ETag)
	}
	if date := c.LastModified(); date != "" && !(unchanged && c.ETag != "") {
		h.Set("Last-Modified", date)
	}
	if a.Range != "" {
		h.Set("Content-Range", a.Range)
	}
	if r.Status == http.StatusOK && !unchanged {
		h.Set("Accept-Ranges", "bytes")
	}
	if len(h.PeekBytes(cacheControl)) == 0 {
		h.SetCanonical(cacheControl, valueNoCache)
	}
	answer := &x.ctx.Response
	switch {
	case len(small) > copiedBytes && x.conn.direct() != nil:
		x.conn.sendBody(x, small)
	case len(small) > 0:
		answer.SetBodyRaw(small)
	case body == nil && a.Length > 0: // HEAD
		answer.SetBodyStream((*answerBody)(x.conn), int(a.Length))
	case body != nil:
		c := x.conn
		answer.SetBodyStream((*answerBody)(c), int(a.Length)) // which closes the previous one
		c.answer = largeAnswer{content: body, address: c.unsentAddress(x), backlog: x.srv.backlog}
		c.answer.memory, x.memory = x.memory, nil
	}
}

// sendFile has the kernel send the content.
func (c *conn) sendFile(direct *socket.Writer) error {
	err := c.writeParts(func(head []byte, more bool) (int, error) {
		if more {
			return direct.WriteMore(head)
		}
		return direct.Write(head, nil, true)
	}, func(from, size int64) (int64, error) {
		return direct.SendFile(c.answer.content.file, from, size)
	})
	if err != nil {
		c.reset() // otherwise the kernel would keep unsent bytes for minutes
	}
	return err
}

// copyContent reads the content into its buffer and sends it.
func (c *conn) copyContent() error {
	a := &c.answer
	return c.writeParts(func(head []byte, _ bool) (int, error) {
		return c.send(head)
	}, func(from, size int64) (int64, error) {
		b := a.memory[:min(int64(len(a.memory)), size)]
		if n, err := a.content.source.ReadAt(b, from); n < len(b) {
			return 0, fmt.Errorf("read content: %w", err)
		}
		n, err := c.send(b)
		return int64(n), err
	})
}

// writeParts writes the header and the parts of the answer. The write timeout begins again each time the client has taken
// progressBytes.
func (c *conn) writeParts(write func(head []byte, more bool) (int, error), send func(from, size int64) (int64, error)) error {
	a := &c.answer
	left := int64(progressBytes)
	progress := func(n int64, err error) error {
		if left -= n; err != nil || left > 0 {
			return err
		}
		left = progressBytes
		if err := c.SetWriteDeadline(clock.In(c.gate.srv.opt.WriteTimeout)); err != nil {
			return err
		}
		return c.applyWriteDeadline()
	}
	text := func(b []byte, more bool) error {
		for len(b) > 0 {
			n, err := write(b, more)
			b = b[n:]
			if err := progress(int64(n), err); err != nil {
				return err
			}
		}
		return nil
	}
	if err := text(a.head, true); err != nil {
		return err
	}
	for _, p := range a.content.parts {
		if err := text(p.Head, p.Size > 0); err != nil {
			return err
		}
		for from, end := p.From, p.From+p.Size; from < end; {
			n, err := send(from, end-from)
			from += n
			if err := progress(n, err); err != nil {
				return err
			}
		}
	}
	return nil
}
