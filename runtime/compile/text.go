package compile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FirstLine is an error's text without the guest's stack trace.
func FirstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(text, " (recovered by wazero)")
}

// Quote prepares a text from a module for a message: unchanged if it is one printable line
// of at most limit bytes, otherwise quoted and cut.
func Quote(s string, limit int) string {
	unprintable := func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }
	if len(s) <= limit && !strings.ContainsFunc(s, unprintable) {
		return s
	}
	return fmt.Sprintf("%.*q", limit, s)
}

// size formats a number of bytes that is a multiple of 1 KiB.
func size(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
