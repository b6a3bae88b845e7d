// Package content evaluates the conditions and ranges of a GET or HEAD request (RFC 9110, sections 13 and 14): which
// status and headers the answer has, and which bytes of the content. Package front sends the answer.
//
// The package needs only the size, type, ETag and time of a Content. It does not open or read its bytes.
package content
