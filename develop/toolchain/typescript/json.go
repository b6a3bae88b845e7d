package typescript

import (
	_ "embed" // for json.wasm
	"fmt"

	"runner.example/internal/wasm"
)

//go:generate clang-22 --target=wasm32-unknown-unknown -std=c17 -O2 -mbulk-memory -msign-ext -mnontrapping-fptoint -nostdlib -Wall -Wextra -Werror -Wno-parentheses -Wl,--no-entry -Wl,--strip-all -o json/json.wasm json/json.c

// jsonModule is json/json.c, compiled. It is part of the source, so that building a runner needs
// no C compiler.
//
//go:embed json/json.wasm
var jsonModule []byte

// jsonFunctions returns the functions of JSON, for the glue. Two of them replace functions of
// the engine.
func jsonFunctions() ([]wasm.Function, error) {
	parsed, err := wasm.Parse(jsonModule, wasm.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("json.wasm %w", err)
	}
	all, err := parsed.Parts("json ")
	if err != nil {
		return nil, fmt.Errorf("json.wasm %w", err)
	}
	for i := range all {
		switch name := all[i].Name; name {
		case "json_parse", "json_stringify":
			all[i].Replaces = "js_" + name
		}
	}
	return all, nil
}
