package schema

import (
	"fmt"
	"strings"

	"runner.example/internal/diag"
)

// Assets is a directory whose files the server sends, with its effective settings.
type Assets struct {
	// Path is the path of the directory with the prefixes of its groups: "/docs". It has no parameters, and only "/"
	// ends with a slash.
	Path string
	// Dir is the directory, a path with slashes relative to the app directory. DirSpan is its place.
	Dir     string
	DirSpan diag.Span
	// SPA is the file of the directory that answers navigations to paths without a file; empty: there is none. SPASpan is
	// its place.
	SPA     string
	SPASpan diag.Span
	// Headers are added to each answer, or replace a default of the same name. An empty value removes the default.
	Headers []Header
	Auth    Auth
	// Limits all apply.
	Limits []RateLimit
	// CORS are the origins whose pages may read the files; "*" is any.
	CORS []string
	// CSRFOff (csrf: off of a group) accepts session cookies in requests from pages of any origin.
	CSRFOff bool
	Doc     string
	// Span is the span of the declaration.
	Span diag.Span
}

// Header is a header field of an answer.
type Header struct{ Name, Value string }

// Route returns what admits requests for the files: a route with this path, without a handler.
func (a *Assets) Route() *Route {
	path := a.Path + "/*"
	if a.Path == "/" {
		path = "/*"
	}
	return &Route{
		Method: "GET", Path: path, Auth: a.Auth, Limits: a.Limits, CORS: a.CORS, CSRFOff: a.CSRFOff, Doc: a.Doc, Span: a.Span,
	}
}

// NoteOmitted warns about files of the directory that are not served, because their names begin with a dot.
func (a *Assets) NoteOmitted(paths []string) (found diag.List) {
	if n := len(paths); n > 0 {
		more := ""
		if n > maxOmitted {
			paths, more = paths[:maxOmitted], fmt.Sprintf(" and %d more", n-maxOmitted)
		}
		found.Warnf("W576", a.DirSpan, "assets of %s: names that begin with a dot are left out: %s%s (remove them, or give them other names)",
			a.Path, strings.Join(paths, ", "), more)
	}
	return found
}

// maxOmitted limits the paths in a warning.
const maxOmitted = 5

// CheckFiles reports what is wrong with the directory, and with spa: problems are sentences about the directory that name
// what is wrong, and what to do. has reports whether the directory has the file of spa.
func (a *Assets) CheckFiles(problems []string, has bool) (found diag.List) {
	for _, problem := range problems {
		found.Errorf("E575", a.DirSpan, "assets of %s: %s", a.Path, problem)
	}
	if len(problems) == 0 && a.SPA != "" && !has {
		found.Errorf("E575", a.SPASpan, "spa: directory %s has no file %s: name one of its files", a.Dir, a.SPA)
	}
	return found
}
