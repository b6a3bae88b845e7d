// Package syntax parses the schema language. It knows the grammar, not the meaning: names are
// not resolved and types are not checked.
//
// Load reads the schema files of an app. Parse returns the tree of one file (File) and a
// diagnostic for every lexical and syntax error.
//
// Invariants: Parse accepts any bytes and never panics. It reports each error once and
// continues after it. Nesting is limited to 64 levels, so a recursive walk of the tree
// cannot overflow the stack.
package syntax
