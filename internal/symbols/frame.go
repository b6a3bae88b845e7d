package symbols

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxFrames is the largest number of frames of one failure.
const MaxFrames = 32

// Frame is an active call. Everything in it may be unknown.
type Frame struct {
	Function string // as in the source
	File     string // relative to the app directory if the file is in there
	// Line and Column count from 1; 0: unknown.
	Line, Column int
	// Offset is that of the instruction in the module's file as uploaded; 0: unknown.
	Offset int64
}

// String returns the frame in one line, without what is unknown: function (file:line:column) at offset.
func (f Frame) String() string {
	place := f.File
	if f.File != "" && f.Line > 0 {
		place += ":" + strconv.Itoa(f.Line)
		if f.Column > 0 {
			place += ":" + strconv.Itoa(f.Column)
		}
	}
	text := f.Function
	switch {
	case text == "":
		text = place
	case place != "":
		text += " (" + place + ")"
	}
	if f.Offset > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s at %#x", text, f.Offset), " at ")
	}
	return text
}

var (
	reportedFrame = regexp.MustCompile(`^ +at (?:(.*?) \()?([^()]*?)\)?$`)
	reportedPlace = regexp.MustCompile(`^(.*?)(?::(\d+))?(?::(\d+))?$`)
)

// ParseFrame reads a frame as guests report it: spaces, "at ", and then "function
// (file:line:column)" or "file:line:column". The column, or it and the line, may be missing.
func ParseFrame(line string) (f Frame, ok bool) {
	if !strings.HasPrefix(strings.TrimLeft(line, " "), "at ") {
		return f, false // most lines
	}
	m := reportedFrame.FindStringSubmatch(line)
	if m == nil {
		return f, false
	}
	at := reportedPlace.FindStringSubmatch(m[2])
	if at == nil {
		return f, false
	}
	f.Function, f.File = m[1], at[1]
	f.Line, _ = strconv.Atoi(at[2])
	f.Column, _ = strconv.Atoi(at[3])
	return f, f.Function != "" || f.File != ""
}

// Join returns the frames of a failure that the guest has reported and the host has seen. If the
// guest has named functions, it knows its calls best. If it knows only the place, the frames are
// those of the host from that place on: the ones before it are of the code that reports.
func Join(reported, seen []Frame) []Frame {
	if len(reported) == 0 {
		for len(seen) > 1 && strings.HasSuffix(seen[0].File, "include/src/failure.c") { // of the SDK for C
			seen = seen[1:]
		}
		return seen
	}
	if reported[0].Function != "" {
		return reported
	}
	for i := range seen {
		if seen[i].Line == reported[0].Line && sameFile(seen[i].File, reported[0].File) {
			return seen[i:]
		}
	}
	all := append(reported[:len(reported):len(reported)], seen...)
	return all[:min(len(all), MaxFrames)]
}

// sameFile reports whether both names may be of one file, relative to different directories.
func sameFile(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	return b != "" && (a == b || strings.HasSuffix(a, "/"+b))
}
