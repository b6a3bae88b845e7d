package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"runner.example/internal/diag"
)

// typed are the extensions of sources whose types are checked. A tsconfig.json can add JavaScript.
var typed = []string{".ts", ".mts", ".cts", ".tsx"}

// CheckTypes runs the type checker of TypeScript on the handlers of the app in dir, as `npx tsc --noEmit` does: the package
// typescript of a directory node_modules, and a tsconfig.json, each in the app directory or in handlers. It downloads
// nothing. found has the errors with their places; nil: there are none. missing is a line that says why the types of
// handlers in TypeScript were not checked; it is empty if they were, or if the app has none. Other handlers, JavaScript too,
// are checked if there is a tsconfig.json.
//
// The checker reads types/, which must be up to date. It may run beside Build, and ends with ctx.
func CheckTypes(ctx context.Context, dir string) (found *DiagnosticsError, missing string, err error) {
	contents, err := find(dir)
	if err != nil && !errors.Is(err, ErrNothing) {
		return nil, "", err
	}
	config := inApp(dir, "tsconfig.json")
	wanted := slices.ContainsFunc(contents.files, func(file string) bool { return slices.Contains(typed, filepath.Ext(file)) })
	if !wanted && (config == "" || len(contents.files) == 0) {
		return nil, "", nil
	}
	checker := inApp(dir, "node_modules/typescript/bin/tsc")
	switch {
	case checker == "" && !wanted:
		return nil, "", nil
	case checker == "":
		return nil, "types are not checked: install typescript in the app directory: npm install --save-dev typescript", nil
	case config == "":
		return nil, "types are not checked: write a tsconfig.json beside the schema; `runner new` has one", nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, "types are not checked: the command node is missing: install Node.js 20 or later (nodejs.org)", nil
	}
	cmd := exec.CommandContext(ctx, node, checker, "--project", config, "--noEmit", "--pretty", "false")
	cmd.Dir, cmd.Env = dir, environ()
	cmd.WaitDelay = time.Second // for the command's own child processes
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && (!ended || ctx.Err() != nil) {
		return nil, "", fmt.Errorf("check types: %w", errors.Join(err, ctx.Err()))
	}
	list := typeErrors(both.String())
	if len(list) == 0 && err != nil {
		return nil, "", fmt.Errorf("check types: the type checker failed: %s", lastLines(both.String()))
	}
	if len(list) == 0 {
		return nil, "", nil
	}
	found = &DiagnosticsError{List: list, Sources: sources(dir, list)}
	found.countRunes()
	return found, "", nil
}

// inApp returns the path of a file, relative to the app directory, which is there or in handlers; empty: it is in neither.
func inApp(dir, name string) string {
	for _, path := range []string{name, "handlers/" + name} {
		if info, err := os.Stat(filepath.Join(dir, path)); err == nil && info.Mode().IsRegular() {
			return filepath.FromSlash(path)
		}
	}
	return ""
}

// typeError is the first line of an error, whose place may be missing. Lines that continue it are indented.
var typeError = regexp.MustCompile(`^(?:(.+)\((\d+),(\d+)\): )?error (TS\d+): (.*)$`)

// typeErrors reads the output of the type checker. Columns count UTF-16 units.
func typeErrors(output string) (list diag.List) {
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		m := typeError.FindStringSubmatch(line)
		switch {
		case m != nil:
			span := diag.Span{File: "tsconfig.json"}
			if m[1] != "" {
				row, _ := strconv.Atoi(m[2])
				col, _ := strconv.Atoi(m[3])
				span = diag.At(filepath.ToSlash(m[1]), row, col, 1)
			}
			list.Errorf(m[4], span, "%s", strings.TrimSuffix(m[5], "."))
		case len(list) > 0 && strings.HasPrefix(line, " "):
			last := &list[len(list)-1]
			last.Message += ": " + strings.TrimSuffix(strings.TrimSpace(line), ".")
		}
	}
	return list
}

// countRunes changes the columns of the list from UTF-16 units to characters.
func (e *DiagnosticsError) countRunes() {
	for i := range e.List {
		span := &e.List[i].Span
		at := slices.IndexFunc(e.Sources, func(s diag.Source) bool { return s.Name == span.File })
		if at < 0 || !span.Start.IsValid() {
			continue
		}
		lines := strings.Split(string(e.Sources[at].Text), "\n")
		if span.Start.Line > len(lines) {
			continue
		}
		units := utf16.Encode([]rune(lines[span.Start.Line-1]))
		before := len(utf16.Decode(units[:min(span.Start.Col-1, len(units))]))
		*span = diag.At(span.File, span.Start.Line, before+1, 1)
	}
}
