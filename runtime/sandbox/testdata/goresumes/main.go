// Goresumes is a module in plain Go that leaves functions and continues in them in all ways that Go has: by
// switches of goroutines, growth of the stack, panics and what recovers from them. Its handler panics if a result
// is wrong.
package main

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unsafe"
)

func main() {}

//go:wasmimport runner response_send
func responseSend(status int32, body unsafe.Pointer, n int32) int32

//go:wasmexport resumes
func resumes() {
	for _, part := range []struct {
		run  func() any
		want string
	}{
		{channels, "499500"},
		{selects, "45"},
		{recovers, "[1 0 -1 0 -1 9]"},
		{recoversInLoop, "30"},
		{defersInLoop, "[4 3 2 1 0]"},
		{panicsAgain, "again: once"},
		{exits, "deferred"},
		{grows, "125250"},
		{yields, "[0 1 4 9 16] left true"},
		{rangePanics, "6"},
		{locks, "4000"},
		{sorts, "true"},
		{reflects, "42 six"},
		{sleeps, "[1 2 3]"},
		{switches, "3-a 7-b 0-"},
		{labels, "42"},
		{traps, "3"},
		{collects, "1000"},
		{floats, "3.1416 NaN"},
	} {
		if got := fmt.Sprint(part.run()); got != part.want {
			panic("is " + got + ", want " + part.want)
		}
	}
	responseSend(200, nil, 0)
}

func channels() any {
	c, sum := make(chan int), 0
	go func() {
		defer close(c)
		for i := range 1000 {
			if i%3 == 0 {
				runtime.Gosched()
			}
			c <- i
		}
	}()
	for v := range c {
		sum += v
	}
	return sum
}

func selects() any {
	a, b, done := make(chan int), make(chan int), make(chan bool)
	for i, c := range []chan int{a, b} {
		go func() {
			for k := i; k < 10; k += 2 {
				c <- k
			}
			done <- true
		}()
	}
	sum := 0
	for open := 2; open > 0; {
		select {
		case v := <-a:
			sum += v
		case v := <-b:
			sum += v
		case <-done:
			open--
		}
	}
	return sum
}

func divide(a, b int) (q int, err error) {
	defer func() {
		if r := recover(); r != nil {
			q, err = -1, fmt.Errorf("%v", r)
		}
	}()
	for i := range 3 {
		if i == 2 {
			q = a / b
		}
	}
	return q, nil
}

func recovers() any {
	var all []int
	for _, v := range [][2]int{{4, 3}, {1, 2}, {1, 0}, {0, 5}, {0, 0}, {9, 1}} {
		q, _ := divide(v[0], v[1])
		all = append(all, q)
	}
	return all
}

func recoversInLoop() any {
	n := 0
	for i := range 10 {
		func() {
			defer func() {
				if recover() != nil {
					n += 5
				}
			}()
			for k := range i {
				if k == 3 {
					panic(k)
				}
			}
		}()
	}
	return n
}

func defersInLoop() any {
	var order []int
	func() {
		for i := range 5 {
			defer func() { order = append(order, i) }()
		}
	}()
	return order
}

func panicsAgain() (result any) {
	defer func() { result = recover() }()
	defer func() { panic(fmt.Sprint("again: ", recover())) }()
	panic("once")
}

func exits() any {
	c := make(chan string, 1)
	go func() {
		defer func() { c <- "deferred" }()
		for {
			runtime.Goexit()
		}
	}()
	return <-c
}

func deep(n int) int {
	var room [64]int
	for i := range room {
		room[i] = n
	}
	if n == 0 {
		return 0
	}
	return deep(n-1) + room[n%64]
}

func grows() any {
	c := make(chan int)
	go func() { c <- deep(500) }()
	return <-c
}

func squares(left *bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		defer func() { *left = true }()
		for i := 0; yield(i * i); i++ {
			runtime.Gosched()
		}
	}
}

func yields() any {
	var all []int
	left := false
	for v := range squares(&left) {
		if len(all) == 5 {
			break
		}
		all = append(all, v)
	}
	next, stop := iter.Pull(slices.Values(all))
	defer stop()
	if v, _ := next(); v != 0 {
		return v
	}
	return fmt.Sprint(all, " left ", left)
}

func rangePanics() (result any) {
	n := 0
	defer func() { result = fmt.Sprint(recover()) }()
	left := false
	for v := range squares(&left) {
		n += v + 1
		if v == 4 {
			panic(n - 2)
		}
	}
	return n
}

func locks() any {
	var mutex sync.Mutex
	var group sync.WaitGroup
	n := 0
	for range 4 {
		group.Go(func() {
			for range 1000 {
				mutex.Lock()
				n++
				if n%50 == 0 {
					runtime.Gosched()
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return n
}

func sorts() any {
	x := uint32(1)
	values := make([]int, 3000)
	for i := range values {
		x = x*1664525 + 1013904223
		values[i] = int(x >> 20)
	}
	words := strings.Fields(fmt.Sprint(values))
	sort.Slice(values, func(i, j int) bool { return values[i] < values[j] })
	slices.SortStableFunc(words, strings.Compare)
	return slices.IsSorted(values) && slices.IsSorted(words)
}

type number struct{ n int }

func (v number) Times(k int) (int, string) { return v.n * k, "six" }

func reflects() any {
	out := reflect.ValueOf(number{7}).MethodByName("Times").Call([]reflect.Value{reflect.ValueOf(6)})
	return fmt.Sprint(out[0].Int(), " ", out[1].String())
}

func sleeps() any {
	var mutex sync.Mutex
	var group sync.WaitGroup
	var order []int
	for _, i := range []int{3, 1, 2} {
		group.Go(func() {
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			mutex.Lock()
			defer mutex.Unlock()
			order = append(order, i)
		})
	}
	group.Wait()
	return order
}

func pick(n int, s string) string {
	for i := 0; ; i++ {
		switch {
		case n > 5 && i == 2:
			return fmt.Sprintf("%d-%s", n, s)
		case n > 0 && n <= 5:
			if i > n {
				return fmt.Sprintf("%d-%s", n, s)
			}
			continue
		case n == 0:
			return "0-"
		}
	}
}

func switches() any { return pick(3, "a") + " " + pick(7, "b") + " " + pick(0, "c") }

func labels() any {
	n := 0
outer:
	for i := range 10 {
		for k := range 10 {
			switch {
			case k > i:
				continue outer
			case i == 6 && k == 5:
				break outer
			case k%2 == 1:
				n++
				continue
			}
			n++
			if runtime.Gosched(); n%7 == 0 {
				goto next
			}
		}
	next:
	}
	return n
}

func traps() any {
	n := 0
	var empty *number
	var values []int
	for i, f := range []func(){func() { n += empty.n }, func() { n += values[3] }, func() { n += int(1 / int32(len(values))) }} {
		func() {
			defer func() {
				var e runtime.Error
				if err, ok := recover().(error); ok && errors.As(err, &e) {
					n++
				}
			}()
			f()
			n += 100 * i
		}()
	}
	return n
}

func collects() any {
	kept := map[int]*number{}
	for i := range 1000 {
		kept[i] = &number{i}
		_ = make([]byte, 2000)
		if i%250 == 0 {
			runtime.GC()
		}
	}
	n := 0
	for k, v := range kept {
		if k == v.n {
			n++
		}
	}
	return n
}

func floats() any {
	sum := 0.0
	for i := range 200_000 {
		sum += math.Pow(-1, float64(i)) / float64(2*i+1)
	}
	return fmt.Sprintf("%.4f %v", 4*sum, math.Sqrt(-1))
}
