package diag_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/diag"
)

// span covers columns from to before to of one line.
func span(file string, line, from, to int) diag.Span {
	return diag.Span{File: file, Start: diag.Pos{Line: line, Col: from}, End: diag.Pos{Line: line, Col: to}}
}

func printed(t *testing.T, text string, list diag.List) string {
	t.Helper()
	var b strings.Builder
	if err := diag.Print(&b, []diag.Source{{Name: "a.schema", Text: []byte(text)}}, list.Excerpt()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPrintShowsTheLineWithCaretsUnderTheSpan(t *testing.T) {
	cases := map[string]struct {
		text string
		span diag.Span
		want string
	}{
		"a span in a line": {
			"one\nroutes(\"/v1\", auth: apiKey(order_read)) {\n", span("a.schema", 2, 28, 38),
			"a.schema:2:28: error[E1]: wrong\n" +
				"    2 | routes(\"/v1\", auth: apiKey(order_read)) {\n" +
				"      |                            ^^^^^^^^^^\n",
		},
		"a tab stays a tab": {
			"\tä\tx y", span("a.schema", 1, 4, 5),
			"a.schema:1:4: error[E1]: wrong\n    1 | \tä\tx y\n      | \t \t^\n",
		},
		"an empty span gets one caret": {
			"ab", span("a.schema", 1, 3, 3),
			"a.schema:1:3: error[E1]: wrong\n    1 | ab\n      |   ^\n",
		},
		"a span over lines ends with its first line": {
			"ab {\n}\n", diag.Span{File: "a.schema", Start: diag.Pos{Line: 1, Col: 1}, End: diag.Pos{Line: 2, Col: 2}},
			"a.schema:1:1: error[E1]: wrong\n    1 | ab {\n      | ^^^^\n",
		},
		"control characters are not printed": {
			"a\x1b[31m\u202eb\r\n", span("a.schema", 1, 1, 2),
			"a.schema:1:1: error[E1]: wrong\n    1 | a\ufffd[31m\ufffdb\n      | ^\n",
		},
		"a position after the text has no source line": {
			"ab", span("a.schema", 7, 1, 2),
			"a.schema:7:1: error[E1]: wrong\n",
		},
		"a file without source": {
			"ab", span("runner.toml", 1, 2, 3),
			"runner.toml:1:2: error[E1]: wrong\n",
		},
		"a file without a position": {
			"ab", diag.Span{File: "a.schema"},
			"a.schema: error[E1]: wrong\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var list diag.List
			list.Errorf("E1", c.span, "wrong")
			if got := printed(t, c.text, list); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestPrintShowsAPartOfALongLine(t *testing.T) {
	text := strings.Repeat("x", 500) + "HERE" + strings.Repeat("y", 500)
	var list diag.List
	list.Errorf("E1", span("a.schema", 1, 501, 505), "wrong")
	lines := strings.Split(printed(t, text, list), "\n")
	if n := len([]rune(lines[1])); n > 180 {
		t.Errorf("the source line is %d columns wide", n)
	}
	source, marks := []rune(lines[1]), lines[2]
	at := strings.IndexByte(marks, '^')
	if got := string(source[at:len(marks)]); got != "HERE" {
		t.Errorf("the carets are under %q", got)
	}
}

func TestPrintOmitsAnEmptyCode(t *testing.T) {
	var list diag.List
	list.Errorf("", span("runner.toml", 1, 2, 3), "unknown key %q%s", "lisen", diag.DidYouMean("lisen", []string{"listen"}))
	want := "runner.toml:1:2: error: unknown key \"lisen\" (did you mean \"listen\"?)\n"
	if got := printed(t, "", list); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPrintStopsAfterTwentyAndCountsTheRest(t *testing.T) {
	for n, wantTail := range map[int]string{20: "a.schema:20:1: error[E1]: m20\n", 21: "… and 1 more\n", 45: "… and 25 more\n"} {
		var list diag.List
		for i := n; i > 0; i-- {
			list.Errorf("E1", span("a.schema", i, 1, 1), "m%d", i)
		}
		var b strings.Builder
		if err := diag.Print(&b, nil, list.Excerpt()); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Count(got, "error[") != 20 || !strings.HasSuffix(got, wantTail) {
			t.Errorf("%d entries end in %q", n, got[len(got)-60:])
		}
	}
}

func TestOnlyPrintColorWritesColours(t *testing.T) {
	var list diag.List
	list.Errorf("E1", span("a.schema", 1, 1, 2), "wrong")
	list.Warnf("W1", span("a.schema", 1, 2, 3), "doubtful")
	sources := []diag.Source{{Name: "a.schema", Text: []byte("abc")}}
	var plain, colored strings.Builder
	if err := errors.Join(diag.Print(&plain, sources, list.Excerpt()), diag.PrintColor(&colored, sources, list.Excerpt())); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("Print writes colours")
	}
	stripped := colored.String()
	for _, code := range []string{"\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[0m"} {
		if !strings.Contains(stripped, code) {
			t.Errorf("PrintColor does not write %q", code)
		}
		stripped = strings.ReplaceAll(stripped, code, "")
	}
	if stripped != plain.String() {
		t.Errorf("without its colours PrintColor writes\n%s\nand Print\n%s", stripped, plain.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPrintReturnsWriteErrors(t *testing.T) {
	var list diag.List
	list.Errorf("E1", span("a.schema", 1, 1, 2), "wrong")
	if err := diag.Print(brokenPipe{}, nil, list.Excerpt()); err == nil {
		t.Error("no error")
	}
}

func TestSortedOrdersByPositionWithoutDuplicates(t *testing.T) {
	var list diag.List
	list.Errorf("E2", span("b", 1, 1, 2), "b")
	list.Errorf("E2", span("a", 10, 1, 2), "late")
	list.Errorf("E2", span("a", 2, 5, 6), "same")
	list.Warnf("W1", span("a", 2, 5, 6), "other")
	list.Errorf("E1", span("a", 2, 4, 6), "early")
	list.Errorf("E2", span("a", 2, 5, 6), "same")
	var got []string
	for _, d := range list.Sorted() {
		got = append(got, d.String())
	}
	want := []string{
		"a:2:4: error[E1]: early", "a:2:5: error[E2]: same", "a:2:5: warning[W1]: other",
		"a:10:1: error[E2]: late", "b:1:1: error[E2]: b",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if list[0].Span.File != "b" || len(list) != 6 {
		t.Error("Sorted changed the list")
	}
}

func TestStrictMakesWarningsErrors(t *testing.T) {
	var list diag.List
	list.Warnf("W1", span("a", 1, 1, 2), "doubtful")
	strict := list.Strict()
	if list.HasErrors() || !strict.HasErrors() || strict[0].Code != "W1" {
		t.Errorf("list %v, strict %v", list, strict)
	}
}

func TestJSONFormIsStable(t *testing.T) {
	var list diag.List
	list.Warnf("W302", span("b.schema", 3, 1, 9), "later")
	list.Append(diag.List{{Code: "E410", Span: span("a.schema", 83, 28, 38), Message: `say "x"`}})
	got, err := json.Marshal(list.Excerpt())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"findings":[{"code":"E410","severity":"error","file":"a.schema","line":83,"col":28,"endLine":83,"endCol":38,"message":"say \"x\""},` +
		`{"code":"W302","severity":"warning","file":"b.schema","line":3,"col":1,"endLine":3,"endCol":9,"message":"later"}],"total":2}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back diag.Excerpt
	if err := json.Unmarshal(got, &back); err != nil || back.Findings[0] != list[1] || back.Findings[1] != list[0] {
		t.Errorf("read again: %+v, %v", back, err)
	}
	if empty, err := json.Marshal(diag.List(nil).Excerpt()); err != nil || string(empty) != `{"findings":[],"total":0}` {
		t.Errorf("an empty list is %s, %v", empty, err)
	}
}

func TestAnExcerptHasAHundredErrorsBeforeWarningsAndTheNumberOfAll(t *testing.T) {
	var list diag.List
	for i := range 50_000 {
		list.Warnf("W1", span("a.schema", i+1, 1, 2), "doubtful")
	}
	for i := range 99 {
		list.Errorf("E1", span("b.schema", i+1, 1, 2), "wrong")
	}
	e := list.Excerpt()
	if len(e.Findings) != diag.MaxFindings || e.Total != 50_099 || e.Findings[0].Severity != diag.Warning || e.Findings[1] != list[50_000] || e.Findings[99] != list[50_098] {
		t.Errorf("%d of %d: %v … %v", len(e.Findings), e.Total, e.Findings[0], e.Findings[99])
	}
	if lines := e.Lines(); len(lines) != 101 || lines[1] != list[50_000].String() || lines[100] != "… and 49999 more" {
		t.Errorf("%d lines: %s", len(lines), lines[len(lines)-1])
	}
	var b strings.Builder
	if err := diag.Print(&b, nil, e); err != nil || !strings.HasSuffix(b.String(), "… and 50079 more\n") {
		t.Errorf("%s, %v", b.String(), err)
	}
}
