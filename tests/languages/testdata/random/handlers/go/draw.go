// Draws from each random source of Go. The initialization has drawn from them too, and the module has
// its own runner_reseed.
package main

import (
	crand "crypto/rand"
	"fmt"
	"hash/maphash"
	legacy "math/rand"
	"math/rand/v2"

	"runner.example/sdk/go"
)

const entries = 1000

var (
	early    = fmt.Sprint(rand.Uint64(), legacy.Uint64(), maphash.String(maphash.MakeSeed(), ""))
	kept     = numbers()
	reseeded uint64
)

//go:wasmexport runner_reseed
func reseed() { reseeded = rand.Uint64() }

//go:wasmexport drawGo
func exportDraw() { runner.Handle(draw) }

func draw(*runner.Context, *runner.Request) (runner.Response, error) {
	var bytes [8]byte
	crand.Read(bytes[:])
	return runner.OK(map[string]string{
		"math/rand/v2":               fmt.Sprint(rand.Uint64()),
		"math/rand/v2 IntN":          fmt.Sprint(rand.IntN(1<<30), rand.IntN(1<<30), rand.IntN(1<<30)),
		"math/rand":                  fmt.Sprint(legacy.Intn(1<<30), legacy.Intn(1<<30), legacy.Intn(1<<30)),
		"hash/maphash":               fmt.Sprint(maphash.String(maphash.MakeSeed(), "")),
		"crypto/rand":                fmt.Sprintf("%x", bytes),
		"select":                     fmt.Sprintf("%x", choices()),
		"runner_reseed":              fmt.Sprint(reseeded),
		"first key of a kept map":    fmt.Sprint(first(kept)),
		"first key of a new map":     fmt.Sprint(first(numbers())),
		"shuffle":                    fmt.Sprint(rand.Perm(40)),
		"a generator of the request": fmt.Sprint(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())).Uint64()),
	}), nil
}

func numbers() map[int]bool {
	m := map[int]bool{}
	for i := range entries {
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

// choices are 64 bits, which select decides.
func choices() (bits uint64) {
	zero, one := make(chan uint64, 64), make(chan uint64, 64)
	for range 64 {
		zero <- 0
		one <- 1
	}
	for range 64 {
		var bit uint64
		select {
		case bit = <-zero:
		case bit = <-one:
		}
		bits = bits<<1 | bit
	}
	return bits
}

func main() {}
