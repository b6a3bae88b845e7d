// Package wasm reads and rewrites WebAssembly modules (Core 2.0): it says what
// a module is made of, refuses what cannot or must not be run before a compiler
// sees it, counts its work (fuel), bounds its stack, exports its mutable
// globals, and takes its initial data out of it.
//
// It runs nothing and knows no engine. It decodes every instruction and checks
// every index and every length, but no types: that is left to the compiler,
// which must still be asked. What is rewritten is valid exactly when the
// original is, and means the same.
//
// Encodings that decoders are known to read differently (instruction prefixes
// and block types of more bytes than needed) are refused, so that nothing can
// be code for the compiler which was not code here.
//
// Everything here but ReadFile is a function of its input alone, needs memory
// linear in it, and may be called from any goroutine. A Module borrows the bytes
// that it was parsed from, which must not change while it is in use.
package wasm
