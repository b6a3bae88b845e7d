package main

import (
	"log"
	"log/slog"
	"strings"
)

// libraryBytes is the most that is told of a line of a library's.
const libraryBytes = 200

// libraryLog writes what libraries have to say by way of package log. They quote
// there what others have sent them, which may be anything: a token that came back,
// lines that read like ours. So what is quoted is left out.
type libraryLog struct{ logger *slog.Logger }

// hearLibraries has logger get what is written to package log, in all the process.
func hearLibraries(logger *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(libraryLog{logger})
}

// Write takes one line.
func (l libraryLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if from := strings.IndexAny(text, "\"`"); from >= 0 {
		text = text[:from] + "…"
	}
	if len(text) > libraryBytes {
		text = text[:libraryBytes] + "…"
	}
	l.logger.Warn("a library has something to say", "about", strings.ToValidUTF8(text, ""))
	return len(line), nil
}
