// Package opcode has tables of the instructions of WebAssembly (Core 2.0): their bytes, what
// follows them, how long they take at worst, and how many values they make.
package opcode
