package main

import (
	"fmt"
	"strings"

	"runner.example/hostabi/abi"
)

// assemblyScript declares every function as a module of AssemblyScript imports
// it, and the names of the errnos. Addresses are usize, which is an i32 there.
func assemblyScript() string {
	var b strings.Builder
	b.WriteString(generated)
	for _, f := range abi.Functions() {
		var params []string
		for _, p := range f.Params {
			switch p.Kind {
			case abi.Number:
				params = append(params, p.Name+": i32")
			case abi.Text, abi.Bytes:
				params = append(params, p.Name+": usize", p.Name+"Length: i32")
			case abi.Buffer:
				params = append(params, p.Name+": usize", "capacity: i32")
			}
		}
		result := "void"
		if f.Result {
			result = "i32"
		}
		fmt.Fprintf(&b, "@external(%q, %q)\nexport declare function %s(%s): %s;\n\n",
			abi.Module, f.Name, f.Name, strings.Join(params, ", "), result)
	}
	b.WriteString("/** The name of a failed host call's number; one that this SDK does not know is internal. */\n")
	b.WriteString("export function errnoName(n: i32): string {\n  switch (n) {\n")
	for _, e := range abi.Errnos() {
		if e.Errno != abi.Internal {
			fmt.Fprintf(&b, "    case %d: return %q;\n", e.Errno, e.Name)
		}
	}
	fmt.Fprintf(&b, "  }\n  return %q;\n}\n", abi.Internal)
	return b.String()
}
