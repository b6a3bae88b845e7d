// Command gen writes what follows from the tables of hostabi/abi: the tables of
// docs/abi and the constants of the SDKs. Run it as
//
//	go generate ./hostabi/abi
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"strings"

	"runner.example/hostabi/abi"
)

func main() {
	log.SetFlags(0)
	files, err := render("../..") // go generate runs in hostabi/abi
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(f.path, f.content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// file is one file as it should be.
type file struct {
	path    string
	content []byte
}

// render makes all files below the repository at root, without writing them.
func render(root string) ([]file, error) {
	var files []file
	for name, tables := range map[string]map[string]string{
		"functions.md":  {"errnos": errnoTable(), "functions": functionTable()},
		"operations.md": {"operations": opTable()},
	} {
		page := filepath.Join(root, "docs", "abi", name)
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		for part, table := range tables {
			if text, err = fill(text, part, table); err != nil {
				return nil, fmt.Errorf("%s: %w", page, err)
			}
		}
		files = append(files, file{page, text})
	}
	for name, code := range map[string]string{"abi_gen.go": goConstants(), "imports_wasip1.go": goImports()} {
		code, err := format.Source([]byte(code))
		if err != nil {
			return nil, err
		}
		files = append(files, file{filepath.Join(root, "sdk", "go", "internal", "host", name), code})
	}
	header, err := cHeader(root)
	if err != nil {
		return nil, err
	}
	files = append(files, header)
	files = append(files, file{
		filepath.Join(root, "sdk", "assemblyscript", "assembly", "abi.ts"), []byte(assemblyScript()),
	})
	files = append(files, file{filepath.Join(root, "sdk", "rust", "src", "abi.rs"), []byte(rust())})
	text, err := wit()
	if err != nil {
		return nil, err
	}
	files = append(files, file{filepath.Join(root, "sdk", "wit", "runner.wit"), []byte(text)})
	return files, nil
}

// fill replaces what stands between the two marks of a generated part.
func fill(text []byte, name, table string) ([]byte, error) {
	return fillBetween(text, "<!-- generated: "+name+" -->\n", "<!-- end: "+name+" -->\n", table)
}

func fillBetween(text []byte, first, last, table string) ([]byte, error) {
	begin, end := []byte(first), []byte(last)
	before, rest, ok := bytes.Cut(text, begin)
	if !ok {
		return nil, fmt.Errorf("no line %q", begin)
	}
	_, after, ok := bytes.Cut(rest, end)
	if !ok {
		return nil, fmt.Errorf("no line %q", end)
	}
	return bytes.Join([][]byte{before, begin, []byte(table), end, after}, nil), nil
}

func functionTable() string {
	var b strings.Builder
	b.WriteString("| function | does |\n|---|---|\n")
	for _, f := range abi.Functions() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", signature(f), f.Doc)
	}
	return b.String()
}

// signature is the function as a module imports it; every parameter and result
// is an i32.
func signature(f abi.Function) string {
	var words []string
	for _, p := range f.Params {
		switch p.Kind {
		case abi.Number:
			words = append(words, p.Name)
		case abi.Buffer:
			words = append(words, p.Name, "cap")
		case abi.Text, abi.Bytes:
			words = append(words, p.Name, "len")
		}
	}
	s := f.Name + "(" + strings.Join(words, ", ") + ")"
	if f.Result {
		s += " -> i32"
	}
	return s
}

func opTable() string {
	var b strings.Builder
	b.WriteString("| operation | arguments | result |\n|---|---|---|\n")
	for _, op := range abi.Ops() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", op.Name, op.Args, code(op.Result))
	}
	return b.String()
}

// code marks JSON as such and leaves prose alone.
func code(s string) string {
	if strings.HasPrefix(s, "{") {
		return "`" + s + "`"
	}
	return s
}

func errnoTable() string {
	var b strings.Builder
	b.WriteString("| errno | name | means |\n|---|---|---|\n")
	for _, e := range abi.Errnos() {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", e.Errno, e.Name, e.Doc)
	}
	return b.String()
}

const generated = "// Code generated from hostabi/abi by go generate; DO NOT EDIT.\n\n"

func goConstants() string {
	var b strings.Builder
	b.WriteString(generated + "package host\n\n")
	b.WriteString("// errnoName gives the name of a failed host call's number. A number that this\n")
	b.WriteString("// SDK does not know is internal.\nfunc errnoName(n int32) string {\n\tswitch n {\n")
	for _, e := range abi.Errnos() {
		if e.Errno != abi.Internal {
			fmt.Fprintf(&b, "\tcase %d:\n\t\treturn %q\n", e.Errno, e.Name)
		}
	}
	fmt.Fprintf(&b, "\t}\n\treturn %q\n}\n", abi.Internal)
	return b.String()
}

// goImports declares every function as a Go module imports it.
func goImports() string {
	var b strings.Builder
	b.WriteString(generated + "//go:build wasip1\n\npackage host\n\nimport \"unsafe\"\n")
	for _, f := range abi.Functions() {
		var params []string
		for _, p := range f.Params {
			switch p.Kind {
			case abi.Number:
				params = append(params, p.Name+" uint32")
			case abi.Text:
				params = append(params, p.Name+" string")
			case abi.Bytes:
				params = append(params, p.Name+" unsafe.Pointer", "length uint32")
			case abi.Buffer:
				params = append(params, p.Name+" unsafe.Pointer", "capacity uint32")
			}
		}
		result := ""
		if f.Result {
			result = " int32"
		}
		fmt.Fprintf(&b, "\n//go:wasmimport %s %s\nfunc %s(%s)%s\n",
			abi.Module, f.Name, camel(f.Name), strings.Join(params, ", "), result)
	}
	return b.String()
}

// camel turns snake_case into a Go name.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}
