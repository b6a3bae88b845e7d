package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jedib0t/go-pretty/v6/table"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
)

// Console is where a command writes. Its methods may be called by one goroutine at a time.
type Console struct {
	// Stdout gets the answer, Stderr everything else.
	Stdout, Stderr io.Writer
	// JSON prints one JSON document instead of text.
	JSON bool
	// Terminal reports that Stderr is a terminal. Color is for Stderr, ColorOut for Stdout.
	Terminal, Color, ColorOut bool
}

// Say writes one line about the program itself to stderr.
func (c *Console) Say(kind, text string) {
	if c.Color && kind == "error: " {
		kind = "\x1b[1;31merror:\x1b[0m "
	}
	fmt.Fprintf(c.Stderr, "runner: %s%s\n", kind, strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "))
}

// PrintDiagnostics writes diagnostics to w, which is Stdout or Stderr, in colour on a terminal.
func (c *Console) PrintDiagnostics(w io.Writer, sources []diag.Source, found diag.Excerpt) error {
	if c.Color && w == c.Stderr || c.ColorOut && w == c.Stdout {
		return diag.PrintColor(w, sources, found)
	}
	return diag.Print(w, sources, found)
}

// PrintJSON writes v as the one document of a --json answer. It escapes only the characters
// that JSON requires to be escaped, and line separators.
func (c *Console) PrintJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	document := jsontext.Value(text)
	err = document.Format(jsontext.Multiline(true), jsontext.WithIndent("  "), jsontext.EscapeForJS(true),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	return c.Print(string(document) + "\n")
}

// Print writes the answer in one piece.
func (c *Console) Print(text string) error {
	_, err := io.WriteString(c.Stdout, text)
	return err
}

// PrintTable writes aligned columns under a heading; with no rows it writes
// nothing to stdout and says so on stderr.
func (c *Console) PrintTable(heading []string, rows [][]string, none string) error {
	if len(rows) == 0 {
		c.Say("", none)
		return nil
	}
	w := table.NewWriter()
	w.SetStyle(table.Style{Name: "plain", Box: table.BoxStyle{PaddingRight: "  "}})
	w.AppendHeader(cells(heading))
	for _, row := range rows {
		w.AppendRow(cells(row))
	}
	return c.Print(trimLines(w.Render()))
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

// Pairs writes names and values in two columns.
func Pairs(rows [][2]string) string {
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

// SayListening prints the address of the server, on one line.
func (c *Console) SayListening(url string) error {
	if c.JSON {
		return c.Print(fmt.Sprintf("{\"url\": %q}\n", url))
	}
	return c.Print("listening on " + url + "\n")
}

// Harmless returns text without terminal control characters; line ends and tabs are kept.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// FewOf names the first of several source files, those of packages last.
func FewOf(sources []string) string {
	const most = 3
	var own, packages []string
	for _, source := range sources {
		if strings.HasPrefix(source, "node_modules/") {
			packages = append(packages, source)
		} else {
			own = append(own, source)
		}
	}
	all := append(own, packages...)
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %s", strings.Join(all[:most], ", "), Plural(len(all)-most, "other file"))
}

// TextOf returns the text of an error for people: of a fault its detail without the cause, as
// the server sends it over the admin socket.
func TextOf(err error) string {
	if f, ok := err.(*fault.Fault); ok && f.Detail != "" {
		return f.Detail
	}
	return err.Error()
}
