// Godice is a handler in plain Go that wants random numbers, in each of the ways
// there are.
package main

import (
	crand "crypto/rand"
	"encoding/json"
	"math/rand/v2"
	"unsafe"
)

//go:wasmimport runner response_send
func responseSend(status int32, body unsafe.Pointer, n int32) int32

func answer(next func() uint64) {
	b, err := json.Marshal([]uint64{next(), next(), next()})
	if err != nil {
		panic(err)
	}
	responseSend(200, unsafe.Pointer(unsafe.SliceData(b)), int32(len(b)))
}

func generator() *rand.Rand {
	var seed [32]byte
	crand.Read(seed[:])
	return rand.New(rand.NewChaCha8(seed))
}

// dice is there for all handlers; each request finds it with another seed.
var dice = generator()

//go:wasmexport runner_reseed
func reseed() { dice = generator() }

//go:wasmexport reseeded
func reseeded() { answer(dice.Uint64) }

//go:wasmexport own
func own() { answer(generator().Uint64) }

//go:wasmexport runtimes
func runtimes() { answer(rand.Uint64) }

func main() {}
