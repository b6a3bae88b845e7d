package content

import (
	"bytes"
	"net/http"
	"time"
)

// Request is what the headers of a GET or HEAD say about the content that they ask for. Nil: the request has no such header.
// Several lines of IfMatch or IfNoneMatch are joined with commas.
type Request struct {
	// HeadOnly: it is a HEAD, for which no ranges are defined.
	HeadOnly bool

	IfMatch, IfNoneMatch, IfModifiedSince, IfUnmodifiedSince, IfRange, Range []byte
}

// status evaluates the conditions in the order of RFC 9110, section 13.2.2. It returns 304, 412, or 200 if the content is
// to be sent.
func (r *Request) status(c *Content) int {
	switch {
	case len(r.IfMatch) > 0:
		if !matches(r.IfMatch, c.ETag, false) {
			return http.StatusPreconditionFailed
		}
	case len(r.IfUnmodifiedSince) > 0 && c.hasTime():
		if since, ok := parseTime(r.IfUnmodifiedSince); ok && c.Modified.Truncate(time.Second).After(since) {
			return http.StatusPreconditionFailed
		}
	}
	switch {
	case len(r.IfNoneMatch) > 0:
		if matches(r.IfNoneMatch, c.ETag, true) {
			return http.StatusNotModified
		}
	case len(r.IfModifiedSince) > 0 && c.hasTime():
		if since, ok := parseTime(r.IfModifiedSince); ok && !c.Modified.Truncate(time.Second).After(since) {
			return http.StatusNotModified
		}
	}
	return http.StatusOK
}

// wantsRange reports whether the Range applies: If-Range, if there is one, names exactly this content.
func (r *Request) wantsRange(c *Content) bool {
	if r.HeadOnly || len(r.Range) == 0 {
		return false
	}
	if len(r.IfRange) == 0 {
		return true
	}
	if tag, _ := cutTag(r.IfRange); tag != nil {
		return c.ETag != "" && string(tag) == c.ETag // a weak one never is
	}
	since, ok := parseTime(r.IfRange)
	return ok && c.hasTime() && since.Unix() == c.Modified.Unix()
}

// matches reports whether a list of entity tags has tag. The list ends where it is malformed. weak: W/"a" equals "a".
func matches(list []byte, tag string, weak bool) bool {
	for {
		list = trimBlanks(list)
		switch {
		case len(list) == 0:
			return false
		case list[0] == ',':
			list = list[1:]
			continue
		case list[0] == '*':
			return true
		}
		other, rest := cutTag(list)
		if other == nil {
			return false
		}
		if weak {
			other = bytes.TrimPrefix(other, []byte("W/"))
		}
		if tag != "" && string(other) == tag {
			return true
		}
		list = rest
	}
}

// cutTag returns the entity tag that s begins with, with its quotes, and what follows; nil: it begins with none.
func cutTag(s []byte) (tag, rest []byte) {
	s = trimBlanks(s)
	start := 0
	if bytes.HasPrefix(s, []byte("W/")) {
		start = 2
	}
	if len(s)-start < 2 || s[start] != '"' {
		return nil, nil
	}
	for i := start + 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[:i+1], s[i+1:]
		case c == 0x21 || c >= 0x23 && c <= 0x7e || c >= 0x80:
		default:
			return nil, nil
		}
	}
	return nil, nil
}

func parseTime(s []byte) (time.Time, bool) {
	t, err := http.ParseTime(string(s))
	return t, err == nil
}

func trimBlanks(s []byte) []byte { return bytes.Trim(s, " \t") }
