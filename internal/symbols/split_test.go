package symbols_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
)

func TestADebugFileHasWhatWasRemovedFromTheModule(t *testing.T) {
	whole := clang(t, "-g")
	module, debug, err := symbols.Split(whole)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(module, []byte(".debug_")) || len(module)+len(debug) > len(whole)+100 {
		t.Errorf("%d bytes were split into %d and %d", len(whole), len(module), len(debug))
	}
	if again, nothing, err := symbols.Split(module); err != nil || nothing != nil || !bytes.Equal(again, module) {
		t.Errorf("a module without debug information was split: %v", err)
	}
	before, err := symbols.Read(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := symbols.Read(module, debug)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := framesOf(t, after, module), framesOf(t, before, whole); !reflect.DeepEqual(got, want) {
		t.Errorf("the frames of the parts are others than those of the whole")
	}
	without, err := symbols.Read(module, nil)
	if got := framesOf(t, without, module); err != nil || len(got) != 1 {
		t.Errorf("without its debug file the module has lines: %v, %v", got, err)
	}
	// The unstripped module itself may be the debug file.
	same, err := symbols.Read(module, whole)
	if err != nil || !reflect.DeepEqual(framesOf(t, same, module), framesOf(t, before, whole)) {
		t.Errorf("the frames with the unstripped module as debug file are others: %v", err)
	}
}

// The commands are in docs/observe.md.
func TestADebugFileOfLLVMObjcopyHasTheLines(t *testing.T) {
	objcopy, err := exec.LookPath("llvm-objcopy")
	if err != nil {
		t.Skip("llvm-objcopy is not installed")
	}
	whole, err := os.ReadFile("testdata/small.wasm")
	if err != nil {
		t.Fatal(err)
	}
	made := func(flag string) []byte {
		out := filepath.Join(t.TempDir(), "out")
		if text, err := exec.Command(objcopy, flag, "testdata/small.wasm", out).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		file, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	module, debug := made("--strip-debug"), made("--only-keep-debug")
	before, err := symbols.Read(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := symbols.Read(module, debug)
	if err != nil {
		t.Fatal(err)
	}
	got, want := framesOf(t, after, module), framesOf(t, before, whole)
	if !reflect.DeepEqual(got, want) || !slices.Contains(got, "share src/small.cc; total src/small.cc; ") {
		t.Errorf("the frames are %q, want %q", got, want)
	}
}

// adder has two functions of the body (i32.const 7) (drop), with names, at the offsets bodies.
func adder(t *testing.T) (module []byte, bodies [2]int64) {
	t.Helper()
	module = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x03\x02\x00\x00" +
		"\x0a\x0d\x02" + "\x05\x00\x41\x07\x1a\x0b" + "\x05\x00\x41\x07\x1a\x0b")
	first := int64(bytes.IndexByte(module, 0x41)) - 1
	module = wasm.AppendCustom(module, "name", []byte("\x01\x10\x02\x00\x05first\x01\x06second"))
	return module, [2]int64{first, first + 6}
}

func mapOf(bodies [2]int64, second bool) string {
	mappings := segment(int(bodies[0]), 0, 4, 2)
	if second {
		mappings += "," + segment(int(bodies[1]-bodies[0])+1, 1, 5, 0)
	}
	return fmt.Sprintf(`{"version":3,"sources":["handlers/a.ts","~lib/b.ts"],"mappings":"%s"}`, mappings)
}

// segment encodes numbers in base64 VLQ.
func segment(numbers ...int) (text string) {
	for _, n := range numbers {
		bits := n << 1
		for ; bits > 31; bits >>= 5 {
			text += string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[bits&31|32])
		}
		text += string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[bits])
	}
	return text
}

func TestASourceMapHasTheLines(t *testing.T) {
	module, bodies := adder(t)
	text := mapOf(bodies, true)
	url := func(u string) []byte { return append([]byte{byte(len(u))&0x7f | 0x80, byte(len(u) >> 7)}, u...) }
	inline := wasm.AppendCustom(bytes.Clone(module), "sourceMappingURL", url("data:application/json;base64,"+base64.StdEncoding.EncodeToString([]byte(text))))
	split, debug, err := symbols.SplitSourceMap(inline, []byte(text), func(s string) string { return s })
	if err != nil || !bytes.Equal(split, module) {
		t.Fatalf("the module without its map is another one: %v", err)
	}
	for name, files := range map[string][2][]byte{
		"in the module":           {inline, nil},
		"in a debug file":         {module, debug},
		"as the debug file":       {module, []byte(text)},
		"also in the debug file":  {inline, debug},
		"with a URL elsewhere":    {wasm.AppendCustom(bytes.Clone(module), "sourceMappingURL", url("https://example.com/"+strings.Repeat("a", 120))), []byte(text)},
		"with sections before it": {module, wasm.AppendCustom(wasm.AppendCustom(nil, "other", nil), "sourceMappingURL", url("data:,"+text))},
	} {
		table, err := symbols.Read(files[0], files[1])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, c := range []struct {
			function uint32
			offset   int64
			want     symbols.Frame
		}{
			{0, bodies[0] + 2, symbols.Frame{Function: "first", File: "handlers/a.ts", Line: 5, Column: 3, Offset: bodies[0] + 2}},
			{1, bodies[1] + 1, symbols.Frame{Function: "second", File: "~lib/b.ts", Line: 10, Column: 3, Offset: bodies[1] + 1}},
			{1, bodies[1], symbols.Frame{Function: "second", Offset: bodies[1]}}, // before the first segment of its function
			{1, 0, symbols.Frame{Function: "second"}},
			{7, 1 << 40, symbols.Frame{Offset: 1 << 40}},
		} {
			if got := table.Frames(c.function, c.offset); !reflect.DeepEqual(got, []symbols.Frame{c.want}) {
				t.Errorf("%s: function %d, offset %d: %+v, want %+v", name, c.function, c.offset, got, c.want)
			}
		}
	}
}

func TestADebugFileThatCannotBeUsedLeavesTheNames(t *testing.T) {
	module, bodies := adder(t)
	other, _ := adder(t)
	other[bodies[0]+2] = 8 // another constant
	_, of, err := symbols.SplitSourceMap(other, []byte(mapOf(bodies, true)), func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	dwarf := wasm.AppendCustom(wasm.AppendCustom(nil, ".debug_info", []byte{40, 0, 0, 0, 4}), ".debug_abbrev", []byte{1})
	for name, c := range map[string]struct{ debug, want string }{
		"of another build":      {string(of), "belongs to another build of the module: build both again"},
		"not a module":          {"\x7fELF", "its file is not a WebAssembly module"},
		"cut off":               {string(of[:len(of)-3]), "cut off or damaged"},
		"an empty file":         {"", "is empty"},
		"JSON that is cut off":  {`{"version":3,"mappings":"AAAA`, "source map is damaged"},
		"DWARF that is damaged": {string(dwarf), "DWARF is damaged"},
	} {
		table, err := symbols.Read(module, []byte(c.debug))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		want := symbols.Frame{Function: "second", Offset: bodies[1]}
		if got := table.Frames(1, bodies[1]); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if table, err := symbols.Read([]byte("\x00asm"), nil); err == nil || len(table.Frames(0, 3)) != 1 {
		t.Errorf("a damaged module: %v", err)
	}
}
