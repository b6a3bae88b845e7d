package fileinfo

import (
	"bytes"
	"encoding/xml"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// SniffBytes is how many first bytes of a file Type looks at.
const SniffBytes = 4 << 10

// unknown is the type of bytes that are not known.
const unknown = "application/octet-stream"

// Type returns the media type of a file whose first bytes are these, without parameters, in lower case. It looks at no
// more than SniffBytes. Bytes that are not known are application/octet-stream, text is text/plain.
func Type(first []byte) string {
	first = first[:min(len(first), SniffBytes)]
	found := withoutParameters(mimetype.Detect(first).String())
	if found == unknown {
		found = withoutParameters(http.DetectContentType(first))
	}
	if strings.HasPrefix(found, "text/") && isSVG(first) {
		return "image/svg+xml"
	}
	return found
}

// Refine returns the type of a file that a handler has made: the one found, unless the handler has declared a closer one
// for a text, or any for bytes that are not known. Both have no parameters; declared may be empty.
func Refine(found, declared string) string {
	closer := found == "text/plain" && (strings.HasPrefix(declared, "text/") || strings.HasPrefix(declared, "application/"))
	if closer || found == unknown && strings.HasPrefix(declared, "application/") {
		return declared
	}
	return found
}

// MediaType returns the media type of a Content-Type, in lower case and without parameters; empty: it is not valid, or
// longer than MaxName.
func MediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || len(media) > MaxName || !strings.Contains(media, "/") {
		return ""
	}
	return media
}

func withoutParameters(media string) string {
	media, _, _ = strings.Cut(media, ";")
	return media
}

// isSVG reports whether text is an XML document whose first element is svg, whatever comes before it.
func isSVG(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = false
	for {
		token, err := d.RawToken()
		if err != nil {
			return false
		}
		switch token := token.(type) {
		case xml.StartElement:
			return token.Name.Local == "svg"
		case xml.CharData:
			if len(bytes.TrimSpace(token)) > 0 {
				return false
			}
		}
	}
}
