package typescript

import (
	_ "embed" // for functions.wasm
	"fmt"

	"runner.example/internal/wasm"
)

//go:generate clang-22 --target=wasm32-unknown-unknown -std=c17 -O2 -mbulk-memory -msign-ext -mnontrapping-fptoint -nostdlib -Wall -Wextra -Werror -Wno-parentheses -Wl,--no-entry -Wl,--strip-all -o functions/functions.wasm functions/iterate.c functions/json.c functions/maps.c functions/matches.c functions/memory.c functions/numbers.c functions/operators.c functions/regexp.c functions/shapes.c functions/sort.c functions/strings.c functions/text.c functions/values.c
//go:generate clang-22 --target=wasm32-unknown-unknown -std=c17 -O2 -mbulk-memory -msign-ext -mnontrapping-fptoint -nostdlib -Wall -Wextra -Werror -Wno-parentheses -Wl,--no-entry -Wl,--strip-all -o functions/flow.wasm functions/flow.c

// functionsModule is the C files of functions, compiled. It is part of the source, so that
// building a runner needs no C compiler.
//
//go:embed functions/functions.wasm
var functionsModule []byte

// flowModule is functions/flow.c, compiled. Only modules with AsyncLocalStorage have its functions.
//
//go:embed functions/flow.wasm
var flowModule []byte

// replacements has the functions of the engine that functions of functionsModule replace, by
// the names of the latter. A function may call the one that it replaces.
var replacements = map[string]string{
	"json_parse":     "js_json_parse",
	"json_stringify": "js_json_stringify",
	"regexp_execute": "lre_exec",
	"regexp_match":   "js_regexp_Symbol_match",
	"regexp_replace": "js_regexp_Symbol_replace",
	"regexp_split":   "js_regexp_Symbol_split",

	"regexp_call_exec": "JS_RegExpExec",
	"regexp_exec":      "js_regexp_exec",
	"regexp_flags":     "js_regexp_get_flags",
	"regexp_match_all": "js_regexp_Symbol_matchAll",
	"regexp_next":      "js_regexp_string_iterator_next",
	"regexp_search":    "js_regexp_Symbol_search",
	"regexp_test":      "js_regexp_test",
	"string_match":     "js_string_match",

	"flow_job":  "JS_EnqueueJob",
	"flow_run":  "JS_ExecutePendingJob",
	"flow_then": "perform_promise_then",

	"array_next": "js_array_iterator_next",
	"close":      "JS_IteratorClose",
	"for_of":     "js_for_of_start",
	"index_of":   "js_string_indexof_char",
	"iterate":    "JS_IteratorNext",

	"allocate":        "js_malloc",
	"allocate_of":     "js_malloc_rt",
	"array_sort":      "js_array_sort",
	"binary_logic":    "js_binary_logic_slow",
	"compare_bytes":   "memcmp",
	"find_property":   "find_own_property",
	"find_record":     "map_find_record",
	"float_of":        "to_float",
	"free_counted":    "free_gc_object",
	"free_value":      "JS_FreeValue",
	"free_value_of":   "JS_FreeValueRT",
	"get_element":     "JS_GetPropertyValue",
	"hash_bytes":      "hash_string8",
	"number_toFixed":  "js_number_toFixed",
	"numeric":         "to_numeric",
	"object_made":     "JS_NewObjectFromShape",
	"poll_interrupts": "js_poll_interrupts",
	"property_added":  "add_property",
	"release":         "js_free",
	"release_of":      "js_free_rt",
	"relational":      "js_relational_slow",
	"remainder":       "fmod",
	"set_variable":    "set_value",
	"string_concat":   "js_string_concat",
	"units_of":        "string_units",
	"value_defined":   "define_value",
}

// reduction describes how the interpreter of bytecode becomes shorter. The engine's build has, for each
// instruction, a test whether instructions are printed and a table of addresses, and calls functions that
// others would inline.
var reduction = wasm.Reduction{
	Functions: []uint32{interpreter, getProperty, concatStrings, compareStrings, equalStrings},
	Clear:     []wasm.Bits{{Offset: 753, Mask: 0x80}}, // of the flags of JS_SetDumpFlags, which nothing sets
	Constant:  []uint32{1_090_640},
	Inline:    []string{"free_value", "free_value_of", "poll_interrupts", "set_variable", "find_property", "numeric", "units_of"},
}

// Functions of the engine whose code is reduced.
const (
	interpreter    = 92 // JS_CallInternal
	getProperty    = 141
	concatStrings  = 286
	compareStrings = 363
	equalStrings   = 361
)

// linkedFunctions returns the functions of functionsModule or flowModule, for the glue. Those without a name get
// one with the prefix.
func linkedFunctions(module []byte, prefix string) ([]wasm.Function, error) {
	parsed, err := wasm.Parse(module, wasm.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("the module of %sfunctions %w", prefix, err)
	}
	all, err := parsed.Parts(prefix)
	if err != nil {
		return nil, fmt.Errorf("the module of %sfunctions %w", prefix, err)
	}
	for i := range all {
		all[i].Replaces = replacements[all[i].Name]
	}
	return all, nil
}
