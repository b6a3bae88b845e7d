// Gowaits is a program that waits for requests. It answers how often it has run, and the body.
package main

import (
	"fmt"
	"unsafe"
)

//go:wasmimport runner request_next
func next(handlers unsafe.Pointer, length uint32) int32

//go:wasmimport runner request_body
func body(offset uint32, room unsafe.Pointer, size uint32) int32

//go:wasmimport runner response_send
func send(status uint32, body unsafe.Pointer, length uint32) int32

func main() {
	started := make(chan string, 1)
	go func() { started <- "started" }()
	state, runs := <-started, 0
	for next(nil, 0) >= 0 {
		room := make([]byte, 100)
		n := body(0, unsafe.Pointer(&room[0]), uint32(len(room)))
		runs++
		answer := fmt.Appendf(nil, "run %d of %s: %s", runs, state, room[:n])
		send(200, unsafe.Pointer(&answer[0]), uint32(len(answer)))
		state = "used"
	}
}
