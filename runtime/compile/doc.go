// Package compile compiles rewritten WebAssembly modules to native code, within limits of
// CPU time and memory, and keeps the code in a cache on disk.
//
// A Compiler owns the runtime of wazero and its compilation cache. Modules whose rewritten
// bytes are equal share one Code.
//
//	Code ── in memory ── in the cache ── compiled here, if certainly cheap
//	                                  └─ compiled in a separate process (Main)
//
// For native code a Code knows the instruction of the original module (Original). Only failures need
// that, so it is a file that is read then.
//
// The package does not rewrite modules, and does not run them. Any goroutine may use a
// Compiler.
package compile
