// Package syntax parses and formats the schema language. It knows the grammar, not the
// meaning: names are not resolved and types are not checked.
//
// Load reads the schema files of an app. Parse returns the tree of one file (File) and a
// diagnostic for every lexical and syntax error. Format returns a file in canonical form.
//
// Invariants: Parse accepts any bytes and never panics. It reports each error once and
// continues after it. Nesting is limited to 64 levels, so a recursive walk of the tree
// cannot overflow the stack. Formatting preserves the meaning and the comments, and
// formatting the result again changes nothing.
package syntax
