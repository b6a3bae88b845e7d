package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"runner.example/admin"
	"runner.example/internal/console"
)

// The formats of rows in files.
const (
	formatLines = "jsonl" // a JSON object on each line
	formatCSV   = "csv"   // RFC 4180, the first line names the fields
)

// formatOf gives the format that was asked for, else the one that a file's name
// tells, else JSON lines.
func formatOf(asked, path string) (string, error) {
	switch asked {
	case formatLines, formatCSV:
		return asked, nil
	case "":
	default:
		return "", console.Invalid("--format %s: want %s or %s", asked, formatLines, formatCSV)
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		return formatCSV, nil
	case ".jsonl", ".ndjson", ".json", "":
		return formatLines, nil
	default:
		return "", console.Invalid("%s: cannot tell its format from %q: say --format %s or %s", path, ext, formatLines, formatCSV)
	}
}

// members gives the names and values of a JSON object in their order.
func members(object json.RawMessage) (names []string, values []json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, nil, errors.Join(err, errors.New("it is no JSON object"))
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, err
		}
		names, values = append(names, name.(string)), append(values, value)
	}
	return names, values, nil
}

// cell writes a value as tables and CSV have it: a string without quotes, null as
// nothing, all else as JSON.
func cell(value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return text
	}
	return string(value)
}

// rowReader reads rows from a file, a batch at a time.
type rowReader struct {
	name   string
	csv    *csv.Reader
	header []string
	lines  *bufio.Scanner
	line   int
	held   *fileRow // read, and too much for the last batch
}

// fileRow is one row of a file and the line that it begins on.
type fileRow struct {
	line   int
	object json.RawMessage
	cells  []string
}

func (r *fileRow) size() int {
	n := len(r.object)
	for _, c := range r.cells {
		n += len(c)
	}
	return n
}

const maxRowBytes = 1 << 20

func newRowReader(in io.Reader, name, format string) (*rowReader, error) {
	buffered := bufio.NewReader(in)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // a byte order mark, as some programs write it
		_, _ = buffered.Discard(3)
	}
	if format == formatLines {
		lines := bufio.NewScanner(buffered)
		lines.Buffer(nil, maxRowBytes)
		return &rowReader{name: name, lines: lines}, nil
	}
	r := csv.NewReader(buffered)
	r.FieldsPerRecord = -1 // told by row, with the others
	header, err := r.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("%s: the file is empty: the first line of a CSV file names the fields", name)
	}
	if err != nil {
		return nil, brokenCSV(name, err)
	}
	for i, column := range header {
		if slices.Contains(header[:i], column) {
			return nil, fmt.Errorf("%s:1: column %q is there twice", name, column)
		}
	}
	return &rowReader{name: name, csv: r, header: header}, nil
}

// brokenCSV tells where the file is no CSV. The end of the file stays what it is.
func brokenCSV(name string, err error) error {
	if broken, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s:%d:%d: %w", name, broken.Line, broken.Column, broken.Err)
	}
	return err
}

// read gives the next row; io.EOF after the last.
func (r *rowReader) read() (*fileRow, error) {
	if r.csv != nil {
		cells, err := r.csv.Read()
		if err != nil {
			return nil, brokenCSV(r.name, err)
		}
		line, _ := r.csv.FieldPos(0)
		return &fileRow{line: line, cells: cells}, nil
	}
	for r.lines.Scan() {
		r.line++
		text := bytes.TrimSpace(r.lines.Bytes())
		switch {
		case len(text) == 0:
		case text[0] != '{' || !json.Valid(text):
			return nil, fmt.Errorf("%s:%d: the line is no JSON object", r.name, r.line)
		default:
			return &fileRow{line: r.line, object: bytes.Clone(text)}, nil
		}
	}
	switch err := r.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: the line is longer than %d bytes", r.name, r.line+1, maxRowBytes)
	case err != nil:
		return nil, err
	}
	return nil, io.EOF
}

// batch gives the next rows, as many as go into one transaction; none at the
// end. What cannot be read is told with its line, after the rows before it.
func (r *rowReader) batch(rows, size int) (all []*fileRow, err error) {
	for total := 0; len(all) < rows; {
		row := r.held
		r.held = nil
		if row == nil {
			if row, err = r.read(); err == io.EOF {
				return all, nil
			} else if err != nil {
				return all, err
			}
		}
		if total += row.size(); total > size && len(all) > 0 {
			r.held = row
			return all, nil
		}
		all = append(all, row)
	}
	return all, nil
}

// rowWriter writes rows to a file.
type rowWriter struct {
	out   *bufio.Writer
	csv   *csv.Writer // nil: JSON lines
	begun bool
}

func newRowWriter(out io.Writer, format string) *rowWriter {
	w := &rowWriter{out: bufio.NewWriter(out)}
	if format == formatCSV {
		w.csv = csv.NewWriter(w.out)
	}
	return w
}

// write writes a page: of text to CSV, of objects else.
func (w *rowWriter) write(page *admin.RowPage) error {
	if w.csv == nil {
		for _, row := range page.Rows {
			if _, err := w.out.Write(append(row, '\n')); err != nil {
				return err
			}
		}
		return nil
	}
	if !w.begun {
		w.begun = true
		if err := w.csv.Write(page.Header); err != nil {
			return err
		}
	}
	return w.csv.WriteAll(page.Cells)
}

func (w *rowWriter) flush() error {
	if w.csv != nil {
		w.csv.Flush()
		if err := w.csv.Error(); err != nil {
			return err
		}
	}
	return w.out.Flush()
}

// bar shows how far a long work is, where a person looks on.
type bar struct {
	writer  progress.Writer
	tracker *progress.Tracker
	done    chan struct{}
}

// newBar begins a bar; a total of 0 is not known. Without a terminal it shows
// nothing.
func (c *cli) newBar(what string, total int64, units progress.Units) *bar {
	if !c.Terminal {
		return &bar{}
	}
	b := &bar{writer: progress.NewWriter(), tracker: &progress.Tracker{Message: what, Total: total, Units: units}, done: make(chan struct{})}
	b.writer.SetOutputWriter(c.Stderr)
	b.writer.SetUpdateFrequency(100 * time.Millisecond)
	b.writer.Style().Visibility.ETA = true
	b.writer.AppendTracker(b.tracker)
	go func() {
		defer close(b.done)
		b.writer.Render()
	}()
	return b
}

func (b *bar) add(n int64) {
	if b.tracker != nil {
		b.tracker.Increment(n)
	}
}

func (b *bar) end(err error) {
	if b.tracker == nil {
		return
	}
	if err != nil {
		b.tracker.MarkAsErrored()
	} else {
		b.tracker.MarkAsDone()
	}
	b.writer.Stop()
	<-b.done
}
