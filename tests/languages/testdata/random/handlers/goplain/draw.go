// Draws from the random sources of Go's runtime, without the SDK.
package main

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	legacy "math/rand"
	"math/rand/v2"
)

var (
	early = rand.Uint64()
	kept  = numbers()
)

//go:wasmimport runner response_send
func responseSend(status int32, body string) int32

//go:wasmexport drawPlainGo
func draw() {
	body, err := json.Marshal(map[string]string{
		"math/rand/v2":            fmt.Sprint(rand.Uint64()),
		"math/rand":               fmt.Sprint(legacy.Uint64()),
		"hash/maphash":            fmt.Sprint(maphash.String(maphash.MakeSeed(), "")),
		"first key of a kept map": fmt.Sprint(first(kept)),
		"first key of a new map":  fmt.Sprint(first(numbers())),
	})
	if err != nil {
		panic(err)
	}
	responseSend(200, string(body))
}

func numbers() map[int]bool {
	m := map[int]bool{}
	for i := range 1000 {
		m[i] = true
	}
	return m
}

func first(m map[int]bool) int {
	for key := range m {
		return key
	}
	return -1
}

func main() {}
