// Package compiler checks the schema files of an app and reports diagnostics.
//
// Compile parses all files of an app, checks them together and builds the model
// (schema.Schema).
//
//	syntax.Parse  text → tree, one file at a time
//	names.go      declarations by name, over all files
//	check_*.go    one checker for each part of the language
//	model.Build   tree → model, if there are no errors
//
// Invariants: every error of an app is reported at once, at the place to fix. An error
// does not cause others: what may depend on an unreadable part is not reported. The
// package does not read files, and does not use the network or the clock.
package compiler
