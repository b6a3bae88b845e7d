// Gohello is a handler in plain Go, without an SDK: it parses and writes JSON.
package main

import (
	crand "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"unsafe"
)

//go:wasmimport runner request_body
func requestBody(offset int32, buf unsafe.Pointer, room int32) int32

//go:wasmimport runner response_send
func responseSend(status int32, body unsafe.Pointer, n int32) int32

type order struct {
	ID    string   `json:"id"`
	Total float64  `json:"total"`
	Tags  []string `json:"tags"`
}

func answer(b []byte) { responseSend(200, unsafe.Pointer(unsafe.SliceData(b)), int32(len(b))) }

// roundTrip is what a handler does with its body.
func roundTrip(in []byte) []byte {
	var o order
	if err := json.Unmarshal(in, &o); err != nil {
		return []byte("{}")
	}
	o.Total *= 2
	out, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return out
}

//go:wasmexport handle
func handle() {
	buf := make([]byte, 4096)
	n := requestBody(0, unsafe.Pointer(unsafe.SliceData(buf)), int32(len(buf)))
	answer(roundTrip(buf[:n]))
}

//go:wasmexport warmed
func warmed() { handle() }

//go:wasmexport runner_warm
func warm() { roundTrip([]byte(`{"id":"o-1","total":1.5,"tags":["a","b"]}`)) }

//go:wasmexport chance
func chance() {
	var b [8]byte
	crand.Read(b[:])
	out, _ := json.Marshal(binary.LittleEndian.Uint64(b[:]))
	answer(out)
}

//go:wasmexport recurse
func recurse() {
	answer([]byte{byte('0' + deep(20_000)%10)})
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return 0
	}
	return deep(n-1) + 1
}

func main() {}
