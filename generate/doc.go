// Package generate writes what others read of a schema: types for handlers and
// for the editors in which they are written, a document of OpenAPI, and a client in
// TypeScript.
//
// What always holds: equal schemas make equal bytes; what is written is in the
// order of declaration and holds whatever names a schema may have; what callers
// read has no hidden field and no function that is not exposed. What never
// happens here: files, clocks, network.
package generate
