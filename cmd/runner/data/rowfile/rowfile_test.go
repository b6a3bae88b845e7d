package rowfile_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"runner.example/cmd/runner/data/rowfile"
	"runner.example/node/admin"
)

// readAll reads a file in batches. It returns the rows as "<line> <text>", the sizes of the batches, and
// the text of the error.
func readAll(t *testing.T, text, format string, rows, size int) (all []string, batches []int, failed string) {
	t.Helper()
	r, err := rowfile.NewReader(strings.NewReader(text), "f", format)
	if err != nil {
		return nil, nil, err.Error()
	}
	var kept []*rowfile.Row // what is read later does not change them
	for {
		batch, err := r.Batch(rows, size)
		kept = append(kept, batch...)
		if len(batch) > 0 {
			batches = append(batches, len(batch))
		}
		if err != nil {
			failed = err.Error()
		}
		if err != nil || len(batch) == 0 {
			break
		}
	}
	for _, row := range kept {
		all = append(all, fmt.Sprintf("%d %s", row.Line, cmp.Or(string(row.Object), strings.Join(row.Cells, "|"))))
	}
	return all, batches, failed
}

// Rows stay as they were read while more are read, also beyond the buffer of the file.
func TestRowsOfAFileAreReadInBatches(t *testing.T) {
	var lines, cells strings.Builder
	var wantLines, wantCells []string
	cells.WriteString("n,text\n")
	for i := range 5_000 { // half a megabyte
		text := strings.Repeat(string(rune('a'+i%26)), 80+i%40)
		row := fmt.Sprintf(`{"n":%d,"text":%q}`, i, text)
		lines.WriteString(" " + row + " \n")
		wantLines = append(wantLines, fmt.Sprint(i+1, " ", row))
		fmt.Fprintf(&cells, "%d,%s\n", i, text)
		wantCells = append(wantCells, fmt.Sprintf("%d %d|%s", i+2, i, text))
	}
	for _, c := range []struct {
		format, text string
		want         []string
	}{{rowfile.Lines, lines.String(), wantLines}, {rowfile.CSV, cells.String(), wantCells}} {
		for _, limit := range []struct{ rows, size int }{{1_000_000, 1 << 30}, {100, 1 << 30}, {1_000_000, 1000}, {7, 500}, {1, 1}} {
			got, batches, failed := readAll(t, c.text, c.format, limit.rows, limit.size)
			if !slices.Equal(got, c.want) || failed != "" {
				t.Errorf("%s in batches of %+v: %d rows, %s; they differ from those of the file", c.format, limit, len(got), failed)
			}
			if most := slices.Max(batches); most > limit.rows || limit.size < 1<<20 && most > max(1, limit.size/80) {
				t.Errorf("%s: a batch of %d rows, with the limits %+v", c.format, most, limit)
			}
		}
	}
}

func TestABatchHasAtMostItsRowsAndBytes(t *testing.T) {
	const text = "{\"a\":1}\n{\"a\":2}\n{\"a\":33333}\n{\"a\":4}\n" // 7, 7, 11 and 7 bytes
	for _, row := range []struct {
		rows, size int
		want       string
	}{
		{9, 32, "[4]"}, {9, 31, "[3 1]"}, {9, 25, "[3 1]"}, {9, 24, "[2 2]"}, {9, 14, "[2 1 1]"}, {9, 13, "[1 1 1 1]"},
		{9, 1, "[1 1 1 1]"}, {3, 100, "[3 1]"}, {2, 100, "[2 2]"}, {2, 18, "[2 2]"}, {2, 17, "[2 1 1]"},
	} {
		if got, batches, failed := readAll(t, text, rowfile.Lines, row.rows, row.size); fmt.Sprint(batches) != row.want || len(got) != 4 || failed != "" {
			t.Errorf("%d rows of %d bytes: %v, %d rows, %s; want %s", row.rows, row.size, batches, len(got), failed, row.want)
		}
	}
}

