// Package model builds the model of an app (schema.Schema) from checked syntax trees.
//
//	build.go    declarations → entities, types, sessions, functions
//	rule.go     expressions → rules
//	literal.go  literals → values
//
// Invariants: the trees have no errors, so building cannot fail, and reports nothing. A tree
// that was not checked is a bug of the caller and may panic.
package model
