// Package build makes WebAssembly modules of handlers' sources.
//
// The files handlers/*.ts and *.js of an app become one module, with nothing but
// this program:
//
//	bundle     esbuild makes one script of the files and of what they import
//	evaluate   a JavaScript engine, itself a WebAssembly module, runs it once
//	link       the engine's memory as it is then becomes the data of a new module,
//	           which has the engine's code, the guest ABI for its imports and one
//	           export for each exported function
//
// So a request begins with everything evaluated, and the runner that serves the
// module does not know that it is JavaScript. A folder handlers/<name> with a
// go.mod, a Cargo.toml, a package.json that names assemblyscript or files of C or C++
// becomes a module of its own, by the language's own toolchain.
//
// What always holds: equal sources and equal SDK make equal bytes; what stands
// outside of functions has no host, no randomness and a fixed clock, and asking for
// what belongs to a request is a mistake with a place, not a surprise later;
// mistakes in sources are diagnostics, all at once; files are replaced whole.
//
// What never happens here: downloading anything, or leaving files outside of the app's
// folder build. A toolchain may do both by itself, as cargo does with crates, which it
// keeps in the user's cache, and with the Cargo.lock beside a crate's manifest.
//
// Nothing here is shared: Build may be called from several goroutines, for
// different folders.
package build
