package content

import (
	"bytes"
	"net/http"
	"time"
)

// Request has the conditional headers and the Range of a GET or HEAD request; nil: the request does not have the header.
// Several lines of IfMatch or IfNoneMatch are joined with commas.
type Request struct {
	// HeadOnly: the method is HEAD, which ignores Range.
	HeadOnly bool

	IfMatch, IfNoneMatch, IfModifiedSince, IfUnmodifiedSince, IfRange, Range []byte
}

// status evaluates the conditions in the order of RFC 9110, section 13.2.2. It returns 304, 412, or 200 to send the
// content.
func (r *Request) status(c *Content) int {
	switch {
	case len(r.IfMatch) > 0:
		if !matches(r.IfMatch, c.ETag, strongEqual) {
			return http.StatusPreconditionFailed
		}
	case len(r.IfUnmodifiedSince) > 0 && c.hasTime():
		if since, ok := parseTime(r.IfUnmodifiedSince); ok && c.Modified.Truncate(time.Second).After(since) {
			return http.StatusPreconditionFailed
		}
	}
	switch {
	case len(r.IfNoneMatch) > 0:
		if matches(r.IfNoneMatch, c.ETag, weakEqual) {
			return http.StatusNotModified
		}
	case len(r.IfModifiedSince) > 0 && c.hasTime():
		if since, ok := parseTime(r.IfModifiedSince); ok && !c.Modified.Truncate(time.Second).After(since) {
			return http.StatusNotModified
		}
	}
	return http.StatusOK
}

// wantsRange reports whether the Range applies: there is no If-Range, or it matches this content.
func (r *Request) wantsRange(c *Content) bool {
	if r.HeadOnly || len(r.Range) == 0 {
		return false
	}
	if len(r.IfRange) == 0 {
		return true
	}
	if tag, _ := cutTag(r.IfRange); tag != nil {
		return c.ETag != "" && strongEqual(tag, c.ETag)
	}
	since, ok := parseTime(r.IfRange)
	return ok && c.hasTime() && since.Unix() == c.Modified.Unix()
}

// strongEqual compares an entity tag with a strong one (RFC 9110, section 8.8.3.2): a weak tag never equals it.
func strongEqual(a []byte, strong string) bool { return string(a) == strong }

// weakEqual compares two entity tags, and ignores that the first is weak.
func weakEqual(a []byte, strong string) bool {
	return string(bytes.TrimPrefix(a, weakPrefix)) == strong
}

// weakPrefix begins weak entity tags.
var weakPrefix = []byte("W/")

// matches reports whether a list of entity tags has tag, or is *. What follows a malformed element is ignored.
func matches(list []byte, tag string, equal func(a []byte, strong string) bool) bool {
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
		if tag != "" && equal(other, tag) {
			return true
		}
		list = rest
	}
}

// cutTag cuts the first entity tag off s; tag is nil if s does not begin with one.
func cutTag(s []byte) (tag, rest []byte) {
	s = trimBlanks(s)
	start := 0
	if bytes.HasPrefix(s, weakPrefix) {
		start = len(weakPrefix)
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
