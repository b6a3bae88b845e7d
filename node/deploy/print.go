package deploy

import (
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/runtime"
)

// marks are the characters of changes, with their colours on a terminal.
var marks = map[string][2]string{
	"added": {"+", "\x1b[32m"}, "removed": {"-", "\x1b[31m"}, "changed": {"~", "\x1b[33m"},
}

// maxFiles limits the lines about files of modules.
const maxFiles = 20

// Print writes the difference for people: a line for each change, and more for the properties of a
// declaration that was changed. Notes go to stderr. So do diagnostics without an error; with one they
// are in Refused.
func (d Difference) Print(c *console.Console) error {
	var out strings.Builder
	before := d.Before
	if before == "" {
		before = "none"
	}
	fmt.Fprintf(&out, "from %s to %s\n", before, d.After)
	kind, files := "", 0
	for _, change := range d.Changes {
		if change.Kind != kind {
			kind = change.Kind
			fmt.Fprintf(&out, "%s\n", kind)
		}
		if change.Kind == "file" {
			if files++; files > maxFiles {
				continue
			}
			change.Properties = slices.DeleteFunc(slices.Clone(change.Properties), func(p Property) bool { return p.Name == "sha256" })
		}
		out.WriteString(change.text(c.ColorOut))
	}
	if files > maxFiles {
		fmt.Fprintf(&out, "  … and %s more; --json lists all\n", console.Plural(files-maxFiles, "file"))
	}
	if len(d.Changes) == 0 {
		out.WriteString("the declarations and modules are equal\n")
	}
	if err := c.Print(out.String()); err != nil {
		return err
	}
	for _, note := range d.Notes {
		c.Say("", note)
	}
	if d.hasErrors() {
		return nil
	}
	return c.PrintDiagnostics(c.Stderr, d.sources, d.Excerpt)
}

// text returns the lines of a change.
func (c Change) text(color bool) string {
	mark, on, off := marks[c.Change][0], "", ""
	if color {
		on, off = marks[c.Change][1], "\x1b[0m"
	}
	var parts []string
	for _, p := range c.Properties {
		parts = append(parts, p.text(c.Change))
	}
	if c.Change != "changed" || len(parts) == 1 {
		line := strings.TrimSpace(c.Name + "  " + strings.Join(parts, ", "))
		return fmt.Sprintf("  %s%s %s%s\n", on, mark, console.Harmless(line), off)
	}
	lines := fmt.Sprintf("  %s%s %s%s\n", on, mark, console.Harmless(c.Name), off)
	for _, part := range parts {
		lines += "      " + console.Harmless(part) + "\n"
	}
	return lines
}

// text returns a property: one side of it, or both.
func (p Property) text(change string) string {
	label := p.Name + ": "
	if p.Name == declared {
		label = ""
	}
	switch change {
	case "added":
		return label + p.After
	case "removed":
		return label + p.Before
	}
	side := func(text string) string {
		if text == "" {
			return "not set"
		}
		return text
	}
	return label + side(p.Before) + " → " + side(p.After)
}

// hasErrors reports whether an activation would be refused because of a finding.
func (d Difference) hasErrors() bool { return diag.List(d.Findings).HasErrors() }

// Refused returns the errors of Findings, or nil: an activation would have them.
func (d Difference) Refused() error {
	if !d.hasErrors() {
		return nil
	}
	refused := runtime.RowsRefused(d.sources, d.Findings)
	refused.Total = d.Total
	return refused
}
