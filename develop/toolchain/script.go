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

// buildScript builds a directory of handlers/ in any language, if it is there.
const buildScript = "build.sh"

// A script that failed is reported with its last lines, as far as they are in the end of its output.
const (
	shownLines = 20
	shownBytes = 16 << 10
)

// script runs the build.sh of a directory, as the user who builds. The script writes the module to $OUT. One that
// may be executed runs with the interpreter of its first line, others with sh.
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
		return nil, fmt.Errorf("%s is built by a %s, and the command sh is missing: on Windows build this app in WSL, or put the sh of Git into PATH", s.path, buildScript)
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
			b.found.Errorf("", diag.Span{File: file}, `the script has not written the module: write it to "$OUT"`)
			return false, nil
		}
		return true, nil
	})
}

// lastLines returns the last lines of an output, in one line.
func lastLines(output string) string {
	lines := strings.FieldsFunc(output[max(0, len(output)-shownBytes):], func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return "it has printed nothing"
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
		b.found.Errorf("", diag.Span{File: s.path}, "there are %d files *.wat, and a module is made of one: move the others, or write a %s", len(files), buildScript)
		return nil, nil
	}
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		return nil, fmt.Errorf("%s is written in WebAssembly text, and the command wat2wasm is missing: install wabt, on Debian: apt-get install wabt", s.path)
	}
	return b.fromFile(s, func(building string) (bool, error) {
		output, ok, err := b.run(ctx, s, nil, "wat2wasm", "--debug-names", "--enable-tail-call", "./"+filepath.Base(files[0]), "-o", building)
		if err == nil && !ok {
			(&cRun{b: b, source: s}).addMessages(output, ok)
		}
		return ok, err
	})
}
