package node

import (
	"log"
	"log/slog"
	"strings"
)

// libraryBytes is the maximum length of a logged line.
const libraryBytes = 200

// libraryLog logs what libraries write to package log. They may quote input there, such as a
// token, or text that looks like our log. So quoted text is removed.
type libraryLog struct{ logger *slog.Logger }

// logLibraries makes logger the output of package log in the whole process.
func logLibraries(logger *slog.Logger) {
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
	l.logger.Warn("library log", "text", strings.ToValidUTF8(text, ""))
	return len(line), nil
}
