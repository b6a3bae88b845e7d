// Package format writes schema files in canonical form.
//
// Format parses a file and writes its tree token by token. It refuses a file with syntax
// errors, and does not read or write files itself.
//
// Invariants: formatting preserves the meaning and the comments, and formatting the result
// again changes nothing.
package format
