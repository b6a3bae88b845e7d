// Package opcode has tables of the instructions of WebAssembly (Core 2.0): their bytes,
// their immediates, their longest duration, and the number of values that they make.
package opcode
