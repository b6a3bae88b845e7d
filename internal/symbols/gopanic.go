package symbols

import (
	"regexp"
	"strconv"
	"strings"
)

// GoCrash is what a program in Go wrote to standard error when it ended itself.
type GoCrash struct {
	Kind    string // "panic" or "fatal error"
	Message string // may have several lines
	// Frames are those of the goroutine that failed, or of the first one. Offsets are 0.
	Frames []Frame
}

// How the first line of such a text begins. TinyGo writes panicMark too, without frames.
const (
	panicMark   = "panic: "
	fatalMark   = "fatal error: "
	runtimeMark = "runtime: "
)

// BeginsGoCrash reports whether a line of standard error may be the first one of a crash (see ParseGoCrash).
func BeginsGoCrash(line []byte) bool {
	text := string(line[:min(len(line), len(fatalMark))])
	return strings.HasPrefix(text, panicMark) || strings.HasPrefix(text, fatalMark) || strings.HasPrefix(text, runtimeMark)
}

var (
	// goroutine 1 [chan receive, locked to thread]:
	goroutineLine = regexp.MustCompile(`^goroutine \d+ .*\[.*\]:$`)
	// <tab>/src/main.go:12 +0x1d
	placeLine = regexp.MustCompile(`^\t(.*):(\d+)(?: .*)?$`)
	signal    = regexp.MustCompile(`^\t*\[signal .*\]$`)
)

// ParseGoCrash parses what Go's runtime writes before it ends a program. false: it is another text.
//
//	panic: the message, whose further lines
//		are indented
//	[signal …]
//
//	goroutine 1 [running]:
//	main.total(0x1)
//		/src/cart.go:12 +0x1d
func ParseGoCrash(text string) (c GoCrash, ok bool) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	head := len(lines)
	for i, line := range lines {
		if line == "" || goroutineLine.MatchString(line) {
			head = i
			break
		}
	}
	if c, ok = crashMessage(lines[:head]); !ok {
		return c, false
	}
	c.Frames = crashFrames(lines[head:])
	return c, true
}

// crashMessage reads the lines before the stacks.
func crashMessage(lines []string) (c GoCrash, ok bool) {
	var message []string
	detail := ""
	for _, line := range lines {
		text, isPanic := strings.CutPrefix(line, panicMark)
		fatal, isFatal := strings.CutPrefix(line, fatalMark)
		about, isRuntime := strings.CutPrefix(line, runtimeMark)
		switch {
		case signal.MatchString(line):
		case isFatal && c.Kind == "":
			c.Kind, message = "fatal error", []string{fatal}
		case isPanic && c.Kind == "":
			c.Kind, message = "panic", []string{text}
		case c.Kind != "":
			message = append(message, strings.TrimPrefix(line, "\t"))
		case isRuntime && detail == "":
			detail = about
		}
	}
	c.Message = strings.Join(message, "\n")
	switch {
	case c.Kind == "" || detail == "":
	case strings.HasPrefix(detail, c.Message):
		c.Message = detail
	default:
		c.Message += ": " + detail
	}
	return c, c.Kind != ""
}

// crashFrames reads the frames of the first goroutine.
func crashFrames(lines []string) (frames []Frame) {
	begun := false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case goroutineLine.MatchString(line):
			if begun {
				return visible(nil, frames, true)
			}
			begun = true
		case !begun || i+1 == len(lines):
		case line == "" || strings.HasPrefix(line, "created by "):
			return visible(nil, frames, true)
		default:
			arguments := strings.LastIndexByte(line, '(')
			place := placeLine.FindStringSubmatch(lines[i+1])
			if arguments <= 0 || place == nil {
				continue
			}
			f := Frame{Function: clean(line[:arguments]), File: clean(place[1])}
			f.Line, _ = strconv.Atoi(place[2])
			frames = append(frames, f)
			i++
		}
	}
	return visible(nil, frames, true)
}

// ShortenPaths shortens the paths in frames that ParseGoCrash returned, for the module of the receiver. It
// changes frames.
func (g *GoTables) ShortenPaths(frames []Frame) {
	for i := range frames {
		frames[i].File = g.path(frames[i])
	}
}
