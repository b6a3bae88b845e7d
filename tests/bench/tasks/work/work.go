// Package work has the tasks in Go, for the handlers in WebAssembly and for the server that
// they are compared with. The same are in ../handlers/lib in TypeScript.
package work

// random returns a function that gives the same numbers below its argument in each language.
func random() func(limit int) int {
	n := 1
	return func(limit int) int {
		n = int(int64(n) * 48271 % 2147483647)
		return n % limit
	}
}
