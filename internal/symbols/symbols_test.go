package symbols_test

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
)

// compile runs a compiler, whose last argument is the module to write, and returns that.
func compile(t *testing.T, command string, args ...string) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a compiler")
	}
	out := filepath.Join(t.TempDir(), "out.wasm")
	cmd := exec.Command(command, append(args, out)...)
	cmd.Dir = "testdata"
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func clang(t *testing.T, args ...string) []byte {
	return compile(t, "clang++-22", append(args, "--target=wasm32-wasi", "-Wno-deprecated", "-O2", "-fno-exceptions", "-mexec-model=reactor", "cart.cc", "-o")...)
}

func rustc(t *testing.T, args ...string) []byte {
	return compile(t, "/usr/bin/rustc", append(args, "--target=wasm32-unknown-unknown", "--crate-type=cdylib", "-Copt-level=3", "-Cpanic=abort", "ledger.rs", "-o")...)
}

// dwarfModel is DWARF as the standard library reads it, searched without an index.
type dwarfModel struct {
	sequences [][]dwarf.LineEntry
	scopes    []modelScope
}

type modelScope struct {
	depth  int
	inline bool
	ranges [][2]uint64
	file   string
	line   int64
}

func newModel(t *testing.T, module []byte) (m dwarfModel, codeStart, codeSize int) {
	t.Helper()
	sections, err := wasm.Sections(module)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]byte{}
	for _, s := range sections {
		if s.IsCode() {
			codeStart, codeSize = s.Body, s.End-s.Body
		}
		of[s.Name] = module[s.Body:s.End]
	}
	d, err := dwarf.New(of[".debug_abbrev"], nil, nil, of[".debug_info"], of[".debug_line"], nil, of[".debug_ranges"], of[".debug_str"])
	for _, name := range []string{".debug_line_str", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		if err == nil && of[name] != nil {
			err = d.AddSection(name, of[name])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var files []*dwarf.LineFile
	depth := 0
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		switch e.Tag {
		case 0:
			depth--
			continue
		case dwarf.TagCompileUnit:
			files = m.readLines(t, d, e)
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			s := modelScope{depth: depth, inline: e.Tag == dwarf.TagInlinedSubroutine}
			if s.ranges, err = d.Ranges(e); err != nil {
				t.Fatal(err)
			}
			if n, ok := e.Val(dwarf.AttrCallFile).(int64); ok {
				s.file = files[n].Name
				s.line, _ = e.Val(dwarf.AttrCallLine).(int64)
			}
			m.scopes = append(m.scopes, s)
		}
		if e.Children {
			depth++
		}
	}
	return m, codeStart, codeSize
}

func (m *dwarfModel) readLines(t *testing.T, d *dwarf.Data, unit *dwarf.Entry) []*dwarf.LineFile {
	r, err := d.LineReader(unit)
	if err != nil || r == nil {
		t.Fatal(err)
	}
	var sequence []dwarf.LineEntry
	for {
		var e dwarf.LineEntry
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return r.Files()
		} else if err != nil {
			t.Fatal(err)
		}
		sequence = append(sequence, e)
		if e.EndSequence {
			m.sequences = append(m.sequences, sequence)
			sequence = nil
		}
	}
}

// places returns the places of the frames at an address, innermost first.
func (m *dwarfModel) places(addr uint64, last uint64) (places []symbols.Frame) {
	var here symbols.Frame
	for _, s := range m.sequences {
		if first := s[0].Address; first == 0 || first > last || addr < first || addr >= s[len(s)-1].Address {
			continue
		}
		for _, e := range s {
			if e.Address <= addr && !e.EndSequence {
				here = symbols.Frame{Line: e.Line}
				if e.Line > 0 {
					here.File = e.File.Name
				}
			}
		}
	}
	var around []modelScope
	for _, s := range m.scopes {
		if slices.ContainsFunc(s.ranges, func(r [2]uint64) bool { return r[0] != 0 && r[1] <= last && r[0] <= addr && addr < r[1] }) {
			around = append(around, s)
		}
	}
	slices.SortStableFunc(around, func(a, b modelScope) int { return cmp.Compare(b.depth, a.depth) })
	for _, s := range around {
		places = append(places, here)
		if here = (symbols.Frame{File: s.file, Line: int(s.line)}); !s.inline {
			return places
		}
	}
	return append(places, here)
}

func TestLinesAreThoseOfTheStandardLibrarysReader(t *testing.T) {
	for name, build := range map[string]func(t *testing.T) []byte{
		"C++ line tables":       func(t *testing.T) []byte { return clang(t, "-g1") },
		"C++ DWARF 4":           func(t *testing.T) []byte { return clang(t, "-g", "-gdwarf-4") },
		"C++ DWARF 5":           func(t *testing.T) []byte { return clang(t, "-g", "-gdwarf-5") },
		"C++ link optimization": func(t *testing.T) []byte { return clang(t, "-g", "-flto") },
		"Rust line tables":      func(t *testing.T) []byte { return rustc(t, "-Cdebuginfo=1") },
		"Rust":                  func(t *testing.T) []byte { return rustc(t, "-g") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := build(t)
			model, start, size := newModel(t, module)
			table, err := symbols.Read(module, nil)
			if err != nil {
				t.Fatal(err)
			}
			wrong, inlined, lines, looked := 0, 0, 0, 0
			const most = 2000 // the model reads everything for each address
			for addr := 1; addr < size && wrong < 5; addr += 1 + size/most {
				looked++
				want := model.places(uint64(addr), uint64(size))
				got := table.Frames(0, int64(start+addr))
				for _, f := range got[1:] {
					if f.Line > 0 {
						inlined++
					}
				}
				if got[0].Line > 0 {
					lines++
				}
				if !samePlaces(got, want) {
					wrong++
					t.Errorf("at %#x\n got %+v\nwant %+v", addr, got, want)
				}
			}
			if lines < looked/10 || inlined < 20 {
				t.Errorf("of %d addresses %d have a line and %d are in inlined calls", looked, lines, inlined)
			}
		})
	}
}

