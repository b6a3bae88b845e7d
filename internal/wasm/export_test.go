package wasm

// JumpsOnARM64: tail calls through a table remain tail calls on arm64.
const JumpsOnARM64 = jumpsOnARM64
