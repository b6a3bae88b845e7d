// Package console is the output of the command line: the answer on stdout, messages with the
// prefix "runner:" on stderr, tables, JSON, diagnostics, and errors with exit statuses.
package console
