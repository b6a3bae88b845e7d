package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Foreign tells a file that is no module, or a module made for a host of another
// kind, by what is seen at once: its first bytes, the names of its sections and of
// its imports. The error is one line, as Parse's are, that says what the file is
// and what to do; nil says that it may be a module like others. Of damage Foreign
// says nothing but that a file is cut off within its first bytes.
func Foreign(file []byte) error {
	if !bytes.HasPrefix(file, []byte(magic)) {
		return foreignFile(file)
	}
	if len(file) < 8 {
		return fmt.Errorf("is cut off: %d bytes of a WebAssembly module are there; build it again or copy it whole", len(file))
	}
	if binary.LittleEndian.Uint32(file[4:]) != 1 {
		return nil // Parse says it all
	}
	o := readOutline(file)
	for _, f := range foreigners {
		if f.is(o) {
			return errors.New(f.text)
		}
	}
	return nil
}

const magic = "\x00asm"

// signatures are what files begin with that are taken for modules, and what the
// message says of them.
var signatures = []struct{ begin, text string }{
	{"\x1f\x8b", "is compressed with gzip: unpack it (gunzip, or tar -xzf for a package)"},
	{"PK\x03\x04", "is a zip archive: unpack it"},
	{"\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it (zstd -d)"},
	{"\xfd7zXZ\x00", "is compressed with xz: unpack it (unxz)"},
	{"BZh", "is compressed with bzip2: unpack it (bunzip2)"},
	{"\x7fELF", "is a program for this kind of machine (ELF): build it for WebAssembly (wasm32-wasip1)"},
	{"MZ", "is a program for Windows: build it for WebAssembly (wasm32-wasip1)"},
	{"\xcf\xfa\xed\xfe", "is a program for macOS: build it for WebAssembly (wasm32-wasip1)"},
	{"\xca\xfe\xba\xbe", "is a program for macOS or Java: build it for WebAssembly (wasm32-wasip1)"},
	{"BC\xc0\xde", "is LLVM bitcode: link it to a WebAssembly module (without -c and -flto)"},
	{"!<arch>\n", "is a library of object files: link it to a WebAssembly module"},
	{"version https://git-lfs.github.com/", "is a pointer of Git LFS in place of the file: fetch it with git lfs pull"},
}

// foreignFile tells a file that does not begin as modules do.
func foreignFile(file []byte) error {
	if len(file) == 0 {
		return errors.New("is empty: build it again, and see whether the disk is full")
	}
	for _, s := range signatures {
		if bytes.HasPrefix(file, []byte(s.begin)) {
			return errors.New(s.text)
		}
	}
	if bytes.HasPrefix([]byte(magic), file) {
		return fmt.Errorf("is cut off: %d bytes of a WebAssembly module are there; build it again or copy it whole", len(file))
	}
	begin := file[:min(len(file), 512)]
	if !isText(begin) {
		return errors.New("is not a WebAssembly module, which begins with the bytes 00 61 73 6d: build it again")
	}
	text := strings.ToLower(strings.TrimLeft(string(begin), "\ufeff \t\r\n"))
	switch {
	case strings.HasPrefix(text, "(") || strings.HasPrefix(text, ";;"):
		return errors.New("is WebAssembly text: assemble it to a module (wat2wasm)")
	case strings.HasPrefix(text, "<"):
		return errors.New("is a page of HTML or XML, which servers send in place of a file that is not there: fetch it again")
	}
	return errors.New("is text and not a WebAssembly module: compile it, or fetch it again")
}

// isText reports whether what a file begins with is text, but for a character
// that is cut.
func isText(begin []byte) bool {
	for len(begin) > 0 {
		r, size := utf8.DecodeRune(begin)
		if r == utf8.RuneError && size == 1 {
			return len(begin) < utf8.UTFMax && !utf8.FullRune(begin)
		}
		if r < ' ' && !strings.ContainsRune("\t\r\n\f", r) {
			return false
		}
		begin = begin[size:]
	}
	return true
}

// outline is what there is to a module without reading it whole, as far as it can
// be read.
type outline struct {
	imports []Import // of any kind; their types are not read
	customs []string
	exports bool // there is a section of them
}

// maxOutline is how many sections, and how many imports, are looked at.
const maxOutline = 4096

func readOutline(file []byte) (o outline) {
	r := &reader{bytes: file, pos: 8, end: len(file)}
	for n := 0; n < maxOutline && r.pos < r.end; n++ {
		id, size := r.byte(), r.u32()
		if r.err != nil {
			break
		}
		s := &reader{bytes: file, pos: r.pos, end: r.pos + int(min(uint64(size), uint64(r.left())))}
		r.pos = s.end
		switch id {
		case sectionCustom:
			if name := s.name(); s.err == nil {
				o.customs = append(o.customs, name)
			}
		case sectionImport:
			o.imports = readImportNames(s)
		case sectionExport:
			o.exports = true
		}
	}
	return o
}

