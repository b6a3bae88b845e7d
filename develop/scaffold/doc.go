// Package scaffold creates the directory of a small complete app: a schema, handlers in one of
// several languages, settings, a test and a README.md.
package scaffold
