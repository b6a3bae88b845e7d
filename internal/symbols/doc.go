// Package symbols finds the frames of a handler that failed: its active calls with their functions, files
// and lines. Table finds them by the offsets of instructions: in the name section of a module, in DWARF
// (versions 2 to 5), and in a source map. These are in the module itself or in its debug file.
//
// Modules from Go have no debug information. GoTables finds functions and lines in the tables of Go's runtime,
// and the calls of a goroutine on its stack. Both are in the module's memory. ParseGoCrash reads what the runtime
// writes before it ends a program.
//
// The input is untrusted. Memory and time are linear in the size of the files, with a fixed limit of
// work (see maxWork); names that are returned have a limit too. Damaged parts give fewer frames, never
// a panic. The package does not use debug/dwarf, which copies every string of every entry
// and reads one table of abbreviations for each unit: both are quadratic in hostile files.
//
// Addresses in DWARF for WebAssembly count from the content of the code section. Columns of a source map
// are offsets in the file.
package symbols
