// Package generate writes files from a schema: types of TypeScript and Python for handlers and
// editors, an OpenAPI document, and a TypeScript client.
//
// Invariants: equal schemas produce equal bytes. The output is in order of declaration and
// valid for any names that a schema may have. Documents and clients contain no hidden fields
// and no functions that are not exposed. The package does not use files, the network or the
// clock.
package generate
