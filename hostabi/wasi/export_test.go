package wasi

import "strings"

// WithoutFunction are the functions of World that have no implementation of their own.
func WithoutFunction() (all []string) {
	for _, i := range World().Imports {
		name, _, _ := strings.Cut(i.Interface, "@")
		if _, ok := implementations[moduleName(i.Interface)][i.Name]; !ok && i.Func != nil && !exports[name] {
			all = append(all, i.Interface+" "+i.Name)
		}
	}
	return all
}

// WithoutType are the implementations of functions that World does not have.
func WithoutType() (all []string) {
	known := map[string]bool{}
	for _, i := range World().Imports {
		known[moduleName(i.Interface)+" "+i.Name] = true
	}
	for of, functions := range implementations {
		for name := range functions {
			if !known[of+" "+name] {
				all = append(all, of+" "+name)
			}
		}
	}
	return all
}

// NumberOf is the number in the names of built-ins for a type of streams or futures, as it is in a function:
// of a parameter's type, or of a part of the result.
func NumberOf(module, function string, param int) int {
	f := functionOf(module, function)
	if param < len(f.Params) {
		return payloadOf(f.Params[param].Type).number
	}
	return payloadOf(f.Result.Fields[param-len(f.Params)].Type).number
}
