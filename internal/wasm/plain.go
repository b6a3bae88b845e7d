//go:build !patched

package wasm

// jumpsOnARM64: tail calls through tables are right on arm64.
const jumpsOnARM64 = false
