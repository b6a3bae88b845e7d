// Gocrash is a module of handlers in plain Go that fail, each in its way.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

type cart struct {
	items []int
	next  *cart
}

type invalid struct{ field string }

func (e invalid) Error() string { return "invalid " + e.field }

type plain struct {
	n int
	s string
}

var (
	counts map[string]int
	zero   int
	many   = 5
	sink   []byte
	empty  *cart
)

//go:wasmexport panics
func panics() { fail("the cart is empty") }

//go:noinline
func fail(what any) { panic(what) } // line fail

//go:wasmexport manyLines
func manyLines() { fail(errors.Join(errors.New("first"), errors.New("second"))) }

//go:wasmexport customError
func customError() { fail(invalid{"total"}) }

//go:wasmexport customValue
func customValue() { fail(plain{7, "x"}) }

//go:wasmexport nested
func nested() {
	defer func() {
		fail(fmt.Sprint("again: ", recover()))
	}()
	fail("once")
}

//go:wasmexport whilePanicking
func whilePanicking() {
	defer func() { fail("second") }()
	fail("first")
}

//go:wasmexport nilMap
func nilMap() { count("a") }

func count(name string) { counts[name]++ } // line nilMap

//go:wasmexport nilPointer
func nilPointer() { fmt.Println(empty.total()) }

//go:noinline
func (c *cart) total() int { return len(c.next.items) } // line nilPointer

//go:wasmexport index
func index() { fmt.Println((&cart{}).item(many)) }

func (c *cart) item(i int) int { return c.items[i] } // line index

//go:wasmexport divide
func divide() { fmt.Println(many / zero) } // line divide

//go:wasmexport inClosure
func inClosure() {
	slices.SortFunc([]int{3, 1, 2}, func(a, b int) int {
		return fallsOver(a, b) // line inClosure
	})
}

//go:noinline
func fallsOver(a, b int) int { panic("cannot compare") }

//go:wasmexport deadlock
func deadlock() {
	c := make(chan int)
	<-c // line deadlock
}

//go:wasmexport overflow
func overflow() {
	debug.SetMaxStack(1 << 16)
	fmt.Println(depth(1))
}

//go:noinline
func depth(n int) int { return depth(n+1) + 1 } // line overflow

//go:wasmexport allocatesAll
func memory() {
	for n := 1 << 20; ; n *= 2 {
		sink = make([]byte, n) // line memory
	}
}

//go:wasmexport notAPanic
func notAPanic() {
	fmt.Fprintln(os.Stderr, "panic: no, only a line")
	fmt.Fprintln(os.Stderr, "another line")
}

//go:wasmexport recovered
func recovered() {
	defer func() { fmt.Println("recovered", recover()) }()
	fail("caught")
}

//go:wasmexport exits
func exits() { os.Exit(3) }

// received gives a value that another goroutine sends, so the handler is resumed.
//
//go:noinline
func received() int {
	c := make(chan int)
	go func() {
		runtime.Gosched()
		c <- many
	}()
	return <-c
}

//go:wasmexport loop
func loop() {
	n := received()
	spin(n)
}

//go:noinline
func spin(n int) {
	for i := 0; ; i++ { // line loop
		if i%7 == n {
			zero = 0
		}
	}
}

//go:wasmexport inlineLoop
func inlineLoop() {
	received()
	for {
		work() // line inlineLoop
	}
}

func work() { zero++; zero-- }

//go:wasmexport allocates
func allocates() {
	var all []string
	for i := received(); ; i++ {
		all = append(all[:min(len(all), 9)], strings.Repeat(strconv.Itoa(i), 3)) // line allocates
	}
}

//go:wasmexport recurses
func recurses() {
	received()
	for {
		fibonacci(30) // line recurses
	}
}

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

//go:wasmexport collects
func collects() {
	received()
	for {
		runtime.GC() // line collects
	}
}

//go:wasmexport sleeps
func sleeps() {
	received()
	time.Sleep(time.Hour) // line sleeps
}

//go:wasmexport waits
func waits() {
	done := make(chan bool)
	go func() {
		received()
		time.Sleep(time.Hour)
		done <- true
	}()
	<-done // line waits
}

//go:wasmexport inGoroutine
func inGoroutine() {
	done := make(chan bool)
	go func() {
		received()
		spin(many)
		done <- true
	}()
	<-done
}

//go:wasmexport panicsLater
func panicsLater() {
	received()
	count("b")
}

//go:wasmexport panicsInGoroutine
func panicsInGoroutine() {
	done := make(chan bool)
	go func() {
		received()
		fail("in a goroutine")
	}()
	<-done
}

func main() {}
