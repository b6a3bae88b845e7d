// Package capture continues a call of WebAssembly from a host function that it had called, as often as wanted, and in
// any instance of the same compiled module. So a program starts once, up to where it waits for its first request, and
// each request continues from there.
//
// Call starts the program, and Take captures its stack and registers in a host function. Memory, globals and tables
// are not captured: the caller gives an instance those of the captured one, before each State.Resume.
//
// A stack has addresses of its instance. To know all of them, the program is started in two instances, and Compare
// compares both captures. The instances must do the same: what the host functions return before the capture, and how
// often they are called, must be equal. Then a word of the stack that differs can only be an address. Each must be one
// that the engine knows, or the comparison fails. So no value of the program is taken for an address, whatever the
// program computes.
//
// It needs a patched wazero: see capture.patch in third_party/wazero, and
// docs/decisions/captured-programs.md. No function retains a context or a result that it was given.
package capture

import "errors"

// ErrUnavailable is returned by all functions of a runner that was built without the patches, or for a machine other
// than amd64 and arm64.
var ErrUnavailable = errors.New("calls can be captured only on amd64 and arm64, in a runner built by tools/go.sh")
