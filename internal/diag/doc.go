// Package diag points at a place in a file, says what is wrong there and what
// to do about it.
//
// Whoever reads a text written by a user (a schema, the configuration file)
// collects Diagnostics in a List and goes on reading, so that every mistake of
// a file is told at once. Printing is separate from finding: the same List
// becomes lines for people or JSON for programs.
//
// What always holds: lines and columns count from 1, a column is a Unicode code
// point, and nothing of a source is printed that could steer a terminal.
// What never happens here: reading files, exiting, deciding what is a mistake.
package diag
