package assets

import (
	"path"
	"strings"
)

// mediaTypes are those of the extensions of files. The table is fixed, so a release has the same types on every machine.
var mediaTypes = map[string]string{
	"7z": "application/x-7z-compressed", "aac": "audio/aac", "apng": "image/apng", "atom": "application/atom+xml", "avif": "image/avif",
	"avi": "video/x-msvideo", "bin": "application/octet-stream", "bmp": "image/bmp", "br": "application/octet-stream",
	"bz2": "application/x-bzip2", "cjs": "text/javascript", "css": "text/css", "csv": "text/csv", "eot": "application/vnd.ms-fontobject",
	"epub": "application/epub+zip", "flac": "audio/flac", "geojson": "application/geo+json", "gif": "image/gif", "glb": "model/gltf-binary",
	"gltf": "model/gltf+json", "gz": "application/gzip", "heic": "image/heic", "htm": "text/html", "html": "text/html",
	"ico": "image/x-icon", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript",
	"json": "application/json", "jsonld": "application/ld+json", "jxl": "image/jxl", "m4a": "audio/mp4", "m4v": "video/mp4",
	"manifest": "text/cache-manifest", "map": "application/json", "md": "text/markdown", "mjs": "text/javascript", "mov": "video/quicktime",
	"mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg",
	"opus": "audio/ogg", "otf": "font/otf", "pdf": "application/pdf", "png": "image/png", "rss": "application/rss+xml",
	"rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff", "tiff": "image/tiff",
	"toml": "application/toml", "ttf": "font/ttf", "txt": "text/plain", "vtt": "text/vtt", "wasm": "application/wasm",
	"wav": "audio/wav", "weba": "audio/webm", "webm": "video/webm", "webmanifest": "application/manifest+json", "webp": "image/webp",
	"woff": "font/woff", "woff2": "font/woff2", "xhtml": "application/xhtml+xml", "xml": "application/xml", "xsl": "application/xslt+xml",
	"yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip", "zst": "application/zstd",
}

// unknownType is the type of files with another extension, and of those without one.
const unknownType = "application/octet-stream"

// shrinking are the types without text/ whose files usually shrink.
var shrinking = map[string]bool{
	"application/atom+xml": true, "application/geo+json": true, "application/json": true, "application/ld+json": true,
	"application/manifest+json": true, "application/rss+xml": true, "application/rtf": true, "application/toml": true,
	"application/vnd.ms-fontobject": true, "application/wasm": true, "application/xhtml+xml": true, "application/xml": true,
	"application/xslt+xml": true, "application/yaml": true, "font/otf": true, "font/ttf": true, "image/bmp": true, "image/svg+xml": true,
	"image/x-icon": true, "model/gltf+json": true, "model/gltf-binary": true, "application/x-tar": true,
}

// typeOf returns the media type of a file by the extension of its name. shrinks reports whether such files usually
// have compressed forms that are smaller.
func typeOf(name string) (media string, shrinks bool) {
	media, ok := mediaTypes[strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))]
	if !ok {
		return unknownType, false
	}
	text := strings.HasPrefix(media, "text/")
	shrinks = text || shrinking[media]
	if text || strings.HasSuffix(media, "xml") || strings.HasSuffix(media, "json") || media == "application/yaml" || media == "application/toml" {
		media += "; charset=utf-8"
	}
	return media, shrinks
}
