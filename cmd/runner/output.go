package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/jedib0t/go-pretty/v6/table"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/store"
)

// The exit statuses; the help text lists them.
const (
	statusFailed      = 1
	statusMisused     = 2
	statusInvalid     = 3
	statusNotFound    = 4
	statusState       = 5
	statusUnreachable = 6
	statusInterrupted = 130
)

// failure is an error that says with which status the program ends and what
// to type next.
type failure struct {
	status int
	err    error
	hint   string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func misused(format string, args ...any) *failure {
	return &failure{status: statusMisused, err: fmt.Errorf(format, args...)}
}

func invalid(format string, args ...any) *failure {
	return &failure{status: statusInvalid, err: fmt.Errorf(format, args...)}
}

// mistakes is the error of a text with mistakes in it.
type mistakes struct {
	// what is told behind them: "the schema has 2 errors".
	what    string
	sources []diag.Source
	list    diag.List
}

func (m *mistakes) Error() string { return m.what }

// report writes err for people and gives the exit status that belongs to it.
func (c *cli) report(err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) && !isFailure(err) {
		return 0 // who reads only the first lines has what they wanted
	}
	status, hint := statusFailed, ""
	for _, one := range parts(err) {
		s, h := c.tell(one)
		if status == statusFailed {
			status = s
		}
		hint = cmp.Or(hint, h)
	}
	if hint != "" {
		c.say("hint: ", hint)
	}
	return status
}

// tell writes one error and gives its exit status and what to do about it.
func (c *cli) tell(err error) (status int, hint string) {
	if m, ok := errors.AsType[*mistakes](err); ok {
		c.printDiagnostics(c.stderr, m.sources, m.list)
		c.say("error: ", m.what)
		return statusInvalid, ""
	}
	c.say("error: ", textOf(err))
	status = statusFailed
	if errors.Is(err, store.ErrDamaged) {
		return statusInvalid, "keep the data folder as it is, and restore a backup into a new one; `runner store salvage` writes out what can be read"
	}
	if f, ok := errors.AsType[*failure](err); ok {
		status, hint = f.status, f.hint
	} else if f, ok := errors.AsType[*fault.Fault](err); ok {
		status, hint = statusOf(f.Code), hintOf(f.Code)
	}
	if hint == "" && errors.Is(err, fs.ErrPermission) {
		hint = "run the command as the user that the file or folder belongs to, or change its mode"
	}
	return status, hint
}

// parts are the errors that were joined to err, each for a line of its own.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, parts(one)...)
	}
	return all
}

// textOf is what people are told. A fault that says enough keeps its cause to
// itself: the server, which tells no cause over the socket, answers in the same
// words.
func textOf(err error) string {
	if f, ok := err.(*fault.Fault); ok && f.Detail != "" {
		return f.Detail
	}
	return err.Error()
}

func isFailure(err error) bool {
	_, ok := errors.AsType[*failure](err)
	return ok
}

// statusOf is the table of fault codes and exit statuses.
func statusOf(code fault.Code) int {
	switch code {
	case fault.Invalid, fault.InvalidJSON, fault.TooLarge, fault.Limit:
		return statusInvalid
	case fault.NotFound:
		return statusNotFound
	case fault.Conflict:
		return statusState
	case fault.Unavailable:
		return statusUnreachable
	}
	return statusFailed
}

// hintOf is what to type next where the code alone tells.
func hintOf(code fault.Code) string {
	if code == fault.NotFound {
		return "runner api-keys list --all shows every key"
	}
	return ""
}

// say writes one line about the program itself to stderr.
func (c *cli) say(kind, text string) {
	if c.color && kind == "error: " {
		kind = "\x1b[1;31merror:\x1b[0m "
	}
	fmt.Fprintf(c.stderr, "runner: %s%s\n", kind, strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "))
}

func (c *cli) printDiagnostics(w io.Writer, sources []diag.Source, list diag.List) error {
	if c.color && w == c.stderr {
		return diag.PrintColor(w, sources, list)
	}
	return diag.Print(w, sources, list)
}

// printJSON writes v as the one document of a --json answer.
func (c *cli) printJSON(v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	return c.print(out.String())
}

// print writes the answer in one piece.
func (c *cli) print(text string) error {
	_, err := io.WriteString(c.stdout, text)
	return err
}

// printTable writes aligned columns under a heading; with no rows it writes
// nothing to stdout and says so on stderr.
func (c *cli) printTable(heading []string, rows [][]string, none string) error {
	if len(rows) == 0 {
		c.say("", none)
		return nil
	}
	w := table.NewWriter()
	w.SetStyle(table.Style{Name: "plain", Box: table.BoxStyle{PaddingRight: "  "}})
	w.AppendHeader(cells(heading))
	for _, row := range rows {
		w.AppendRow(cells(row))
	}
	return c.print(trimLines(w.Render()))
}

func cells(words []string) table.Row {
	row := make(table.Row, len(words))
	for i, word := range words {
		row[i] = word
	}
	return row
}

// trimLines cuts the padding of the last column.
func trimLines(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s + "\n") {
		out.WriteString(strings.TrimRight(line, " \n"))
		out.WriteByte('\n')
	}
	return out.String()
}

// pairs writes names and values in two columns.
func pairs(rows [][2]string) string {
	width := 0
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	var out strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&out, "%-*s  %s\n", width, row[0], row[1])
	}
	return out.String()
}
