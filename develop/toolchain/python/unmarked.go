package python

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"runner.example/internal/diag"
	"runner.example/schema"
)

// functionLine is the first line of a function of a module.
var functionLine = regexp.MustCompile(`(?m)^(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(`)

// ExplainUnbound adds to the errors about handlers that no module has (E419) that a file of handlers/ has a function of this
// name without @handler.
func ExplainUnbound(dir string, s *schema.Schema, found diag.List) {
	names := map[diag.Span]string{}
	for i := range s.Routes {
		names[s.Routes[i].Span] = s.Routes[i].Handler
	}
	for i := range s.Functions {
		names[s.Functions[i].Span] = s.Functions[i].Name
	}
	for i := range s.Jobs {
		names[s.Jobs[i].Span] = s.Jobs[i].Name
	}
	for i := range found {
		if name := names[found[i].Span]; name != "" && found[i].Code == "E419" {
			if text := unmarked(dir, name); text != "" {
				what, _, _ := strings.Cut(found[i].Message, ": ")
				found[i].Message = what + ": " + text
			}
		}
	}
}

// unmarked says where a function has the name of a handler; empty: there is none.
func unmarked(dir, handler string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "handlers", "*.py")) // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, at := range functionLine.FindAllSubmatchIndex(text, -1) {
			if name := string(text[at[2]:at[3]]); name == handler || camel(name) == handler {
				line := 1 + strings.Count(string(text[:at[0]]), "\n")
				return fmt.Sprintf("handlers/%s:%d: %s has no @handler: add it above the function", filepath.Base(file), line, name)
			}
		}
	}
	return ""
}

// camel returns list_orders as listOrders.
func camel(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return first
}
