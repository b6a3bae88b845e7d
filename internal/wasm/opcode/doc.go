// Package opcode has tables of the instructions of WebAssembly (Core 2.0, tail calls and atomics). They have their
// bytes, their immediates, their longest duration, the number of values that they make, and whether
// they may trap. The package names the features that other instructions belong to.
package opcode
