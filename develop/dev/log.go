package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"runner.example/develop/toolchain/python"
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/telemetry"
)

// devEvent is one line of `runner dev --json`.
type devEvent struct {
	Time string `json:"time"`
	// Event is listening, building, built, removed, serving, settings, mistakes, failed,
	// tests, request, which may be the run of a job, or log.
	Event string `json:"event"`

	URL     string   `json:"url,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Module  string   `json:"module,omitempty"`
	Bytes   int      `json:"bytes,omitempty"`
	Routes  int      `json:"routes,omitempty"`
	Message string   `json:"message,omitempty"`
	// List has at most 100 diagnostics, Total is the number of all.
	List    []diag.Diagnostic `json:"list,omitempty"`
	Hint    string            `json:"hint,omitempty"`
	Total   int               `json:"total,omitempty"`
	Level   string            `json:"level,omitempty"`
	Seconds float64           `json:"seconds,omitempty"`
	Request *devAnswer        `json:"request,omitempty"`
}

// devAnswer is a request and its log lines.
type devAnswer struct {
	RequestID string          `json:"requestId"`
	Method    string          `json:"method"`
	Path      string          `json:"path"`
	Route     string          `json:"route,omitempty"`
	Status    int             `json:"status,omitempty"` // 0: still being served
	KeyID     string          `json:"keyId,omitempty"`
	Code      string          `json:"code,omitempty"`
	Detail    string          `json:"detail,omitempty"`
	Errors    json.RawMessage `json:"errors,omitempty"`
	Log       []devLine       `json:"log,omitempty"`

	began time.Time
	took  time.Duration
	// refused: a log line of the runner has the reason.
	refused bool
	// Of the run of a job.
	JobID   string `json:"jobId,omitempty"`
	Job     string `json:"job,omitempty"`
	Attempt int64  `json:"attempt,omitempty"`
	Outcome string `json:"outcome,omitempty"` // done, retried, failed, lost or released
}

// devLine is a line of the handler, or of the runner about it.
type devLine struct {
	Level   string `json:"level"`
	Text    string `json:"text"`
	attempt int64
}

// slow is the time after which the log lines of a running request are printed.
const slow = 2 * time.Second

// devLog is the log of `runner dev`. Requests with their handlers' lines go to stdout,
// other lines to stderr; with --json everything goes to stdout. Both are redacted. Any
// goroutine may use it.
type devLog struct {
	opt Options
	out io.Writer
	dir string // the app directory, for source lines
	*devState
	given []slog.Attr
}

type devState struct {
	mu sync.Mutex
	// open are the running requests with log lines.
	open map[string]*devAnswer
	// starting: modules are being started. start has the lines that they write.
	starting bool
	start    []python.Line
}

func newDevLog(opt Options, dir string) *devLog {
	return &devLog{
		opt: opt, out: telemetry.NewRedactor(opt.Console.Stdout, opt.Secrets), dir: dir,
		devState: &devState{open: map[string]*devAnswer{}},
	}
}

// Enabled implements slog.Handler. Lines are selected by their source, not by their level.
func (l *devLog) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (l *devLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *l
	with.given = append(append([]slog.Attr{}, l.given...), attrs...)
	return &with
}

// WithGroup implements slog.Handler. Groups are ignored.
func (l *devLog) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
func (l *devLog) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]slog.Value{}
	for _, a := range l.given {
		attrs[a.Key] = a.Value
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "" && a.Value.Kind() == slog.KindGroup { // it is inlined
			for _, a := range a.Value.Group() {
				attrs[a.Key] = a.Value.Resolve()
			}
			return true
		}
		attrs[a.Key] = a.Value.Resolve()
		return true
	})
	text := func(name string) string {
		if v, ok := attrs[name]; ok {
			return v.String()
		}
		return ""
	}
	number := func(name string) int64 {
		if v, ok := attrs[name]; ok && v.Kind() == slog.KindInt64 {
			return v.Int64()
		}
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	level, id := strings.ToLower(r.Level.String()), text("requestId")
	switch {
	case r.Message == "request" && id != "":
		a := l.answer(id)
		delete(l.open, id)
		a.Method, a.Path, a.Route, a.KeyID = text("method"), text("path"), text("route"), text("keyId")
		a.Status, a.Code, a.Detail = int(number("status")), text("code"), text("detail")
		if wrong := text("errors"); wrong != "" {
			a.Errors = json.RawMessage(wrong)
		}
		if v, ok := attrs["took"]; ok && v.Kind() == slog.KindDuration {
			a.took = v.Duration()
		}
		return l.request(r.Time, a)
	case r.Message == "job run" && id != "":
		a := l.answer(id)
		delete(l.open, id)
		a.JobID, a.Job, a.Attempt, a.Outcome, a.Detail = text("jobId"), text("job"), number("attempt"),
			text("outcome"), text("cause")
		if v, ok := attrs["took"]; ok && v.Kind() == slog.KindDuration {
			a.took = v.Duration()
		}
		return l.request(r.Time, a)
	case id != "":
		line := devLine{Level: level, Text: r.Message, attempt: number("attempt")}
		if text("source") != "guest" {
			line.Text = messageOf(r.Message, attrs)
		}
		a := l.answer(id)
		a.Route, a.Log = cmp.Or(a.Route, text("route")), append(a.Log, line)
		a.refused = a.refused || r.Message == "request refused" || r.Message == "handler failed"
		return nil
	case text("source") == "guest" && l.starting:
		l.start = append(l.start, python.Line{Level: r.Level, Text: r.Message})
	case text("source") == "guest":
		return l.write(devEvent{Event: "log", Level: level, Message: r.Message}, "log: "+console.Harmless(r.Message))
	case r.Level >= slog.LevelWarn:
		message := messageOf(r.Message, attrs)
		kind := "warning: "
		if r.Level >= slog.LevelError {
			kind = "error: "
		}
		return l.write(devEvent{Event: "log", Level: level, Message: message}, kind+console.Harmless(message))
	}
	return nil
}

// holdStart collects the lines that modules write during their start, until heldStart returns them: how they are printed
// depends on whether the start succeeds.
func (l *devLog) holdStart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starting, l.start = true, nil
}

func (l *devLog) heldStart() []python.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starting = false
	return l.start
}

// frameMark begins each frame in the text of a failure.
const frameMark = "\n    at "

// messageOf returns a log message with its cause and other fields for people.
func messageOf(message string, attrs map[string]slog.Value) string {
	if kind, ok := attrs["kind"]; ok { // of a failure
		message = kind.String()
		if cause, ok := attrs["cause"]; ok {
			message += ": " + cause.String()
		}
		if frames, ok := attrs["frames"].Any().([]string); ok {
			message += frameMark + strings.Join(frames, frameMark)
		}
		return message
	}
	if cause, ok := attrs["cause"]; ok {
		if message == "request refused" {
			return cause.String()
		}
		message += ": " + cause.String()
	}
	if index, ok := attrs["add"]; ok {
		message += fmt.Sprintf(": a %s scanned %s rows of %s; add %s to it",
			attrs["operation"], attrs["rows"], attrs["entity"], index)
	}
	for _, name := range []string{"diagnostic", "text", "optimization", "instead"} {
		if v, ok := attrs[name]; ok {
			message += ": " + v.String()
		}
	}
	return message
}

func (l *devLog) answer(id string) *devAnswer {
	a := l.open[id]
	if a == nil {
		a = &devAnswer{RequestID: id, began: clock.Mark()}
		l.open[id] = a
	}
	return a
}

// printSlow prints the log lines of requests that run for longer than slow.
func (l *devLog) printSlow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, a := range l.open {
		if time.Since(a.began) > slow {
			delete(l.open, id)
			_ = l.request(clock.System(), a) // a closed terminal is ignored
		}
	}
}

// event logs an event of the app; text is its form for people, if not empty.
func (l *devLog) event(e devEvent, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.write(e, text) // a closed terminal is ignored
}

// tests writes the report of a run of tests.
func (l *devLog) tests(report string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opt.Console.JSON {
		_ = l.object(devEvent{Event: "tests", Message: report}) // a closed terminal is ignored
		return
	}
	_ = l.opt.Console.Print(report)
}

// write writes an event, or its text as a message.
func (l *devLog) write(e devEvent, text string) error {
	if l.opt.Console.JSON {
		return l.object(e)
	}
	if text != "" {
		kind, rest, _ := strings.Cut(text, ": ")
		switch kind {
		case "error", "warning", "log", "hint":
			l.opt.Console.Say(kind+": ", rest)
		default:
			l.opt.Console.Say("", text)
		}
	}
	return nil
}

func (l *devLog) object(e devEvent) error {
	if e.Time == "" {
		e.Time = timestamp(clock.System())
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	_, err := l.out.Write(line.Bytes())
	return err
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// request writes one request with its log lines.
func (l *devLog) request(at time.Time, a *devAnswer) error {
	if l.opt.Console.JSON {
		return l.object(devEvent{Time: timestamp(at), Event: "request", Seconds: a.took.Seconds(), Request: a})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", l.paint("2", at.Format("15:04:05")), l.headline(a))
	under := func(text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(&out, "  %s %s\n", l.paint("2", "│"), strings.TrimRight(line, "\n"))
		}
	}
	for i, line := range a.Log {
		if i > 0 && line.attempt > a.Log[i-1].attempt {
			under("run " + strconv.FormatInt(line.attempt, 10) + ": another request had changed what the previous run read")
		}
		under(l.line(line))
	}
	if a.Detail != "" && len(a.Log) == 0 {
		under(a.Detail)
	}
	if len(a.Errors) > 0 {
		under(console.Harmless(string(a.Errors)))
	}
	_, err := io.WriteString(l.out, out.String())
	return err
}

func (l *devLog) headline(a *devAnswer) string {
	if a.Job != "" {
		color := map[string]string{"done": "32", "failed": "1;31"}[a.Outcome]
		return fmt.Sprintf("JOB    %s attempt %d %s %s %s", a.Job, a.Attempt, l.paint(cmp.Or(color, "33"), a.Outcome),
			a.took.Round(10*time.Microsecond), l.paint("2", a.JobID))
	}
	if a.Status == 0 && a.refused { // refused before its path was known
		return "refused " + l.paint("2", a.RequestID)
	}
	if a.Status == 0 {
		return fmt.Sprintf("…      %s still running %s", a.Route, l.paint("2", a.RequestID))
	}
	color := "32"
	switch {
	case a.Status >= 500:
		color = "1;31"
	case a.Status >= 400:
		color = "33"
	case a.Status >= 300:
		color = "36"
	}
	code := ""
	if a.Code != "" {
		code = " " + a.Code
	}
	return fmt.Sprintf("%-6s %s %s%s %s %s",
		a.Method, console.Harmless(a.Path), l.paint(color, strconv.Itoa(a.Status)), code,
		a.took.Round(10*time.Microsecond), l.paint("2", a.RequestID))
}

// line returns one line of a handler; an error with the source line that it names.
func (l *devLog) line(line devLine) string {
	if line.Level == "error" {
		if text, ok := l.withSource(line.Text); ok {
			return text
		}
	}
	text := console.Harmless(strings.ReplaceAll(line.Text, `\n`, "\n"))
	switch line.Level {
	case "info":
		return text
	case "error":
		return l.paint("1;31", "error") + " " + text
	}
	return l.paint("33", line.Level) + " " + text
}

// tracePosition matches a position in a file of the app, as stack traces have it.
var tracePosition = regexp.MustCompile(`(handlers/[^\s():]+|[^\s():]+\.(?:ts|js)):(\d+):(\d+)`)

// withSource adds the source line that a stack trace begins with.
func (l *devLog) withSource(text string) (string, bool) {
	message, frames, framed := strings.Cut(text, frameMark)
	where := text
	if framed {
		where = frames // the message may have other positions, such as that of a cause
	}
	m := tracePosition.FindStringSubmatch(where)
	if m == nil || !filepath.IsLocal(m[1]) {
		return "", false
	}
	source, err := os.ReadFile(filepath.Join(l.dir, m[1]))
	if err != nil {
		return "", false
	}
	row, _ := strconv.Atoi(m[2])
	col, _ := strconv.Atoi(m[3])
	at := diag.Span{File: m[1], Start: diag.Pos{Line: row, Col: col}, End: diag.Pos{Line: row, Col: col + 1}}
	var list diag.List
	message, more, _ := strings.Cut(message, `\n`)
	list.Errorf("", at, "%s", message)
	var out strings.Builder
	show := diag.Print
	if l.opt.Console.ColorOut {
		show = diag.PrintColor
	}
	if show(&out, []diag.Source{{Name: m[1], Text: source}}, list.Excerpt()) != nil {
		return "", false
	}
	if more != "" {
		out.WriteString(console.Harmless(strings.ReplaceAll(more, `\n`, "\n")) + "\n")
	}
	if framed {
		out.WriteString(frameMark[1:] + console.Harmless(frames) + "\n")
	}
	return out.String(), true
}

// problems prints errors that prevent a new release.
func (l *devLog) problems(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hint := ""
	for _, one := range console.Parts(err) {
		if !l.opt.Console.JSON {
			_, h := l.opt.PrintError(one)
			hint = h
			continue
		}
		e := devEvent{Event: "failed", Message: console.TextOf(one)}
		if m, ok := errors.AsType[*console.Problems](one); ok {
			shown := m.Excerpt()
			e.Event, e.Message, e.List, e.Total = "mistakes", m.What, shown.Findings, shown.Total
		} else {
			e.Hint = console.HintOf(one)
		}
		_ = l.object(e) // a closed terminal is ignored
	}
	if hint != "" {
		l.opt.Console.Say("hint: ", hint)
	}
}

// warnings prints warnings.
func (l *devLog) warnings(sources []diag.Source, list diag.List) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := list.Excerpt()
	if l.opt.Console.JSON {
		_ = l.object(devEvent{Event: "mistakes", Message: console.Counted(list), List: shown.Findings, Total: shown.Total})
		return
	}
	_ = l.opt.Console.PrintDiagnostics(l.opt.Console.Stderr, sources, shown) // a closed terminal is ignored
}

func (l *devLog) paint(color, text string) string {
	if !l.opt.Console.ColorOut {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
