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

// ContentType returns the Content-Type of a file with a media type: text is sent as UTF-8.
func ContentType(media string) string {
	if strings.HasPrefix(media, "text/") && !strings.Contains(media, ";") {
		return media + "; charset=utf-8"
	}
	return media
}

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
