package apptest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"runner.example/internal/console"
)

// Reporter prints results for people. Its methods are called by one goroutine at a time.
type Reporter struct {
	Out io.Writer
	// Color colours what it prints.
	Color bool
	// Dir is the app directory, for the lines of sources.
	Dir string
	// Verbose prints each test, and not only those that failed.
	Verbose bool
}

const (
	red   = "31"
	green = "32"
	grey  = "90"
	bold  = "1"
)

func (p *Reporter) paint(color, text string) string {
	if !p.Color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

var signs = map[Status]string{Passed: "✓", Failed: "✗", Skipped: "-", Todo: "…"}

func (p *Reporter) sign(s Status) string {
	return p.paint(map[Status]string{Passed: green, Failed: red, Skipped: grey, Todo: grey}[s], signs[s])
}

// File prints what became of a file.
func (p *Reporter) File(f FileResult) {
	one := Result{Files: []FileResult{f}}
	n := one.Counts()
	status := Passed
	if n.Failed+n.Files > 0 {
		status = Failed
	}
	words := []string{console.Plural(len(f.Tests), "test")}
	for _, c := range []struct {
		n    int
		what string
	}{{n.Failed, "failed"}, {n.Skipped, "skipped"}, {n.Todo, "to do"}} {
		if c.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if f.Snapshots > 0 {
		words = append(words, console.Plural(f.Snapshots, "snapshot")+" written")
	}
	fmt.Fprintf(p.Out, "%s %s %s\n", p.sign(status), f.File, p.paint(grey, "("+strings.Join(words, ", ")+", "+took(f.Seconds)+")"))
	for _, t := range f.Tests {
		if t.Status == Failed || p.Verbose {
			fmt.Fprintf(p.Out, "  %s %s %s\n", p.sign(t.Status), console.Harmless(t.FullName()), p.paint(grey, took(t.Seconds)))
		}
		for _, text := range t.Output {
			for line := range strings.Lines(text) {
				fmt.Fprintf(p.Out, "    %s\n", p.paint(grey, console.Harmless(strings.TrimRight(line, "\n"))))
			}
		}
	}
	if f.Problem != nil {
		p.problem(f.File, f.Problem, nil)
	}
	for _, t := range f.Tests {
		if t.Status == Failed {
			p.problem(f.File+" › "+t.FullName(), t.Problem, t.Log)
		}
	}
}

// took is a time in words.
func took(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.0f ms", seconds*1000)
	}
	return fmt.Sprintf("%.2f s", seconds)
}

// problem prints why a test failed.
func (p *Reporter) problem(name string, why *Problem, log []string) {
	fmt.Fprintf(p.Out, "\n%s\n", p.paint(bold, console.Harmless(name)))
	if why == nil {
		why = &Problem{Message: "it failed"}
	}
	for line := range strings.Lines(why.Message) {
		fmt.Fprintf(p.Out, "  %s\n", p.paint(red, console.Harmless(strings.TrimRight(line, "\n"))))
	}
	if why.Diff != "" {
		fmt.Fprintf(p.Out, "\n  %s\n  %s\n\n", p.paint(green, "- expected"), p.paint(red, "+ received"))
		for line := range strings.Lines(why.Diff) {
			line = console.Harmless(strings.TrimRight(line, "\n"))
			switch {
			case strings.HasPrefix(line, "-"):
				line = p.paint(green, line)
			case strings.HasPrefix(line, "+"):
				line = p.paint(red, line)
			}
			fmt.Fprintf(p.Out, "  %s\n", line)
		}
	}
	if why.Place != nil {
		fmt.Fprintf(p.Out, "\n  at %s:%d:%d\n", why.Place.File, why.Place.Line, why.Place.Column)
		p.source(*why.Place)
	}
	for _, frame := range why.Stack {
		fmt.Fprintf(p.Out, "  %s\n", p.paint(grey, "at "+console.Harmless(strings.TrimPrefix(frame, "at "))))
	}
	if len(log) > 0 {
		fmt.Fprintf(p.Out, "\n  log of the app:\n")
		for _, line := range log {
			fmt.Fprintf(p.Out, "    %s\n", p.paint(grey, console.Harmless(line)))
		}
	}
	fmt.Fprintln(p.Out)
}

// source prints the lines around a place.
func (p *Reporter) source(at Place) {
	text, err := os.ReadFile(filepath.Join(p.Dir, filepath.FromSlash(at.File)))
	if err != nil {
		return
	}
	lines := bytes.Split(text, []byte("\n"))
	if at.Line < 1 || at.Line > len(lines) {
		return
	}
	fmt.Fprintln(p.Out)
	for n := max(1, at.Line-2); n <= min(len(lines), at.Line+1); n++ {
		line := console.Harmless(strings.ReplaceAll(strings.TrimRight(string(lines[n-1]), "\r"), "\t", "  "))
		mark := "  "
		if n == at.Line {
			mark = p.paint(red, "> ")
		}
		fmt.Fprintf(p.Out, "  %s%s\n", mark, p.paint(grey, fmt.Sprintf("%4d |", n))+" "+line)
		if n == at.Line && at.Column > 0 {
			before := string(lines[n-1])
			before = before[:min(len(before), at.Column-1)]
			fmt.Fprintf(p.Out, "         | %s%s\n", strings.Repeat(" ", utf8.RuneCountInString(strings.ReplaceAll(before, "\t", "  "))), p.paint(red, "^"))
		}
	}
}

// Summary prints the counts.
func (p *Reporter) Summary(r *Result) {
	n := r.Counts()
	var words []string
	for _, c := range []struct {
		n     int
		what  string
		color string
	}{
		{n.Failed, "failed", red}, {n.Passed, "passed", green}, {n.Skipped, "skipped", grey}, {n.Todo, "to do", grey},
	} {
		if c.n > 0 {
			words = append(words, p.paint(c.color, fmt.Sprintf("%d %s", c.n, c.what)))
		}
	}
	if n.Files > 0 {
		words = append(words, p.paint(red, console.Plural(n.Files, "file")+" failed"))
	}
	if len(words) == 0 {
		words = append(words, "no test ran")
	}
	fmt.Fprintf(p.Out, "\n%s in %s %s\n", strings.Join(words, ", "), took(r.Seconds), p.paint(grey, fmt.Sprintf("(seed %d)", r.Seed)))
}
