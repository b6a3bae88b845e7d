package languageserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/develop/languageserver"
	"runner.example/internal/diag"
	"runner.example/schema/compiler"
)

// client is an editor: it speaks the protocol by itself.
type client struct {
	t   testing.TB
	dir string
	out io.WriteCloser

	mu      sync.Mutex
	next    int
	answers map[int]chan message
	// published are the last diagnostics of each file; arrived tells of new ones.
	published map[string][]diagnostic
	arrived   chan struct{}
	// chosen answers questions to the user; asked are the questions.
	chosen string
	asked  []string
	// logged are the lines of the server's log.
	logged  []string
	version int
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type diagnostic struct {
	Range    span   `json:"range"`
	Severity int    `json:"severity"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
}

type edit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

// delay is that of the check: short, unless the times of answers are measured.
var delay = 10 * time.Millisecond

// start writes the files into an app directory and connects an editor. encoding is the one that the editor
// offers, "" for none.
func start(t testing.TB, encoding string, files map[string]string) *client {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	toServer, write := io.Pipe()
	read, fromServer := io.Pipe()
	c := &client{
		t: t, dir: dir, out: write, answers: map[int]chan message{}, published: map[string][]diagnostic{},
		arrived: make(chan struct{}, 1000),
	}
	done := make(chan error, 1)
	go func() {
		done <- languageserver.Serve(context.Background(), toServer, fromServer, languageserver.Options{
			Version: "1.0", Delay: delay, Check: check,
			HasRows: func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "data")); return err == nil },
			Log:     c.log,
		})
	}()
	go c.read(read)
	t.Cleanup(func() {
		c.request("shutdown", nil)
		c.notify("exit", nil)
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = write.Close()
		_ = fromServer.Close()
		if len(c.logged) > 0 {
			t.Errorf("logged: %s", strings.Join(c.logged, "\n"))
		}
	})
	general := map[string]any{}
	if encoding != "" {
		general["positionEncodings"] = []string{encoding}
	}
	c.request("initialize", map[string]any{
		"processId": nil, "rootUri": c.uri(""), "capabilities": map[string]any{
			"general":   general,
			"workspace": map[string]any{"workspaceEdit": map[string]any{"documentChanges": true, "resourceOperations": []string{"create"}}},
		},
	})
	c.notify("initialized", map[string]any{})
	return c
}

// check is what `runner check` does, without a configuration.
func check(dir string, sources []diag.Source) diag.List {
	_, found := compiler.Compile(sources, compiler.Options{Dir: dir, Unset: compiler.Assumed})
	return found
}

func (c *client) log(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logged = append(c.logged, line)
}

func (c *client) uri(name string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(c.dir, name))}).String()
}

// name is the path of a URI in the app directory.
func (c *client) name(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		c.t.Fatal(err)
	}
	rel, err := filepath.Rel(c.dir, filepath.FromSlash(u.Path))
	if err != nil {
		c.t.Fatal(err)
	}
	return filepath.ToSlash(rel)
}

func (c *client) send(v map[string]any) {
	v["jsonrpc"] = "2.0"
	body, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	_, _ = fmt.Fprintf(c.out, "Content-Length: %d\r\n\r\n%s", len(body), body) // the server may have ended
}

func (c *client) notify(method string, params any) {
	m := map[string]any{"method": method}
	if params != nil {
		m["params"] = params
	}
	c.send(m)
}

// answer sends a request and returns its answer.
func (c *client) answer(method string, params any) message {
	c.t.Helper()
	c.mu.Lock()
	c.next++
	id, got := c.next, make(chan message, 1)
	c.answers[id] = got
	c.mu.Unlock()
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	c.send(m)
	select {
	case a := <-got:
		return a
	case <-time.After(30 * time.Second):
		c.t.Fatalf("%s: no answer in 30s", method)
		panic("unreachable")
	}
}

// request sends a request that must succeed.
func (c *client) request(method string, params any) json.RawMessage {
	c.t.Helper()
	a := c.answer(method, params)
	if a.Error != nil {
		c.t.Fatalf("%s: %s", method, a.Error.Message)
	}
	return a.Result
}

// read takes what the server sends.
func (c *client) read(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		header, err := textproto.NewReader(in).ReadMIMEHeader()
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(header.Get("Content-Length"))
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			c.log("the server sends " + string(body))
			continue
		}
		c.take(m)
	}
}

func (c *client) take(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case "":
		id, _ := strconv.Atoi(string(m.ID))
		if got := c.answers[id]; got != nil {
			got <- m
			delete(c.answers, id)
		}
	case "textDocument/publishDiagnostics":
		var p struct {
			URI         string       `json:"uri"`
			Diagnostics []diagnostic `json:"diagnostics"`
		}
		_ = json.Unmarshal(m.Params, &p)
		c.published[c.name(p.URI)] = p.Diagnostics
		select {
		case c.arrived <- struct{}{}:
		default:
		}
	case "window/showMessageRequest":
		var p struct{ Message string }
		_ = json.Unmarshal(m.Params, &p)
		c.asked = append(c.asked, p.Message)
		var result any
		if c.chosen != "" {
			result = map[string]string{"title": c.chosen}
		}
		go c.send(map[string]any{"id": m.ID, "result": result})
	}
}

// open opens a file with a text.
func (c *client) open(name, text string) {
	c.version++
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": c.uri(name), "languageId": "runner", "version": c.version, "text": text,
	}})
}

// change replaces the text of an open file.
func (c *client) change(name, text string) { c.edit(name, map[string]any{"text": text}) }

func (c *client) edit(name string, changes ...map[string]any) {
	c.version++
	c.notify("textDocument/didChange", map[string]any{
		"textDocument": map[string]any{"uri": c.uri(name), "version": c.version}, "contentChanges": changes,
	})
}

// at returns the parameters of a request about the place of the mark ¦ in text, which is the text of the open file
// with the mark.
func (c *client) at(name, text string) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}, "position": markAt(c.t, text)}
}

func markAt(t testing.TB, text string) position {
	t.Helper()
	before, _, ok := strings.Cut(text, "¦")
	if !ok {
		t.Fatal("no mark in the text")
	}
	line := strings.Count(before, "\n")
	last := before[strings.LastIndexByte(before, '\n')+1:]
	return position{line, utf16Len(last)}
}

func utf16Len(s string) (n int) {
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

func unmarked(text string) string { return strings.ReplaceAll(text, "¦", "") }

// diagnostics waits until the diagnostics of all files satisfy done.
func (c *client) diagnostics(done func(map[string][]diagnostic) bool) map[string][]diagnostic {
	c.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		c.mu.Lock()
		ok := done(c.published)
		c.mu.Unlock()
		if ok {
			return c.published
		}
		select {
		case <-c.arrived:
		case <-limit:
			c.t.Fatalf("the diagnostics do not arrive; the last are %v", c.published)
		}
	}
}

// applied returns a text after edits, whose positions count UTF-16.
func applied(t testing.TB, text string, edits []edit) string {
	t.Helper()
	offset := func(p position) int {
		lines := strings.SplitAfter(text, "\n")
		at := len(strings.Join(lines[:min(p.Line, len(lines))], ""))
		for units := 0; units < p.Character && at < len(text); {
			r := []rune(text[at:])[0]
			units += utf16Len(string(r))
			at += len(string(r))
		}
		return at
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return offset(b.Range.Start) - offset(a.Range.Start) })
	for _, e := range edits {
		text = text[:offset(e.Range.Start)] + e.NewText + text[offset(e.Range.End):]
	}
	return text
}

func decoded[T any](t testing.TB, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}
