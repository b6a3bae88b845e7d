package wasm

import "runtime"

// JumpsIndirectly: tail calls through a table remain tail calls on every architecture.
const JumpsIndirectly = jumpsOnARM64 || runtime.GOARCH != "arm64"
