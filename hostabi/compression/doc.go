// Package compression compresses and decompresses data that comes in pieces, in the formats of the Compression Standard:
// gzip (RFC 1952), deflate (RFC 1950), deflate-raw (RFC 1951) and brotli (RFC 7932).
//
// A Stream returns no more than about MaxPiece bytes at once, so that its user can count what it decompresses to. It
// owns a goroutine, which Close ends.
package compression
