// Package draws finds what a module draws before its first request: random bytes, numbers of its
// language's generator, and seeds from the clock. The image of the module is taken after that, so
// all of this is the same in every request.
//
// Find runs the module's initialization in an interpreter, and watches calls of some functions: the
// host's random_get, the functions of generators, and those that seed one. The names of functions
// are from the module's name section, and in a module of Go from the table that its runtime has for
// stack traces, which is also in a stripped module.
//
// A language's runtime draws for itself, for example the seeds of maps. This is left out:
//
//	Go      a draw without a function outside of the standard library; a call of the runtime's
//	        generator that is not from math/rand, math/rand/v2 or hash/maphash
//	Rust    the keys of RandomState, unless a crate makes a generator of them
//	C       the guard of the stack
//
// Whether the clock is a seed is found by two runs: they get equal random bytes and another time. If
// a function that seeds a generator then gets another argument, it was seeded by the clock. Every
// other use of the clock is left out. Such functions are known by their names, so one that the
// compiler has inlined is not seen.
package draws
