// Package symbols names the places at which a handler failed: the active functions with
// their files and lines. Table finds them for instructions of a module: in its name section, in DWARF
// (versions 2 to 5), and in a source map. These are in the module itself or in its debug file.
//
// The input is untrusted. Memory and time are linear in the size of the files, with a fixed limit of
// work (see maxWork); names that are returned have a limit too. Damaged parts give fewer frames, never
// wrong memory accesses. The package does not use debug/dwarf, which copies every string of every entry
// and reads one table of abbreviations for each unit: both are quadratic in hostile files.
//
// Addresses in DWARF for WebAssembly count from the content of the code section. Columns of a source map
// are offsets in the file.
package symbols
