package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"runner.example/hostabi/abi"
)

// cHeader is the SDK for C, of which one part is written here.
func cHeader(root string) (file, error) {
	path := filepath.Join(root, "sdk", "c", "runner.h")
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	text, err = fillBetween(text, "/* generated: abi */\n", "/* end: abi */\n", cPart())
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", path, err)
	}
	return file{path, text}, nil
}

// cPart is what follows from the tables in the header of the SDK for C: the
// imports, the names of the errnos, and the numbers of kinds and parts.
func cPart() string {
	var b strings.Builder
	b.WriteString("/* Written from hostabi/abi by go generate: change nothing here. */\n")
	for _, f := range abi.Functions() {
		var params []string
		for _, p := range f.Params {
			switch p.Kind {
			case abi.Number:
				params = append(params, "uint32_t "+p.Name)
			case abi.Text:
				params = append(params, "const char *"+p.Name, "uint32_t "+p.Name+"_len")
			case abi.Bytes:
				params = append(params, "const void *"+p.Name, "uint32_t "+p.Name+"_len")
			case abi.Buffer:
				params = append(params, "void *"+p.Name, "uint32_t cap")
			}
		}
		if len(params) == 0 {
			params = []string{"void"}
		}
		result := "void"
		if f.Result {
			result = "int32_t"
		}
		fmt.Fprintf(&b, "RUNNER_IMPORT(%q) extern %s runner_host_%s(%s);\n",
			f.Name, result, f.Name, strings.Join(params, ", "))
	}
	fmt.Fprintf(&b, "\nenum { RUNNER_PARAMS = %d, RUNNER_QUERY = %d, RUNNER_HEADERS = %d, RUNNER_RAW_QUERY = %d };\n",
		abi.PairsParams, abi.PairsQuery, abi.PairsHeaders, abi.PairsRawQuery)
	fmt.Fprintf(&b, "enum { RUNNER_PART_ALL = %d, RUNNER_PART_ROWS = %d, RUNNER_PART_ROW = %d };\n",
		abi.PartAll, abi.PartRows, abi.PartRow)
	b.WriteString("\n/* The name of a failed host call's number. One that is not known here is internal. */\n")
	b.WriteString("static inline const char *runner_errno_name(int32_t n) {\n  switch (n) {\n")
	for _, e := range abi.Errnos() {
		if e.Errno != abi.Internal {
			fmt.Fprintf(&b, "    case %d: return %q;\n", e.Errno, e.Name)
		}
	}
	fmt.Fprintf(&b, "  }\n  return %q;\n}\n", abi.Internal)
	return b.String()
}
