package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"runner.example/internal/diag"
)

// buildScript is the script that builds a directory of handlers/ in any language.
const buildScript = "build.sh"

const (
	// shownLines is the number of lines, from the end of a failed script's output, that are reported.
	shownLines = 20
	// shownBytes is the number of bytes at the end of the output that are searched for them.
	shownBytes = 16 << 10
)

// script runs the build.sh of a directory as the current user. The script writes the module to $OUT. An executable
// script runs with the interpreter that its first line names, any other with sh.
func (b *builder) script(ctx context.Context, s source) (*Module, error) {
	file := s.path + "/" + buildScript
	info, err := os.Stat(filepath.Join(b.options.Dir, file))
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", s.path, err)
	}
	command := []string{"sh", buildScript}
	if info.Mode()&0o111 != 0 {
		command = []string{"./" + buildScript}
	} else if _, err := exec.LookPath("sh"); err != nil {
		return nil, fmt.Errorf(
			"%s has a %s, but the command sh is missing: on Windows, build this app in WSL, or add the sh of Git to PATH",
			s.path, buildScript)
	}
	return b.fromFile(s, func(building string) (bool, error) {
		output, ok, err := b.run(ctx, s, []string{"OUT=" + building}, command[0], command[1:]...)
		switch {
		case err != nil:
			return false, err
		case !ok:
			b.found.Errorf("", diag.Span{File: file}, "the script failed: %s", lastLines(output))
			return false, nil
		}
		if _, err := os.Stat(building); err != nil {
			b.found.Errorf("", diag.Span{File: file}, `the script did not write the module: write it to the file "$OUT"`)
			return false, nil
		}
		return true, nil
	})
}

// lastLines returns the last lines of an output, joined into one line.
func lastLines(output string) string {
	lines := strings.FieldsFunc(output[max(0, len(output)-shownBytes):], func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return "it printed nothing"
	}
	return strings.Join(lines[max(0, len(lines)-shownLines):], "; ")
}

// text assembles the only file of a directory in WebAssembly text.
func (b *builder) text(ctx context.Context, s source) (*Module, error) {
	files, err := filepath.Glob(filepath.Join(b.options.Dir, s.path, "*.wat"))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	if len(files) > 1 {
		b.found.Errorf("", diag.Span{File: s.path},
			"%d files have the extension .wat, but a module is built from one: move each to its own directory, or write a %s",
			len(files), buildScript)
		return nil, nil
	}
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		return nil, fmt.Errorf(
			"%s is WebAssembly text, but the command wat2wasm is missing: install wabt (on Debian: apt-get install wabt)", s.path)
	}
	return b.fromFile(s, func(building string) (bool, error) {
		output, ok, err := b.run(ctx, s, nil, "wat2wasm", "--debug-names", "--enable-tail-call", "./"+filepath.Base(files[0]), "-o", building)
		if err == nil && !ok {
			(&cRun{b: b, source: s}).addMessages(output, ok)
		}
		return ok, err
	})
}
