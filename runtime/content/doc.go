// Package content decides which bytes of a content answer a request, by its conditions and ranges (RFC 9110, sections
// 13 and 14), and which headers the answer has. It sends nothing: package front does.
//
// A content is known by its size, type and tag. Its bytes are opened only if they are sent, and are never in memory as
// a whole.
package content
