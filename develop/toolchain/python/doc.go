// Package python builds the module of handlers in Python: CPython for WASI, which starts once and
// waits for its requests, and the tree of files that it runs.
//
//	collect    the SDK, the app's directory handlers, its installed packages, and what the SDK must know of
//	           the schema become the files of the tree
//	compile    CPython itself compiles each source, in the runner's own sandbox; the bytecode is kept
//	start      the module is started as a server starts it, so that an error in an import is one of the build
//
// The interpreter's bytes are the same for all apps and releases, so they share its file and its compiled code.
//
// Invariants: equal sources, packages and schemas, and an equal interpreter and SDK, make equal bytes. Errors in
// sources are diagnostics, all at once. Machine code in packages is left out with a warning. A package that is known
// not to work without it is refused.
//
// This package writes only to the cache and, when it installs packages, to the app's directory python_packages. Package
// managers that it runs may download.
//
// One goroutine at a time may use an Interpreter and the builds with it.
package python
