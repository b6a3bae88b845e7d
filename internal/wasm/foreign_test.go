package wasm_test

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/internal/wasm"
)

func TestWhatIsNoModuleForGuestsIsToldByWhatItIs(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(plainModule); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(self, []byte(elf.ELFMAG)) {
		t.Fatal("this test is no ELF program")
	}
	for _, row := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "is empty: "},
		{"three bytes", plainModule[:3], "is cut off: 3 bytes"},
		{"six bytes", plainModule[:6], "is cut off: 6 bytes"},
		{"text of a module", []byte("\n (module)"), "is WebAssembly text: assemble it"},
		{"a comment and a module", []byte(";; hello\n(module)"), "is WebAssembly text"},
		{"an error page", []byte("<!DOCTYPE html>\n<title>404 Not Found</title>"), "is a page of HTML"},
		{"a script", []byte("#!/bin/sh\necho ü\n"), "is text and not"},
		{"text that ends within a character", append(bytes.Repeat([]byte("x"), 511), "ü"...), "is text and not"},
		{"a module in gzip", zipped.Bytes(), "is compressed with gzip: unpack it"},
		{"an archive", []byte("PK\x03\x04rest"), "is a zip archive"},
		{"this test", self, "(ELF): build it for WebAssembly"},
		{"a pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "is a pointer of Git LFS"},
		{"zeros", make([]byte, 100), "is not a WebAssembly module"},
		{"noise", []byte("\x80\x01\xff\x00\x10\x11\x12\x13"), "is not a WebAssembly module"},

		{"wasm-bindgen for the web", moduleImporting("wbg.__wbg_log_1"), "is made by wasm-bindgen"},
		{"wasm-bindgen for bundlers", moduleImporting("./app_bg.js.__wbindgen_throw"), "is made by wasm-bindgen"},
		{"wasm-bindgen before its tool ran", moduleImporting("env.something", "__wbindgen_placeholder__.__wbindgen_describe"), "is made by wasm-bindgen"},
		{"Go for browsers", moduleImporting("gojs.runtime.wasmExit"), "is Go built for JavaScript"},
		{"old Go for browsers", moduleImporting("go.runtime.wasmExit"), "is Go built for JavaScript"},
		{"Emscripten", moduleImporting("env.memory", "wasi_snapshot_preview1.fd_write", "env.emscripten_resize_heap"), "is made by Emscripten"},
		{"Emscripten with its names shortened", moduleImporting("a.a", "a.b", "a.aa"), "is made by Emscripten"},
		{"Emscripten with exceptions", moduleImporting("env.invoke_vii"), "is made by Emscripten"},
		{"a side module", moduleImporting("GOT.mem.buffer"), "is a WebAssembly library for dynamic linking"},
		{"a library for dynamic linking", custom("dylink.0"), "is a WebAssembly library for dynamic linking"},
		{"an add-on for Node.js", moduleImporting("env.napi_create_object"), "is an add-on for Node.js"},
		{"WASIX", moduleImporting("wasix_32v1.callback_signal"), "is built for WASIX"},
		{"WASI with threads", moduleImporting("wasi.thread-spawn"), "is built with threads"},
		{"the core of a component", moduleImporting("wasi:io/streams@0.2.0.read"), "is the core of a WebAssembly component"},
		{"WASI's first draft", moduleImporting("wasi_unstable.fd_write"), "is built for the first draft of WASI"},

		{"a module", plainModule, ""},
		{"a module cut off", plainModule[:len(plainModule)-1], ""}, // Parse says where
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), ""},     // Parse knows those
		{"a guest", moduleImporting("runner.log", "wasi_snapshot_preview1.fd_write"), ""},
		{"a module of another host", moduleImporting("dprint.host_write"), ""}, // sandbox names the imports
		{"AssemblyScript", moduleImporting("env.abort"), ""},
		{"one import from a module called a", moduleImporting("a.a", "runner.log"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := wasm.Foreign(row.file)
			switch {
			case row.want == "" && err != nil:
				t.Errorf("told as %q", err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("told as %v, want one line with %q", err, row.want)
			}
		})
	}
}

func TestAnObjectFileIsToldFromAModule(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C: left out by -short")
	}
	clang, err := exec.LookPath("clang-22")
	if err != nil {
		t.Fatal("clang-22 is missing: apt-get install clang-22 (make test does it)")
	}
	dir := t.TempDir()
	source, object := filepath.Join(dir, "x.c"), filepath.Join(dir, "x.o")
	if err := os.WriteFile(source, []byte("int f(int); int g(void) { return f(1); }"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(clang, "--target=wasm32-unknown-unknown", "-c", source, "-o", object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := wasm.Foreign(file); err == nil || !strings.Contains(err.Error(), "is an object file, not linked yet") {
		t.Errorf("told as %v", err)
	}
}

func FuzzForeign(f *testing.F) {
	f.Add([]byte("(module)"))
	f.Add(plainModule)
	f.Add(moduleImporting("env.memory", "a.b"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if err := wasm.Foreign(file); err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 300) {
			t.Errorf("%q is no single line of some length", err)
		}
	})
}

// plainModule has a memory and a function that does nothing.
var plainModule = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x0e\x02\x01h\x00\x00\x06memory\x02\x00\x0a\x04\x01\x02\x00\x0b")

// moduleImporting imports functions of no parameters by module and name; what is
// called memory is one.
func moduleImporting(names ...string) []byte {
	body := []byte{byte(len(names))}
	for _, name := range names {
		dot := strings.LastIndexByte(name, '.')
		if after, ok := strings.CutPrefix(name, "gojs."); ok {
			dot = len(name) - len(after) - 1
		} else if after, ok := strings.CutPrefix(name, "go."); ok {
			dot = len(name) - len(after) - 1
		}
		module, field := name[:dot], name[dot+1:]
		body = append(append(body, byte(len(module))), module...)
		body = append(append(body, byte(len(field))), field...)
		if field == "memory" {
			body = append(body, 2, 1, 1, 0x80, 0x80, 4) // limits with a maximum
		} else {
			body = append(body, 0, 0)
		}
	}
	file := append([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02"), byte(len(body)&0x7f|0x80), byte(len(body)>>7))
	return append(file, body...)
}

// custom is a module with one custom section, which is empty.
func custom(name string) []byte {
	return fmt.Appendf(nil, "\x00asm\x01\x00\x00\x00\x00%c%c%s", len(name)+1, len(name), name)
}
