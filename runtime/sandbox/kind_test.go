package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runner.example/runtime/capture"
)

// kind is how the handlers of a module are called: as its exports, or by a program that waits for requests. Tests of
// isolation and of limits are for both.
type kind struct{ waits bool }

// eachKind runs a test with modules of each kind.
func eachKind(t *testing.T, test func(t *testing.T, as kind)) {
	t.Run("exports", func(t *testing.T) { test(t, kind{}) })
	if capture.Available() {
		t.Run("waits", func(t *testing.T) { test(t, kind{waits: true}) })
	}
}

// file makes a module of testdata/<name>.wat.
func (k kind) file(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".wat"))
	if err != nil {
		t.Fatal(err)
	}
	return k.text(t, string(text))
}

var exported = regexp.MustCompile(`\(func \(export "([a-zA-Z]\w*)"\)`)

// namesAt is where a program has the names of its handlers until it waits: memory that no module of the tests uses.
const namesAt = 3000

// text makes a module of a text. For one that waits, it adds a program that waits in ten calls of a function, and then
// calls the handler.
func (k kind) text(t testing.TB, wat string) []byte {
	t.Helper()
	if !k.waits {
		return assembleText(t, wat)
	}
	var names []string
	calls := ""
	wat = exported.ReplaceAllStringFunc(wat, func(s string) string {
		name := exported.FindStringSubmatch(s)[1]
		if strings.HasPrefix(name, "runner_") {
			return s
		}
		calls += fmt.Sprintf("(if (i32.eq (local.get $which) (i32.const %d)) (then (call $handler_%s)))\n", len(names), name)
		names = append(names, name)
		return fmt.Sprintf("(func $handler_%s (export %q)", name, name)
	})
	list := strings.Join(names, "\n")
	wat = strings.Replace(wat, "(module", `(module (import "runner" "request_next" (func $next (param i32 i32) (result i32)))`, 1)
	end := strings.LastIndex(wat, ")")
	return assembleText(t, wat[:end]+fmt.Sprintf(`
		(func $waits (param $calls i32) (result i32)
			(if (result i32) (local.get $calls)
				(then (call $waits (i32.sub (local.get $calls) (i32.const 1))))
				(else (call $next (i32.const %d) (i32.const %d)))))
		(func (export "_start") (local $which i32)
			(local.set $which (call $waits (i32.const 10)))
			%s)
		(data (i32.const %d) %q))`, namesAt, len(list), calls, namesAt, list))
}
