// Package charset decodes the legacy encodings of the Encoding Standard, with its labels, its indexes and its
// treatment of malformed input. UTF-8, UTF-16 and windows-1252 are not among them: guests decode these themselves. It
// does not encode.
//
// A decoder has no state between two pieces but the text that Decode returns.
package charset
