package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// CanAsk reports that a person can answer a question: stdin and stderr are a terminal.
func (c *CLI) CanAsk() bool {
	in, ok := c.Stdin.(*os.File)
	return ok && c.Terminal && term.IsTerminal(int(in.Fd()))
}

// Confirm asks a question on stderr and reports whether the answer is yes. The question has its own
// line, because stderr is written by lines. Confirm returns when ctx ends, even without an answer.
func (c *CLI) Confirm(ctx context.Context, question string) (yes bool, err error) {
	c.Say("", question+" [y/N]")
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(c.Stdin).ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case a := <-read:
		if a.err != nil && !errors.Is(a.err, io.EOF) {
			return false, fmt.Errorf("read the answer: %w", a.err)
		}
		word := strings.ToLower(strings.TrimSpace(a.line))
		return word == "y" || word == "yes", nil
	}
}
