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

// goModule builds a folder of handlers/ with the Go toolchain, as a reactor
// module. The compiler's messages become entries of the list.
func (b *builder) goModule(ctx context.Context, folder string) (*Module, error) {
	source := "handlers/" + folder
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("%s is written in Go, and there is no command go here: install Go 1.24 or later (go.dev/dl)", source)
	}
	return b.fromFolder(folder, func(building string) (bool, error) {
		said, ok, err := b.run(ctx, folder, []string{"GOOS=wasip1", "GOARCH=wasm", "GOWORK=off"},
			"go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", building, ".")
		if err == nil && !ok {
			b.noteGo(source, said)
		}
		return ok, err
	})
}

// A message of the compiler: ./orders.go:12:5: undefined: x
var goMessage = regexp.MustCompile(`^(?:vet: )?(?:\./)?([^\s:]+\.go):(\d+)(?::(\d+))?: (.*)$`)

// noteGo adds what the toolchain said to the list. Without a place it is about the
// folder.
func (b *builder) noteGo(source, said string) {
	before := len(b.found)
	var rest []string
	for line := range strings.Lines(said) {
		goesOn := strings.HasPrefix(line, "\t") && len(b.found) > before
		line = strings.TrimSpace(line)
		if goesOn && line != "" { // what to type: 	go get example.com/x
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
			col, _ := strconv.Atoi(m[3]) // in bytes, which are columns in nearly all code
			b.found.Errorf("", place(source+"/"+m[1], row, max(1, col), 1), "%s", m[4])
		case line != "" && !strings.HasPrefix(line, "#"):
			rest = append(rest, line)
		}
	}
	if len(b.found) == before {
		b.found.Errorf("", diag.Span{File: source}, "%s", strings.Join(append(rest, "run go build there to see more"), "; "))
	}
}