func readImportNames(r *reader) (names []Import) {
	for range min(r.u32(), maxOutline) {
		i := Import{Module: r.name(), Name: r.name()}
		switch r.byte() {
		case 0: // function: type
			r.u32()
		case 1: // table: type, limits
			r.byte()
			skipLimits(r)
		case 2: // memory: limits
			skipLimits(r)
		case 3: // global: type, mutable
			r.byte()
			r.byte()
		case 4: // tag: attribute, type
			r.byte()
			r.u32()
		default:
			return names
		}
		if r.err != nil {
			return names
		}
		names = append(names, i)
	}
	return names
}

func skipLimits(r *reader) {
	flags := r.byte()
	r.skipLEB()
	if flags&1 != 0 {
		r.skipLEB()
	}
}

// skipLEB passes a number of any size.
func (r *reader) skipLEB() {
	for r.byte()&0x80 != 0 {
	}
}

// foreigner is a kind of modules made for another host.
type foreigner struct {
	is   func(outline) bool
	text string
}

// foreigners in the order in which they are looked for: what is more special
// stands first. Whatever one of them is told by, guests cannot import.
var foreigners = []foreigner{
	{func(o outline) bool {
		return slices.Contains(o.customs, "linking") && !o.exports
	}, "is an object file, not linked yet: link it (leave out -c, or use wasm-ld)"},
	{func(o outline) bool {
		return slices.Contains(o.customs, "dylink.0") || slices.Contains(o.customs, "dylink") || o.from("GOT.mem", "GOT.func")
	}, "is a WebAssembly library for dynamic linking, and only whole modules can be run: build it without -shared, -fPIC and SIDE_MODULE"},
	{func(o outline) bool {
		return o.from("wbg", "__wbindgen_placeholder__", "__wbindgen_externref_xform__", "__wbindgen_anyref_xform__") ||
			o.any(func(i Import) bool {
				return strings.HasSuffix(i.Module, "_bg.js") || strings.HasPrefix(i.Name, "__wbindgen") || strings.HasPrefix(i.Name, "__wbg_")
			})
	}, "is made by wasm-bindgen for JavaScript as its host: build the Rust code for wasm32-wasip1, or for wasm32-unknown-unknown without wasm-bindgen, and with the runner's SDK"},
	{func(o outline) bool {
		return o.from("gojs") || o.any(func(i Import) bool {
			return i.Module == "go" && (strings.HasPrefix(i.Name, "runtime.") || strings.HasPrefix(i.Name, "syscall/js.") || i.Name == "debug")
		})
	}, "is Go built for JavaScript as its host (GOOS=js): build it with GOOS=wasip1 GOARCH=wasm, and with -buildmode=c-shared unless it is a command"},
	{func(o outline) bool {
		return o.any(func(i Import) bool { return strings.HasPrefix(i.Name, "napi_") })
	}, "is an add-on for Node.js (it imports Node-API), which nothing here offers: use a build of the library for WASI"},
	{func(o outline) bool {
		return o.any(func(i Import) bool { return strings.HasPrefix(i.Module, "wasix_") })
	}, "is built for WASIX, and WASI preview 1 is what can be run: build it for wasm32-wasip1"},
	{func(o outline) bool {
		return o.from("wasi") && o.any(func(i Import) bool { return i.Module == "wasi" && i.Name == "thread-spawn" })
	}, "is built with threads (wasm32-wasip1-threads), which cannot be run: build it for wasm32-wasip1"},
	{func(o outline) bool {
		return o.any(func(i Import) bool { return strings.HasPrefix(i.Module, "wasi:") })
	}, "is the core of a WebAssembly component (it imports WASI 0.2): build it for wasm32-wasip1"},
	{func(o outline) bool { return o.from("wasi_unstable") },
		"is built for the first draft of WASI (wasi_unstable): build it with a newer toolchain, for wasm32-wasip1"},
	{isEmscripten, "is made by Emscripten for JavaScript as its host: build the code with clang --target=wasm32-wasi, or with emcc -sSTANDALONE_WASM"},
}

// isEmscripten knows what Emscripten's own glue offers, and how its optimizer
// shortens names: a.a, a.b, ….
func isEmscripten(o outline) bool {
	short := 0
	for _, i := range o.imports {
		if i.Module == "a" && len(i.Name) <= 2 {
			short++
		}
	}
	if short > 0 && short == len(o.imports) {
		return true
	}
	return o.any(func(i Import) bool {
		if i.Module != "env" {
			return false
		}
		for _, prefix := range []string{"emscripten_", "_emscripten_", "__emscripten_", "__syscall", "invoke_", "__cxa_", "_embind_"} {
			if strings.HasPrefix(i.Name, prefix) {
				return true
			}
		}
		switch i.Name {
		case "_abort_js", "abortOnCannotGrowMemory", "__assert_fail", "setTempRet0", "getTempRet0", "_tzset_js", "__memory_base":
			return true
		}
		return false
	})
}

func (o outline) any(is func(Import) bool) bool { return slices.ContainsFunc(o.imports, is) }

// from reports whether something is imported from one of the modules.
func (o outline) from(modules ...string) bool {
	return o.any(func(i Import) bool { return slices.Contains(modules, i.Module) })
}
