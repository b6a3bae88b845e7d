package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/wasm"
	"runner.example/internal/wasm/opcode"
)

// HandlerNames are the names that a function of a component may have as a handler in a schema: list-orders is
// listOrders or list_orders.
func HandlerNames(function string) []string {
	words := strings.Split(function, "-")
	camel := words[0]
	for _, w := range words[1:] {
		camel += strings.ToUpper(w[:1]) + w[1:]
	}
	return slices.Compact([]string{camel, strings.ToLower(strings.Join(words, "_"))})
}

// CheckNames returns an error if the schema uses both names of a function of a component that exports these handlers.
func CheckNames(handlers []string, named func(string) bool) error {
	used := map[string]string{}
	for _, h := range handlers {
		key := plain(strings.ReplaceAll(h, "_", ""))
		if first := used[key]; first != "" && named(h) {
			return fmt.Errorf("has one handler for %s and %s of the schema: rename one of them", first, h)
		}
		if named(h) {
			used[key] = h
		}
	}
	return nil
}

// exportHandler adds a handler for a function of the component. The host writes the request, which is the parameter,
// and reads the result.
func (l *linker) exportHandler(name string, f *Func) error {
	if name == exportMemory {
		return errors.New("a handler cannot have the name that the memory has: rename it")
	}
	core, err := l.lifted(f)
	if err != nil {
		return err
	}
	realloc, err := l.named(f.Lift.Options.Realloc)
	if err != nil {
		return err
	}
	postReturn, err := l.postReturn(f.Lift)
	if err != nil {
		return err
	}
	allocator, begin, end := l.allocator(realloc), l.hostBuiltin("begin_handler", "i>"+blocks), l.hostBuiltin("end_handler", "i>")
	enter, allow := l.prologue(f.Lift.Owner), l.allow(f.Lift.Owner)
	request := f.Type.Params[0].Type
	for _, handler := range HandlerNames(name) {
		if strings.HasPrefix(handler, "runner_") {
			continue // such names are reserved for the host
		}
		const at = 0 // the local
		l.add("", handler, wasm.FuncType{}, []wasm.ValueType{wasm.I32}, func(a *assembler) {
			enter(a)
			allow(a, false)
			a.i32(0).i32(0).i32(request.Align()).i32(request.Size()).call(realloc).n(opcode.LocalTee, at).call(begin)
			a.call(allocator)
			allow(a, true)
			flat, _ := request.Flat() // they lie in memory as they are passed
			for i := range flat {
				const align = 2
				a.n(opcode.LocalGet, at).op(opcode.I32Load).n(align, 4*i)
			}
			a.call(core).n(opcode.LocalSet, at)
			enter(a)
			a.n(opcode.LocalGet, at).call(end)
			postReturn(a, at)
		})
	}
	return nil
}
