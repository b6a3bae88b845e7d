// Package toolchain compiles handlers' sources to WebAssembly modules.
//
// The files handlers/*.ts and *.js of an app are built into one module, by package typescript. A
// directory handlers/<name> with a go.mod, a Cargo.toml, a package.json that names
// assemblyscript, or files of C or C++ is built into its own module, by the tools of its
// language. Each language is a row in languages.go. It turns a source into the bytes of a module and
// adds errors to a list; finding sources, checking, writing and recording are the same for all.
//
// Invariants: equal sources and an equal SDK make equal bytes. Errors in sources are diagnostics,
// all at once. Files are replaced as a whole.
//
// This package never downloads anything, and writes only to the app's directory build. A
// language's tools may do both: cargo downloads crates to the user's cache and writes Cargo.lock.
//
// Build may be called from several goroutines for different directories.
package toolchain
