// Package diag describes errors and warnings in files that a user wrote, with their
// positions.
//
// A package that reads such a file (a schema, the configuration) collects Diagnostics in a
// List and continues, so that all errors are reported at once. A List is printed as text for
// people or as JSON for programs.
//
// Invariants: lines and columns count from 1, and a column is a Unicode code point. Nothing
// is printed that could control a terminal. The package does not read files, does not exit,
// and does not decide what is an error.
package diag
