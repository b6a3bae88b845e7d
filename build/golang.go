package build

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"runner.example/internal/diag"
)

// goModule builds a directory of handlers/ with the Go toolchain, as a WASI reactor. The
// compiler's messages are added to the list. The packages of generators are not inlined (-l):
// runtime/draws finds their functions by name.
func (b *builder) goModule(ctx context.Context, name string) (*Module, error) {
	source := "handlers/" + name
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("%s is written in Go, and the command go is missing: install Go 1.24 or later (go.dev/dl)", source)
	}
	return b.fromDirectory(name, func(building string) (bool, error) {
		output, ok, err := b.run(ctx, name, []string{"GOOS=wasip1", "GOARCH=wasm", "GOWORK=off"},
			"go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-gcflags=math/rand/v2=-l", "-gcflags=hash/maphash=-l", "-o", building, ".")
		if err == nil && !ok {
			b.addGoMessages(source, output)
		}
		return ok, err
	})
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
			b.found.Errorf("", place(source+"/"+m[1], row, max(1, col), 1), "%s", m[4])
		case line != "" && !strings.HasPrefix(line, "#"):
			rest = append(rest, line)
		}
	}
	if len(b.found) == before {
		b.found.Errorf("", diag.Span{File: source}, "%s", strings.Join(append(rest, "run go build there for details"), "; "))
	}
}
