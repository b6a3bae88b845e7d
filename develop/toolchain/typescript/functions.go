package typescript

import (
	_ "embed" // for functions.wasm
	"fmt"

	"runner.example/internal/wasm"
)

//go:generate clang-22 --target=wasm32-unknown-unknown -std=c17 -O2 -mbulk-memory -msign-ext -mnontrapping-fptoint -nostdlib -Wall -Wextra -Werror -Wno-parentheses -Wl,--no-entry -Wl,--strip-all -o functions/functions.wasm functions/json.c functions/regexp.c

// functionsModule is the C files of functions, compiled. It is part of the source, so that
// building a runner needs no C compiler.
//
//go:embed functions/functions.wasm
var functionsModule []byte

// replacements has the functions of the engine that functions of functionsModule replace, by
// the names of the latter. A function may call the one that it replaces.
var replacements = map[string]string{
	"json_parse":     "js_json_parse",
	"json_stringify": "js_json_stringify",
	"regexp_execute": "lre_exec",
	"regexp_match":   "js_regexp_Symbol_match",
	"regexp_replace": "js_regexp_Symbol_replace",
	"regexp_split":   "js_regexp_Symbol_split",
}

// linkedFunctions returns the functions of functionsModule, for the glue.
func linkedFunctions() ([]wasm.Function, error) {
	parsed, err := wasm.Parse(functionsModule, wasm.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("functions.wasm %w", err)
	}
	all, err := parsed.Parts("linked ")
	if err != nil {
		return nil, fmt.Errorf("functions.wasm %w", err)
	}
	for i := range all {
		all[i].Replaces = replacements[all[i].Name]
	}
	return all, nil
}
