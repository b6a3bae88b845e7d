package wasi

import (
	"maps"
	"slices"
	"strings"

	"runner.example/hostabi/abi"
)

// AppFile is app.wasm.
var AppFile = appFile

// allFunctions are the implementations by the names of interfaces.
func allFunctions() map[string]map[string]function {
	all := maps.Clone(implementations)
	for in, functions := range appFunctions {
		all[abi.WITPackage+"/"+in] = functions
	}
	return all
}

// WithoutFunction are the functions of World and App that have no implementation of their own.
func WithoutFunction() (all []string) {
	implementations := allFunctions()
	for _, i := range slices.Concat(World().Imports, App().Imports) {
		name, _, _ := strings.Cut(i.Interface, "@")
		if _, ok := implementations[name][i.Name]; !ok && i.Func != nil && !exports[name] {
			all = append(all, name+" "+i.Name)
		}
	}
	return all
}

// WithoutType are the implementations of functions that World and App do not have.
func WithoutType() (all []string) {
	known := map[string]bool{}
	for _, i := range slices.Concat(World().Imports, App().Imports) {
		name, _, _ := strings.Cut(i.Interface, "@")
		known[name+" "+i.Name] = true
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