func TestAnErrorOfAFileNamesItsLineAfterTheRowsBefore(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	for _, row := range []struct {
		name, format, text string
		want               []string
		failed             string
	}{
		{"lines", rowfile.Lines, "\n{\"a\":1}\r\n\n  {\"a\":2}", []string{`2 {"a":1}`, `4 {"a":2}`}, ""},
		{"a byte order mark", rowfile.Lines, mark + "{}\n", []string{"1 {}"}, ""},
		{"no object", rowfile.Lines, "{}\n\n[1]\n{}", []string{"1 {}"}, "f:3: the line is not a JSON object"},
		{"half an object", rowfile.Lines, "{}\n{\"a\":\n1}", []string{"1 {}"}, "f:2: the line is not a JSON object"},
		{"two objects", rowfile.Lines, "{}{}", nil, "f:1: the line is not a JSON object"},
		{"the longest line", rowfile.Lines, "{}\n{\"a\":\"" + strings.Repeat("x", 8<<20-9) + "\"}", []string{"1 {}", "2 {\"a\":\"" + strings.Repeat("x", 8<<20-9) + "\"}"}, ""},
		{"a longer line", rowfile.Lines, "{}\n{\"a\":\"" + strings.Repeat("x", 8<<20) + "\"}", []string{"1 {}"}, "f:2: the line is longer than 8 MiB"},
		{"nothing", rowfile.Lines, "", nil, ""},
		{"CSV", rowfile.CSV, mark + "a,b\r\n1,\"x\ny\"\n\n2\n", []string{"2 1|x\ny", "5 2"}, ""},
		{"a quote", rowfile.CSV, "a,b\n1,2\n3,\"x\"y\n", []string{"2 1|2"}, `f:3:5: extraneous or missing " in quoted-field`},
		{"a column twice", rowfile.CSV, "a,b,a\n", nil, `f:1: column "a" is there twice`},
		{"an empty file", rowfile.CSV, "", nil, "f: the file is empty: the first line of a CSV file names the fields"},
	} {
		got, _, failed := readAll(t, row.text, row.format, 10, 64<<20)
		if !slices.Equal(got, row.want) || failed != row.failed {
			t.Errorf("%s: %.200q, %q; want %.200q, %q", row.name, got, failed, row.want, row.failed)
		}
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	pages := []admin.RowPage{
		{Rows: []json.RawMessage{[]byte(`{"a":1}`), []byte(`{"a":2}`)}, Header: []string{"a", "b"}, Cells: [][]string{{"1", "x,\"y\"\nz"}, {"2", ""}}},
		{Rows: []json.RawMessage{[]byte(`{"a":3}`)}, Header: []string{"a", "b"}, Cells: [][]string{{"3", " "}}},
	}
	for format, want := range map[string][]string{
		rowfile.Lines: {`1 {"a":1}`, `2 {"a":2}`, `3 {"a":3}`}, rowfile.CSV: {"2 1|x,\"y\"\nz", "4 2|", "5 3| "},
	} {
		var out bytes.Buffer
		w := rowfile.NewWriter(&out, format)
		for i := range pages {
			if err := w.Write(&pages[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, _, failed := readAll(t, out.String(), format, 10, 1000); !slices.Equal(got, want) || failed != "" {
			t.Errorf("%s: %q, %s; want %q", format, got, failed, want)
		}
		if err := errOf(rowfile.NewWriter(full{}, format), &pages[0]); err == nil {
			t.Errorf("%s: a full disk is no error", format)
		}
	}
}

// errOf returns the error of writing a page.
func errOf(w *rowfile.Writer, page *admin.RowPage) error {
	if err := w.Write(page); err != nil {
		return err
	}
	return w.Flush()
}

// full is a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestTheFormatIsThatOfTheFlagOrTheName(t *testing.T) {
	for _, row := range []struct{ asked, path, want string }{
		{"", "a.csv", rowfile.CSV}, {"", "a.CSV", rowfile.CSV}, {"", "a.jsonl", rowfile.Lines}, {"", "a.ndjson", rowfile.Lines}, {"", "a.json", rowfile.Lines},
		{"", "a", rowfile.Lines}, {"", "-", rowfile.Lines}, {"", "a.txt", ""}, {"csv", "a.json", rowfile.CSV}, {"jsonl", "a.csv", rowfile.Lines}, {"xml", "a.csv", ""},
	} {
		if got, err := rowfile.FormatOf(row.asked, row.path); got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("--format %q %s: %q, %v, want %q", row.asked, row.path, got, err, row.want)
		}
	}
}
