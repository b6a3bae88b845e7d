// Package draws finds the random values that a module draws before its first request: random bytes,
// numbers of its language's generator, and seeds from the clock. The image of the module is taken
// after that, so these values are the same in every request.
//
// Find runs the module's initialization, or the start of a program until it waits for a request, in an
// interpreter, and watches calls of three kinds of functions: the host's random_get, the functions of generators, and functions that seed one. The
// names of functions are from the module's name section. In a Go module they are from the table for
// stack traces, which a stripped module has, too.
//
// A language's runtime draws for itself, for example the seeds of maps. This is left out:
//
//	Go      a draw without a function outside of the standard library; a call of the runtime's
//	        generator that is not from math/rand, math/rand/v2 or hash/maphash
//	Rust    the keys of RandomState, unless a crate makes a generator of them
//	C       the stack guard
//	CPython the seed of its hashes
//
// Two runs show whether the clock is a seed: they get equal random bytes and different times. If a
// function that seeds a generator gets different arguments in the two runs, it was seeded from the
// clock. Every other use of the clock is left out. Seeding functions are identified by their names,
// so one that the compiler has inlined is not found.
package draws
