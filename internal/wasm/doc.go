// Package wasm parses and rewrites WebAssembly modules (Core 2.0, tail calls, atomics, extended
// constant expressions). It refuses modules that
// cannot be run before a compiler sees them. Rewriting makes a module count its work (fuel),
// bounds its stack, exports its mutable globals, and removes its initial data. For arm64 it
// replaces remainders, which the compiler does wrong. It can keep a map from the new code to the
// original. WithoutDispatch gives functions of Go loops that compilers understand. Merge makes one
// module of several that are linked, and Interruptible one that interpreters can end.
//
// The package does not run modules, and does not depend on an engine. It decodes every
// instruction and checks every index and every length, but not types: the compiler does. A
// rewritten module is valid exactly if the original is, and means the same; WithoutDispatch relies
// on what Go's compiler does.
//
// Encodings that decoders are known to read differently (instruction prefixes and block types
// of more bytes than needed) are refused. So the compiler cannot read code that was not code
// here.
//
// All functions except ReadFile depend only on their input, and Rewrite on GOARCH if its
// options name no target. They need memory linear in the input, and may be called from any
// goroutine. A Module borrows the bytes that it was parsed from, which must not change while
// it is in use.
package wasm
