package apptest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr,omitempty"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *struct{}     `xml:"skipped"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the result in the XML form of JUnit, which systems for continuous integration read.
func (r *Result) WriteJUnit(w io.Writer) error {
	n := r.Counts()
	all := junitSuites{Tests: n.Passed + n.Failed + n.Skipped + n.Todo + n.Files, Failures: n.Failed, Time: seconds(r.Seconds)}
	for _, f := range r.Files {
		suite := junitSuite{Name: f.File, Tests: len(f.Tests), Time: seconds(f.Seconds)}
		for _, t := range f.Tests {
			one := junitCase{
				Name: t.FullName(), Class: f.File, File: t.Place.File, Line: t.Place.Line, Time: seconds(t.Seconds),
				Output: plain(strings.Join(t.Output, "\n")),
			}
			switch t.Status {
			case Failed:
				suite.Failures++
				one.Failure = t.Problem.junit(t.Log)
			case Skipped, Todo:
				suite.Skipped++
				one.Skipped = &struct{}{}
			}
			suite.Cases = append(suite.Cases, one)
		}
		if f.Problem != nil {
			suite.Tests++
			suite.Errors++
			suite.Cases = append(suite.Cases, junitCase{
				Name: "the file", Class: f.File, File: f.File, Time: seconds(f.Seconds), Error: f.Problem.junit(nil),
			})
		}
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (p *Problem) junit(log []string) *junitMessage {
	if p == nil {
		return &junitMessage{}
	}
	first, _, _ := strings.Cut(p.Message, "\n")
	parts := []string{p.Message, p.Diff, strings.Join(p.Stack, "\n"), strings.Join(log, "\n")}
	var text []string
	for _, part := range parts {
		if part != "" {
			text = append(text, plain(part))
		}
	}
	return &junitMessage{plain(first), strings.Join(text, "\n\n")}
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// plain replaces what XML 1.0 cannot have.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0xfffe || r == 0xffff {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}
