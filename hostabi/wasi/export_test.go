package wasi

import (
	"maps"
	"slices"
	"strings"

	"runner.example/hostabi/abi"
	"runner.example/internal/component"
)

// AppFile is app.wasm.
var AppFile = appFile

// allFunctions are the implementations by the names of interfaces.
func allFunctions() map[string]map[string]function {
	all := maps.Clone(implementations)
	for in, functions := range appFunctions {
		all[abi.WITPackage+"/"+in+"@1"] = functions
	}
	return all
}

// WithoutFunction are the functions of World and App that have no implementation of their own.
func WithoutFunction() (all []string) {
	implementations := allFunctions()
	for _, i := range slices.Concat(World().Imports, App().Imports) {
		name, _, _ := strings.Cut(i.Interface, "@")
		if _, ok := implementations[component.HostInterface(i.Interface)][i.Name]; !ok && i.Func != nil && !exports[name] {
			all = append(all, i.Interface+" "+i.Name)
		}
	}
	return all
}

// WithoutType are the implementations of functions that World and App do not have.
func WithoutType() (all []string) {
	known := map[string]bool{}
	for _, i := range slices.Concat(World().Imports, App().Imports) {
		known[component.HostInterface(i.Interface)+" "+i.Name] = true
	}
	for of, functions := range allFunctions() {
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
