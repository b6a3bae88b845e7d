package schema

import (
	"fmt"
	"strings"

	"runner.example/internal/diag"
)

// Assets is a directory whose files the server sends, with its effective settings.
type Assets struct {
	// Path is the path of URLs, with the prefixes of the groups: "/docs". It has no parameters, and only "/" ends with a
	// slash.
	Path string
	// Dir is the path of the directory, with slashes and relative to the app directory. DirSpan is its span.
	Dir     string
	DirSpan diag.Span
	// SPA is the file of the directory that answers navigations to paths without a file; empty: there is none. SPASpan is
	// its span.
	SPA     string
	SPASpan diag.Span
	// Headers are added to each answer, or replace a default of the same name. An empty value removes the default.
	Headers []Header
	Auth    Auth
	// Limits all apply.
	Limits []RateLimit
	// CORS are the origins whose pages may read the files; "*" is any origin.
	CORS []string
	// CSRFOff is csrf: off of a group: session cookies are accepted in requests from pages of any origin.
	CSRFOff bool
	Doc     string
	// Span is the span of the declaration.
	Span diag.Span
}

// Header is a header of an answer.
type Header struct{ Name, Value string }

// Route returns a route without a handler, whose settings decide who may request the files.
func (a *Assets) Route() *Route {
	path := a.Path + "/*"
	if a.Path == "/" {
		path = "/*"
	}
	return &Route{
		Method: "GET", Path: path, Auth: a.Auth, Limits: a.Limits, CORS: a.CORS, CSRFOff: a.CSRFOff, Doc: a.Doc, Span: a.Span,
	}
}

// WarnOmitted warns about files of the directory that are not served because their names begin with a dot.
func (a *Assets) WarnOmitted(paths []string) (found diag.List) {
	if n := len(paths); n > 0 {
		more := ""
		if n > maxOmitted {
			paths, more = paths[:maxOmitted], fmt.Sprintf(" and %d more", n-maxOmitted)
		}
		found.Warnf("W576", a.DirSpan, "assets of %s: files whose names begin with a dot are not served: %s%s (remove or rename them)",
			a.Path, strings.Join(paths, ", "), more)
	}
	return found
}

// maxOmitted limits the paths that the warning lists.
const maxOmitted = 5

// CheckFiles reports errors of the directory and of spa. problems are those of the directory: each says what is wrong and
// what to do. hasSPA says whether the directory has the file of spa.
func (a *Assets) CheckFiles(problems []string, hasSPA bool) (found diag.List) {
	for _, problem := range problems {
		found.Errorf("E575", a.DirSpan, "assets of %s: %s", a.Path, problem)
	}
	if len(problems) == 0 && a.SPA != "" && !hasSPA {
		found.Errorf("E575", a.SPASpan, "spa: directory %s has no file %s: name one of its files", a.Dir, a.SPA)
	}
	return found
}
