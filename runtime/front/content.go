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
	// copyBytes is the size of the buffer of a content that is not sent by the kernel.
	copyBytes = 64 << 10
	// copiedBytes is the largest body that is copied behind its head: fasthttp would need two writes for a larger one, and
	// two packets cost more than all else that a small answer needs.
	copiedBytes = 2 << 10
	// progressBytes is how much of a content a client must take within each write timeout.
	progressBytes = 64 << 10
)

// sentContent is the body of an answer that is read while it is written.
type sentContent struct {
	source content.Source
	file   *os.File // of source, if the kernel writes it to the connection; nil: it is read
	parts  []content.Part
	length int64 // of all parts
}

// SendContent sends the bytes of c as the body of r, or those that the request asks for, if the status of r is 200 and the
// request is a GET or HEAD: then its conditions and ranges apply. r has no body and no code; of its headers, those that
// describe the content are replaced. An answer of an unnamed age is not kept without revalidation: it gets Cache-Control:
// no-cache unless r or the exchange says otherwise.
//
// If the content cannot be opened, SendContent returns the error, and the exchange has no answer yet. Otherwise it returns
// nil, and the content is sent after handle has returned. WriteTimeout then limits the time in which the client takes each
// 64 KiB, however long the whole content takes. A client that does not holds no memory of MaxAnswerMemory beyond a buffer
// of 64 KiB, and no buffer at all where the kernel sends the file.
func (x *Exchange) SendContent(r *abi.Response, c *content.Content) error {
	a := x.contentAnswer(r.Status, c)
	var body []byte
	var sent *sentContent
	if a.Length > 0 && !x.framing.headOnly {
		var err error
		if body, sent, err = x.openContent(c, &a); err != nil {
			return err
		}
	}
	switch a.Status {
	case http.StatusPreconditionFailed:
		x.refuseContent(r, fault.PreconditionFailed)
	case http.StatusRequestedRangeNotSatisfiable:
		x.AddHeader("Content-Range", []byte(a.Range))
		x.refuseContent(r, fault.RangeNotSatisfiable)
	default:
		x.sendContent(r, c, &a, body, sent)
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
			r.Range = joinList(r.Range, l.Value) // two lines are not valid
		}
	}
	return c.Answer(&r)
}

// joinList returns the list with another line of it.
func joinList(list, line []byte) []byte {
	if list == nil {
		return line
	}
	return bytes.Join([][]byte{list, line}, []byte(", "))
}

// openContent opens the bytes. It returns the body of an answer that is small; of others it takes the buffer that they need.
// One part of a content in memory is not copied.
func (x *Exchange) openContent(c *content.Content, a *content.Answer) (body []byte, sent *sentContent, err error) {
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
		body, err = readParts(source, a)
		_ = source.Close() // it was only read
		return body, nil, err
	}
	s := &sentContent{source: source, parts: a.Parts, length: a.Length}
	switch f := source.(type) {
	case *os.File:
		s.file = f
	case interface{ File() *os.File }:
		s.file = f.File()
	}
	if direct == nil {
		s.file = nil
	}
	if s.file == nil && x.BodyMemory(int(min(copyBytes, a.Length))) == nil {
		_ = source.Close()
		return nil, nil, fault.New(fault.Overloaded, "")
	}
	return nil, s, nil
}

// readParts returns all bytes of the answer.
func readParts(source content.Source, a *content.Answer) ([]byte, error) {
	b := make([]byte, 0, a.Length)
	for _, p := range a.Parts {
		b = append(b, p.Head...)
		start := len(b)
		b = b[:start+int(p.Size)]
		if n, err := source.ReadAt(b[start:], p.From); int64(n) < p.Size {
			return nil, fmt.Errorf("read %d bytes of a content at %d: %w", p.Size, p.From, err)
		}
	}
	return b, nil
}

// refuseContent sends a problem with the headers of r. No cache may keep it, whatever r says of the content: one that did
// would answer others with it, who ask for the content without a condition.
func (x *Exchange) refuseContent(r *abi.Response, code fault.Code) {
	x.NoStore = true
	outcome, _ := fault.OutcomeOf(code)
	problem := *r
	problem.Status, problem.Code = outcome.HTTP, string(code)
	x.Send(&problem)
}

// sendContent begins the answer a with the bytes of body or sent. Without both, none follow the head.
func (x *Exchange) sendContent(r *abi.Response, c *content.Content, a *content.Answer, body []byte, sent *sentContent) {
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
	case len(body) > copiedBytes && x.conn.direct() != nil:
		x.conn.sendBody(x, body)
	case len(body) > 0:
		answer.SetBodyRaw(body)
	case sent == nil && a.Length > 0: // HEAD
		answer.SetBodyStream((*answerBody)(x.conn), int(a.Length))
	case sent != nil:
		c := x.conn
		answer.SetBodyStream((*answerBody)(c), int(a.Length)) // which closes the previous one
		c.answer = largeAnswer{content: sent, address: c.unsentAddress(x), backlog: x.srv.backlog}
		c.answer.memory, x.memory = x.memory, nil
	}
}

// sendFile lets the kernel write the content.
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
		c.reset() // otherwise the kernel would keep for minutes what it still has
	}
	return err
}

// copyContent writes the content by its buffer.
func (c *conn) copyContent() error {
	a := &c.answer
	return c.writeParts(func(head []byte, _ bool) (int, error) {
		return c.send(head)
	}, func(from, size int64) (int64, error) {
		b := a.memory[:min(int64(len(a.memory)), size)]
		if n, err := a.content.source.ReadAt(b, from); n < len(b) {
			return 0, fmt.Errorf("read a content: %w", err)
		}
		n, err := c.send(b)
		return int64(n), err
	})
}

// writeParts writes the head and the parts of the answer. Each time that the client has taken progressBytes, the write
// timeout begins again.
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
