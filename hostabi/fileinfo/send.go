package fileinfo

import "strings"

// shown are the media types that a browser shows without running anything. With a star: all of that group but XML.
var shown = map[string]bool{
	"image/*": true, "audio/*": true, "video/*": true, "font/*": true,
	"text/plain": true, "text/csv": true, "text/markdown": true,
}

// Shown reports whether a browser shows files of a media type without running them. HTML, SVG and other XML, scripts, PDF
// and whatever is not known are not.
func Shown(media string) bool {
	if strings.HasSuffix(media, "+xml") {
		return false
	}
	group, _, _ := strings.Cut(media, "/")
	return shown[media] || shown[group+"/*"]
}

// scripts are the JavaScript MIME types of the WHATWG's MIME Sniffing Standard: with another type and nosniff, no browser
// runs a file as a script or a worker.
var scripts = map[string]bool{
	"application/ecmascript": true, "application/javascript": true, "application/x-ecmascript": true,
	"application/x-javascript": true, "text/ecmascript": true, "text/javascript": true, "text/javascript1.0": true,
	"text/javascript1.1": true, "text/javascript1.2": true, "text/javascript1.3": true, "text/javascript1.4": true,
	"text/javascript1.5": true, "text/jscript": true, "text/livescript": true, "text/x-ecmascript": true,
	"text/x-javascript": true,
}

// ContentType returns the Content-Type of a file with a media type: text is sent as UTF-8, and a script as plain text, so
// that a page of the app cannot be made to run what a user has uploaded.
func ContentType(media string) string {
	if essence, _, _ := strings.Cut(media, ";"); scripts[strings.ToLower(strings.TrimSpace(essence))] {
		return "text/plain; charset=utf-8"
	}
	if strings.HasPrefix(media, "text/") && !strings.Contains(media, ";") {
		return media + "; charset=utf-8"
	}
	return media
}

// Sandboxed reports whether a browser must show a file of a media type without its scripts, forms and origin, if it shows
// the file at all. PDF is not: browsers isolate it, and do not show it in a sandbox.
func Sandboxed(media string) bool { return !Shown(media) && media != "application/pdf" }

// AppendDisposition appends the value of a Content-Disposition (RFC 6266). kind is inline or attachment, name the name of
// the file, which may have any characters: where it cannot be sent as it is, it is encoded (RFC 8187) beside a plain form
// for old clients.
func AppendDisposition(b []byte, kind, name string) []byte {
	b = append(append(b, kind...), `; filename="`...)
	plain := true
	for _, c := range name {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '%' || c == '/' { // a percent sign, because some clients decode it
			c, plain = '_', false
		}
		b = append(b, byte(c))
	}
	b = append(b, '"')
	if plain {
		return b
	}
	b = append(b, `; filename*=UTF-8''`...)
	for i := range len(name) {
		if c := name[i]; isAttributeByte(c) {
			b = append(b, c)
		} else {
			const digits = "0123456789ABCDEF"
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// isAttributeByte reports whether a byte is an attr-char of RFC 8187.
func isAttributeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0
}
