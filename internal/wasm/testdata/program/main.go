// The program that the tests of the rewriter run in its original and its
// rewritten form: a little of everything that a handler does.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strings"
)

func main() {}

type item struct {
	Name  string            `json:"name"`
	Price float64           `json:"price"`
	Tags  []string          `json:"tags"`
	More  map[string]string `json:"more"`
}

// roundTrip encodes and decodes n times, and answers a hash of what came of it.
//
//go:wasmexport roundTrip
func roundTrip(n int32) int64 {
	it := item{"lamp", 12.5, []string{"light", "home"}, map[string]string{"b": "2", "a": "1"}}
	sum := sha256.New()
	for i := range n {
		it.Price = math.Sqrt(float64(i)) * 1.5
		text, err := json.Marshal(it)
		if err != nil {
			panic(err)
		}
		sum.Write(text)
		it = item{}
		if err := json.Unmarshal(text, &it); err != nil {
			panic(err)
		}
	}
	return int64(binary.LittleEndian.Uint64(sum.Sum(nil)))
}

// digest hashes n times.
//
//go:wasmexport digest
func digest(n int32) int64 {
	block := make([]byte, 4096)
	for range n {
		sum := sha256.Sum256(block)
		copy(block[binary.LittleEndian.Uint16(sum[:])%4000:], sum[:])
	}
	return int64(binary.LittleEndian.Uint64(block))
}

type shape interface{ area() float64 }
type square struct{ side float64 }
type circle struct{ radius float64 }

func (s square) area() float64 { return s.side * s.side }
func (c circle) area() float64 { return math.Pi * c.radius * c.radius }

// mixture sorts, matches, formats, calls through interfaces and closures, panics
// and recovers.
//
//go:wasmexport mixture
func mixture(n int32) int64 {
	shapes := []shape{}
	for i := range n {
		if i%3 == 0 {
			shapes = append(shapes, square{float64(i)})
		} else {
			shapes = append(shapes, circle{float64(i % 7)})
		}
	}
	sort.Slice(shapes, func(a, b int) bool { return shapes[a].area() < shapes[b].area() })
	words := regexp.MustCompile(`[a-z]+(\d+)`)
	var out bytes.Buffer
	for i, s := range shapes {
		fmt.Fprintf(&out, "%s%d %.3f %v\n", strings.Repeat("x", i%5), i, s.area(), attempt(i))
	}
	total := int64(0)
	for _, m := range words.FindAllSubmatch(out.Bytes(), -1) {
		total = total*31 + int64(len(m[1]))
	}
	return total ^ int64(out.Len())<<32
}

func attempt(i int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New(fmt.Sprint(r))
		}
	}()
	list := []int{1, 2, 3}
	list[i%4]++
	return nil
}

// recurse goes n calls deep.
//
//go:wasmexport recurse
func recurse(n int32) int64 {
	if n == 0 {
		return 0
	}
	return recurse(n-1) + int64(n)
}

// spawn hands numbers from goroutine to goroutine.
//
//go:wasmexport spawn
func spawn(n int32) int64 {
	first := make(chan int64)
	in := first
	for range n {
		out := make(chan int64)
		go func(in, out chan int64) { out <- 1 + <-in }(in, out)
		in = out
	}
	first <- 0
	return <-in
}