// samePlaces compares the lines, and the files' base names: directories are shown in another way.
func samePlaces(got, want []symbols.Frame) bool {
	return slices.EqualFunc(got, want, func(a, b symbols.Frame) bool {
		return a.Line == b.Line && (b.File == "" && a.File == "" || a.File != "" && path.Base(a.File) == path.Base(b.File))
	})
}

// framesOf returns the frames of all addresses of the code that are in a function, as text.
func framesOf(t *testing.T, table *symbols.Table, module []byte) (all []string) {
	t.Helper()
	sections, err := wasm.Sections(module)
	if err != nil {
		t.Fatal(err)
	}
	code := sections[slices.IndexFunc(sections, wasm.Section.IsCode)]
	for offset := code.Body; offset < code.End; offset++ {
		text := ""
		for _, f := range table.Frames(^uint32(0), int64(offset)) {
			text += f.Function + " " + f.File + "; "
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func TestNamesAreThoseOfTheSource(t *testing.T) {
	for name, c := range map[string]struct {
		build func(t *testing.T) []byte
		want  string
	}{
		"C++":  {func(t *testing.T) []byte { return clang(t, "-g", "-ffile-prefix-map="+abs(t)+"=src") }, "shop::Cart::share(int) const src/cart.cc; shop::total(shop::Cart const&, int) src/cart.cc; "},
		"Rust": {func(t *testing.T) []byte { return rustc(t, "-g", "--remap-path-prefix="+abs(t)+"=src") }, "ledger::ledger::Entry::at src/ledger.rs; ledger::ledger::sum src/ledger.rs; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := c.build(t)
			table, err := symbols.Read(module, nil)
			if err != nil {
				t.Fatal(err)
			}
			all := framesOf(t, table, module)
			if !slices.Contains(all, c.want) {
				t.Errorf("no address has the frames %q, but\n%s", c.want, strings.Join(all, "\n"))
			}
			if i := slices.IndexFunc(all, func(f string) bool { return strings.Contains(f, " /") && strings.Contains(f, "library/") }); i >= 0 {
				t.Errorf("a file of the standard library is %q", all[i])
			}
		})
	}
}

func abs(t *testing.T) string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func BenchmarkRead(b *testing.B) {
	module, err := os.ReadFile(os.Getenv("MODULE"))
	if err != nil {
		b.Skip("set MODULE to a module with DWARF")
	}
	for b.Loop() {
		if _, err := symbols.Read(module, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Names are a module's own: they must not end a line, or control a terminal.
func TestNamesOfFunctionsAndFilesArePrintable(t *testing.T) {
	const hostile = "a\x1b[31m\n    at b\r\u202ec\u2028d\u0085e\xff"
	names := "\x01\x00" + string(rune(len(hostile))) + hostile // one, of function 0
	file := wasm.AppendCustom([]byte("\x00asm\x01\x00\x00\x00\x0a\x04\x01\x02\x00\x0b"), "name", []byte("\x01"+string(rune(len(names)))+names))
	table, err := symbols.Read(file, []byte(`{"version":3,"sources":["a\u001b[31m\n/\u202eb"],"mappings":"YAAA"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(table.Frames(0, 12), symbols.Frame{Function: symbols.PlainName(hostile)}) {
		if f.Function == "" || strings.ContainsFunc(f.String(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the frame is %q", f)
		}
	}
}

// The names of sources in a source map may have megabytes, and are read at each failure.
func TestALongNameOfASourceIsCutBeforeItIsRead(t *testing.T) {
	module := []byte("\x00asm\x01\x00\x00\x00\x0a\x04\x01\x02\x00\x0b")
	source := strings.Repeat("/rustc/library/a", 1<<19) + "/end.rs"
	table, err := symbols.Read(module, []byte(`{"version":3,"sources":["`+source+`"],"mappings":"YAAA"}`))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f := table.Frames(0, 12)[0]
	t.Logf("a name of %d bytes was read in %v", len(source), time.Since(began))
	if !strings.HasPrefix(f.File, "…") || !strings.HasSuffix(f.File, "/a/end.rs") || len(f.File) > 1100 {
		t.Errorf("the file is %q", f.File)
	}
}

// Some names of 4 KiB would take 250 ms, and a stack has up to a hundred names.
func TestALongNameIsNotDemangled(t *testing.T) {
	for pointers, want := range map[int]string{10: "f(void**********)", 2000: "_Z1fPPP"} {
		if got := symbols.PlainName("_Z1f" + strings.Repeat("P", pointers) + "v"); !strings.HasPrefix(got, want) {
			t.Errorf("%d pointers: %.40s, want %s", pointers, got, want)
		}
	}
}
