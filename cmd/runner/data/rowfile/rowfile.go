package rowfile

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

	"runner.example/internal/console"
	"runner.example/node/admin"
)

// The formats of rows in files.
const (
	Lines = "jsonl" // a JSON object on each line
	CSV   = "csv"   // RFC 4180, the first line names the fields
)

// FormatOf returns the given format, otherwise the one of the file's extension, otherwise JSON
// lines.
func FormatOf(asked, path string) (string, error) {
	switch asked {
	case Lines, CSV:
		return asked, nil
	case "":
	default:
		return "", console.Invalid("--format %s: want %s or %s", asked, Lines, CSV)
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		return CSV, nil
	case ".jsonl", ".ndjson", ".json", "":
		return Lines, nil
	default:
		return "", console.Invalid("%s: cannot tell its format from %q: say --format %s or %s", path, ext, Lines, CSV)
	}
}

// Members returns the names and values of a JSON object in their order.
func Members(object json.RawMessage) (names []string, values []json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, nil, errors.Join(err, errors.New("it is not a JSON object"))
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

// Cell returns a value as text for tables and CSV: a string without quotes, nothing for null,
// otherwise JSON.
func Cell(value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return text
	}
	return string(value)
}

// Reader reads rows from a file, in batches.
type Reader struct {
	Name   string // for errors
	csv    *csv.Reader
	Header []string
	lines  *bufio.Scanner
	line   int
	held   *Row // read, and too much for the last batch
}

// Row is one row of a file: an object, or cells of CSV, and the line that it begins on.
type Row struct {
	Line   int
	Object json.RawMessage
	Cells  []string
}

func (r *Row) size() int {
	n := len(r.Object)
	for _, c := range r.Cells {
		n += len(c)
	}
	return n
}

// maxLineBytes is the longest line of JSON lines: a row of 1 MiB whose text is all escaped.
const maxLineBytes = 8 << 20

// NewReader returns a reader of rows in that format; name is for errors.
func NewReader(in io.Reader, name, format string) (*Reader, error) {
	buffered := bufio.NewReader(in)
	// A byte order mark, as some programs write it.
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = buffered.Discard(3)
	}
	if format == Lines {
		lines := bufio.NewScanner(buffered)
		lines.Buffer(nil, maxLineBytes)
		return &Reader{Name: name, lines: lines}, nil
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
	return &Reader{Name: name, csv: r, Header: header}, nil
}

// brokenCSV adds the place to an error of CSV. io.EOF is returned unchanged.
func brokenCSV(name string, err error) error {
	if broken, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s:%d:%d: %w", name, broken.Line, broken.Column, broken.Err)
	}
	return err
}

// read returns the next row; io.EOF after the last one.
func (r *Reader) read() (*Row, error) {
	if r.csv != nil {
		cells, err := r.csv.Read()
		if err != nil {
			return nil, brokenCSV(r.Name, err)
		}
		line, _ := r.csv.FieldPos(0)
		return &Row{Line: line, Cells: cells}, nil
	}
	for r.lines.Scan() {
		r.line++
		text := bytes.TrimSpace(r.lines.Bytes())
		switch {
		case len(text) == 0:
		case text[0] != '{' || !json.Valid(text):
			return nil, fmt.Errorf("%s:%d: the line is not a JSON object", r.Name, r.line)
		default:
			return &Row{Line: r.line, Object: bytes.Clone(text)}, nil
		}
	}
	switch err := r.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: the line is longer than %d MiB", r.Name, r.line+1, maxLineBytes>>20)
	case err != nil:
		return nil, err
	}
	return nil, io.EOF
}

// Batch returns the next rows, at most rows of them with size bytes together; none at the end.
// An error names its line, after the rows before it.
func (r *Reader) Batch(rows, size int) (all []*Row, err error) {
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

// Writer writes rows to a file.
type Writer struct {
	out   *bufio.Writer
	csv   *csv.Writer // nil: JSON lines
	begun bool
}

// NewWriter returns a writer of rows in that format.
func NewWriter(out io.Writer, format string) *Writer {
	w := &Writer{out: bufio.NewWriter(out)}
	if format == CSV {
		w.csv = csv.NewWriter(w.out)
	}
	return w
}

// Write writes a page of rows.
func (w *Writer) Write(page *admin.RowPage) error {
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

// Flush writes buffered rows.
func (w *Writer) Flush() error {
	if w.csv != nil {
		w.csv.Flush()
		if err := w.csv.Error(); err != nil {
			return err
		}
	}
	return w.out.Flush()
}
