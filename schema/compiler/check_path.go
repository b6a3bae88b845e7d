package compiler

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"runner.example/internal/diag"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// pathChecker checks the paths of routes and the prefixes of groups.
type pathChecker struct{ *report.Report }

const (
	maxSegments  = 32
	maxPathBytes = 1024
)

// segmentKind distinguishes static text and parameters.
type segmentKind int

const (
	static segmentKind = iota
	param              // :name
	rest               // *name, or * for everything below the path, and the path itself
)

// segment is a segment of a path, without the slash before it.
type segment struct {
	kind segmentKind
	text string
}

// splitPath splits "/a/:b" into its segments; "/" has none.
func splitPath(path string) []segment {
	if path == "/" {
		return nil
	}
	var segments []segment
	for piece := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		switch {
		case strings.HasPrefix(piece, ":"):
			segments = append(segments, segment{param, piece[1:]})
		case strings.HasPrefix(piece, "*"):
			segments = append(segments, segment{rest, piece[1:]})
		default:
			segments = append(segments, segment{static, piece})
		}
	}
	return segments
}

func pathText(segments []segment) string {
	if len(segments) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString([]string{static: "", param: ":", rest: "*"}[s.kind])
		b.WriteString(s.text)
	}
	return b.String()
}

// joinPath joins a path to the prefixes of its groups.
func joinPath(prefix, own []segment) (path string, params []string) {
	whole := append(slices.Clip(prefix), own...)
	for _, s := range whole {
		if s.kind != static && s.text != "" {
			params = append(params, s.text)
		}
	}
	return pathText(whole), params
}

// staticPrefix is the path up to the first parameter, empty without a segment before it.
func staticPrefix(segments []segment) string {
	if n := slices.IndexFunc(segments, func(s segment) bool { return s.kind != static }); n >= 0 {
		segments = segments[:n]
	}
	if len(segments) == 0 {
		return ""
	}
	return pathText(segments)
}

// shapeOf is the path without the names of its parameters.
func shapeOf(path string) string {
	segments := splitPath(path)
	for i := range segments {
		if segments[i].kind != static {
			segments[i].text = ""
		}
	}
	return pathText(segments)
}

// checkPrefix checks the prefix of a group inside the prefix outer. It returns false if a
// segment is not valid.
func (c *pathChecker) checkPrefix(lit *syntax.Literal, outer []segment) ([]segment, bool) {
	prefix := lit.Text
	switch {
	case !strings.HasPrefix(prefix, "/"):
		c.Errorf("E401", lit.Loc, "the prefix %q must begin with /", prefix)
		return nil, false
	case prefix != "/" && strings.HasSuffix(prefix, "/"):
		c.Errorf("E403", lit.Loc, "the prefix %q must not end with /", prefix)
		return nil, false
	}
	segments := splitPath(prefix)
	ok := c.checkSegments(lit.Loc, "prefix", prefix, segments)
	for _, s := range segments {
		if s.kind == rest && ok {
			c.Errorf("E407", lit.Loc, "the rest parameter \"*%s\" must come last: a prefix cannot contain it", s.text)
			ok = false
		}
	}
	return segments, c.checkParams(lit.Loc, outer, segments) && ok
}

// checkPath checks the path of a route inside the prefix outer.
func (c *pathChecker) checkPath(path syntax.Path, outer []segment) ([]segment, bool) {
	if !strings.HasPrefix(path.Raw, "/") {
		c.Errorf("E401", path.Loc, "the path %q must begin with /", path.Raw)
		return nil, false
	}
	segments := splitPath(path.Raw)
	own := segments
	if n := len(own); n > 1 && own[n-1] == (segment{}) {
		own = own[:n-1] // "/a/" and "/a" are different paths, and both are valid
	}
	ok := c.checkSegments(path.Loc, "path", path.Raw, own)
	for i, s := range segments {
		if s.kind == rest && i < len(segments)-1 {
			c.Errorf("E407", path.Loc, "the rest parameter \"*%s\" must come last", s.text)
			ok = false
			break
		}
	}
	return segments, c.checkParams(path.Loc, outer, segments) && ok
}

// checkSegments checks each segment and reports the first error.
func (c *pathChecker) checkSegments(span diag.Span, word, whole string, segments []segment) bool {
	for _, s := range segments {
		switch {
		case s == segment{kind: rest}:
			continue
		case s.kind != static && !syntax.IsName(s.text):
			c.badParam(span, s)
		case s.kind != static:
			continue
		case s.text == "":
			c.Errorf("E408", span, "the %s %q has an empty segment", word, whole)
		case s.text == "." || s.text == "..":
			c.Errorf("E408", span, "the %s %q has a dot segment, which no request can reach", word, whole)
		default:
			bad := strings.IndexFunc(s.text, func(r rune) bool {
				return !syntax.IsLetter(r) && !syntax.IsDigit(r) && !strings.ContainsRune("-._~", r)
			})
			if bad < 0 {
				continue
			}
			if meant := paramOf(s.text); meant != "" {
				c.Errorf("E409", span, "the %s %q has %q: a parameter is written %s", word, whole, s.text, meant)
				return false
			}
			r, _ := utf8.DecodeRuneInString(s.text[bad:])
			c.Errorf("E409", span,
				"the %s %q has the character '%c': only letters, digits, - . _ ~ and parameters are allowed", word, whole, r)
		}
		return false
	}
	return true
}

// otherParams are the forms of parameters in other routers: {id}, {id:int}, <id>, <int:id>, [id], $id; and for
// all the rest of a path {path...}, {*path}, {path+}, <path:path>, [...path].
var otherParams = []struct {
	form *regexp.Regexp
	mark string
}{
	{regexp.MustCompile(`^(?:\{\*\*?(\w+)\}|\{(\w+)(?:\.\.\.|\+|:path)\}|<path:(\w+)>|\[\[?\.\.\.(\w+)\]?\])$`), "*"},
	{regexp.MustCompile(`^(?:\{(\w+)(?::[^{}]*)?\??\}|<(?:\w+:)?(\w+)>|\[(\w+)\]|\$(\w+))$`), ":"},
}

// paramOf is the parameter that a segment in the form of another router was meant to be, or "".
func paramOf(text string) string {
	for _, other := range otherParams {
		if m := other.form.FindStringSubmatch(text); m != nil {
			if name := strings.Join(m[1:], ""); syntax.IsName(name) {
				return other.mark + name
			}
		}
	}
	return ""
}

func (c *pathChecker) badParam(span diag.Span, s segment) {
	mark, called, name := ":", "colon", "a name"
	if s.kind == rest {
		mark, called = "*", "star"
	}
	if s.text != "" {
		name = "a name of letters, digits and _"
	}
	c.Errorf("E404", span, "%q is not a parameter: %s must follow the %s", mark+s.text, name, called)
}

// checkParams reports a parameter of own that repeats one of outer or own.
func (c *pathChecker) checkParams(span diag.Span, outer, own []segment) bool {
	seen := map[string]bool{}
	for _, s := range outer {
		if s.kind != static {
			seen[s.text] = true
		}
	}
	for _, s := range own {
		if s.kind == static || s.text == "" {
			continue
		}
		if seen[s.text] {
			c.Errorf("E405", span, "parameter :%s is given twice in %s", s.text, pathText(append(slices.Clip(outer), own...)))
			return false
		}
		seen[s.text] = true
	}
	return true
}

// shorten quotes a path and cuts it if it is too long for a message.
func shorten(path string) string {
	if len(path) > 60 {
		path = path[:60] + "…"
	}
	return strconv.Quote(path)
}
