package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/wasm"
	sdk "runner.example/sdk/go"
)

// golang builds a directory of handlers/ with the Go toolchain, as a WASI reactor. The
// compiler's messages are added to the list. The packages of generators are not inlined (-l):
// runtime/draws finds their functions by name.
func (b *builder) golang(ctx context.Context, s source) (*Module, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("%s is written in Go, and the command go is missing: install Go 1.24 or later (go.dev/dl)", s.path)
	}
	return b.fromFile(s, func(building string) (bool, error) {
		build := func(more ...string) (bool, error) {
			args := slices.Concat([]string{"build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w",
				"-gcflags=math/rand/v2=-l", "-gcflags=hash/maphash=-l", "-o", building}, more, []string{"."})
			output, ok, err := b.run(ctx, s, []string{"GOOS=wasip1", "GOARCH=wasm", "GOWORK=off"}, "go", args...)
			if err == nil && !ok {
				b.addGoMessages(s.path, output)
			}
			return ok, err
		}
		if ok, err := build(); err != nil || !ok || exportsRandom(building) {
			return ok, err
		}
		overlay, err := b.goOverlay(s)
		if err != nil {
			return false, fmt.Errorf("build %s: %w", s.path, err)
		}
		defer os.RemoveAll(filepath.Dir(overlay))
		ok, err := build("-overlay=" + overlay)
		if err == nil && ok && !exportsRandom(building) {
			b.found.Errorf("", diag.Span{File: s.path},
				"cannot add the export runner_random, and without it every request draws the same random numbers: use the SDK for Go")
			return false, nil
		}
		return ok, err
	})
}

// goOverlay writes an overlay with which go build adds the SDK's file with the export runner_random to
// the package of a directory, and returns its name. It is for modules without the SDK.
func (b *builder) goOverlay(s source) (string, error) {
	const file = "random_wasip1.go"
	source, err := sdk.Source.ReadFile(file)
	if err != nil {
		return "", err
	}
	source = bytes.Replace(source, []byte("\npackage runner\n"), []byte("\npackage main\n"), 1)
	dir, err := filepath.Abs(filepath.Join(b.options.Dir, s.path))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as the go command names it
	}
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", "runner-go-")
	if err != nil {
		return "", err
	}
	added := filepath.Join(work, file)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(dir, "runner_"+file): added}})
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(work))
	}
	path := filepath.Join(work, "overlay.json")
	if err := errors.Join(os.WriteFile(added, source, 0o600), os.WriteFile(path, overlay, 0o600)); err != nil {
		return "", errors.Join(err, os.RemoveAll(work))
	}
	return path, nil
}

// exportsRandom reports whether a module exports runner_random. It is true for a module that cannot be
// read, which is refused later.
func exportsRandom(path string) bool {
	file, err := wasm.ReadFile(path, wasm.DefaultLimits().ModuleBytes)
	if err != nil {
		return true
	}
	m, err := wasm.Parse(file, wasm.DefaultLimits())
	return err != nil || slices.ContainsFunc(m.Exports(), func(x wasm.Export) bool { return x.Name == "runner_random" })
}

// A message of the compiler: ./orders.go:12:5: undefined: x
var goMessage = regexp.MustCompile(`^(?:vet: )?(?:\./)?([^\s:]+\.go):(\d+)(?::(\d+))?: (.*)$`)

// addGoMessages adds the toolchain's messages to the list. A message without a place is about the
// directory.
func (b *builder) addGoMessages(source, output string) {
	before := len(b.found)
	var rest []string
	for line := range strings.Lines(output) {
		goesOn := strings.HasPrefix(line, "\t") && len(b.found) > before
		line = strings.TrimSpace(line)
		if goesOn && line != "" { // a command to type: go get example.com/x
			last, between := &b.found[len(b.found)-1], "; "
			if strings.HasSuffix(last.Message, ":") {
				between = " "
			}
			last.Message += between + line
			continue
		}
		m := goMessage.FindStringSubmatch(line)
		switch {
		case m != nil:
			row, _ := strconv.Atoi(m[2])
			col, _ := strconv.Atoi(m[3]) // in bytes, which equal columns in almost all code
			b.found.Errorf("", diag.At(source+"/"+m[1], row, max(1, col), 1), "%s", m[4])
		case line != "" && !strings.HasPrefix(line, "#"):
			rest = append(rest, line)
		}
	}
	if len(b.found) == before {
		b.found.Errorf("", diag.Span{File: source}, "%s", strings.Join(append(rest, "run go build there for details"), "; "))
	}
}
