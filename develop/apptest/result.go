package apptest

import "strings"

// Status is how a test ended.
type Status string

// The ends of a test.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped" // by test.skip, test.only of another, or the filter
	Todo    Status = "todo"
)

// Result is what a run of tests has found.
type Result struct {
	Seed    uint64       `json:"seed"`
	Files   []FileResult `json:"files"`
	Seconds float64      `json:"seconds"`
	// Coverage is what the tests have seen of the rules of the schema.
	Coverage *Coverage `json:"coverage"`
}

// FileResult is the result of a file.
type FileResult struct {
	File  string       `json:"file"` // in the app directory
	Tests []TestResult `json:"tests"`
	// Problem is why the file failed outside of its tests; nil: it did not.
	Problem *Problem `json:"problem,omitempty"`
	// Snapshots is how many snapshots were written.
	Snapshots int     `json:"snapshots,omitempty"`
	Seconds   float64 `json:"seconds"`
}

// TestResult is the result of a test.
type TestResult struct {
	Name    []string `json:"name"` // of its describe blocks, and its own
	Place   Place    `json:"place"`
	Status  Status   `json:"status"`
	Seconds float64  `json:"seconds"`
	Problem *Problem `json:"problem,omitempty"`
	// Output is what the test has written with console.log.
	Output []string `json:"output,omitempty"`
	// Log is that of the app while the test ran, if it failed.
	Log []string `json:"log,omitempty"`
}

// FullName returns the names of the describe blocks and of the test.
func (t TestResult) FullName() string { return strings.Join(t.Name, " › ") }

// Place is a place in a file of the app.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Problem is why a test failed.
type Problem struct {
	Message string `json:"message"`
	// Diff has lines that begin with "- " (expected), "+ " (received) or two blanks; empty: there is none.
	Diff  string   `json:"diff,omitempty"`
	Place *Place   `json:"place,omitempty"`
	Stack []string `json:"stack,omitempty"`
}

// Counts are the numbers of tests by status, and of files that failed outside of their tests.
type Counts struct{ Passed, Failed, Skipped, Todo, Files int }

// Counts counts the tests.
func (r *Result) Counts() (n Counts) {
	for _, f := range r.Files {
		if f.Problem != nil {
			n.Files++
		}
		for _, t := range f.Tests {
			switch t.Status {
			case Passed:
				n.Passed++
			case Failed:
				n.Failed++
			case Todo:
				n.Todo++
			default:
				n.Skipped++
			}
		}
	}
	return n
}

// OK reports whether nothing failed.
func (r *Result) OK() bool {
	n := r.Counts()
	return n.Failed == 0 && n.Files == 0
}
