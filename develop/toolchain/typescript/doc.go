// Package typescript builds one WebAssembly module from handlers in TypeScript and JavaScript.
//
// It needs no other tools:
//
//	bundle     esbuild makes one script of the files and their imports
//	evaluate   a JavaScript engine, itself a WebAssembly module, runs it once
//	link       the engine's memory then becomes the data of a new module, which has the
//	           engine's code, faster functions for JSON and regular expressions, imports the
//	           guest ABI, and has one export for each exported function
//
// So a request begins with everything evaluated, and the server does not know that the module
// is JavaScript. The code contains nothing of the handlers, so TypeScript modules share
// their compiled code. Those with AsyncLocalStorage have more functions (functions/flow.c), and
// share their code with each other only.
//
// The scripts that are evaluated before the handlers come from sdk/typescript/src: runtime.ts, and those of
// parts.go whose names the handlers' script contains. nodemodules.go resolves imports of modules of Node.js.
//
// The functions of JSON are written in C (functions/json.c) and compiled ahead. One makes values
// from the host's bytes: a body, or the result of an operation. One writes a value for the
// host: a response, or the arguments of an operation. Both also replace JSON.parse and
// JSON.stringify in the engine's code. They read the engine's objects directly. Some cases they
// leave to the engine, without an effect: syntax errors, getters, toJSON, objects of classes
// other than dates, and nesting of more than 64 levels. Arguments with a value that JSON cannot
// represent are left to the SDK (plain.ts), which refuses them with an error that names the
// value.
//
// The function that finds one match of a regular expression (functions/regexp.c) replaces the
// engine's. It runs the instructions that the engine compiles an expression to, and finds the
// same matches. The methods replace, match and split have a shorter way for expressions whose class is
// not changed.
//
// Other functions of the folder do common work of the interpreter and of the library in place of the
// engine's (values.c, numbers.c). What is unusual they leave to the engine's functions.
//
// Invariants: equal sources and an equal SDK make equal bytes. Code outside functions has no
// host, no randomness and a fixed clock. If it needs a request or reads the clock, the build reports
// its place. Errors in sources are diagnostics, all at once.
//
// This package never downloads anything, and writes only to the directory of the compiled engine.
//
// Build may be called from several goroutines.
package typescript
