package symbols

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"runner.example/internal/wasm"
)

// MaxDebugBytes is the largest debug file that can be used, as large as any file of a release.
const MaxDebugBytes = 32 << 20

// Table finds the functions and lines of one module. It does not change, and may be used from any goroutine.
// It borrows the files that it was read from.
type Table struct {
	module    []byte
	code      wasm.Section // of the module; zero if there is none
	names     []wasm.FunctionName
	dwarf     *dwarfIndex // nil: no DWARF
	sourceMap []mapping   // sorted by offset
	sources   []string    // of the source map
}

// Read reads the names and lines of a module from its file as uploaded and from its debug file. debug may be nil.
// A debug file is a WebAssembly file, of which only custom sections are read, or a source map in JSON. It overrides
// what the module has of the same kind.
//
// The table is never nil. The error says what cannot be used, in one line that continues "debug information". The
// table then has the rest.
func Read(module, debug []byte) (*Table, error) {
	t, sections, err := newTable(module)
	if err != nil {
		return t, fmt.Errorf("cannot be used: the module %w", err)
	}
	own := t.readSections(module, sections)
	if debug == nil {
		return t, own
	}
	if bytes.HasPrefix(debug, []byte("{")) {
		return t, t.readSourceMap(debug)
	}
	sections, err = t.check(debug)
	if err != nil {
		return t, err
	}
	return t, t.readSections(debug, sections)
}

// Check checks in little time that a debug file is readable and belongs to a module. It does not read DWARF and
// source maps. Its errors are worded as those of Read.
func Check(module, debug []byte) error {
	t, _, err := newTable(module)
	if err == nil && !bytes.HasPrefix(debug, []byte("{")) {
		_, err = t.check(debug)
	}
	return err
}

// check checks a debug file that is not a source map, and returns its sections.
func (t *Table) check(debug []byte) ([]wasm.Section, error) {
	sections, err := wasm.Sections(debug)
	switch {
	case len(debug) > MaxDebugBytes:
		return nil, fmt.Errorf("cannot be used: its file has %d bytes, and may have %d", len(debug), MaxDebugBytes)
	case err != nil:
		return nil, fmt.Errorf("cannot be used: its file %w", err)
	case t.belongsToOther(debug, sections):
		return nil, errors.New("cannot be used: its file belongs to another build of the module: build both again")
	}
	return sections, nil
}

// newTable returns a table without names and lines, and the sections of the module.
func newTable(module []byte) (*Table, []wasm.Section, error) {
	t := &Table{module: module}
	sections, err := wasm.Sections(module)
	if i := slices.IndexFunc(sections, wasm.Section.IsCode); i >= 0 {
		t.code = sections[i]
	}
	if err == nil && len(sections) == 0 {
		err = errors.New("is empty: build it again")
	}
	return t, sections, err
}

// Size returns about how many bytes the table takes beside its files: it can be a multiple of them.
func (t *Table) Size() int64 {
	size := cap(t.names)*int(unsafe.Sizeof(wasm.FunctionName{})) + cap(t.sourceMap)*int(unsafe.Sizeof(mapping{}))
	for _, source := range t.sources {
		size += len(source)
	}
	if d := t.dwarf; d != nil {
		size += cap(d.rows)*int(unsafe.Sizeof(row{})) + cap(d.scopes)*int(unsafe.Sizeof(scope{})) +
			2*cap(d.ranges)*int(unsafe.Sizeof(pcRange{}))
		size += cap(d.files)*int(unsafe.Sizeof(sourceFile{})) + len(d.units)*int(unsafe.Sizeof(unit{})) +
			d.specs*int(unsafe.Sizeof(attrSpec{}))
	}
	return int64(size)
}

// sourceMapURL is the name of the custom section with the URL of a source map.
const sourceMapURL = "sourceMappingURL"

// codeDigest is the name of the custom section of a debug file that has the SHA-256 of the content of the
// module's code section.
const codeDigest = "runner.code"

// digest returns what the section codeDigest has.
func (t *Table) digest() []byte {
	sum := sha256.Sum256(t.module[t.code.Body:t.code.End])
	return sum[:]
}

// belongsToOther reports whether a debug file says that it belongs to another module.
func (t *Table) belongsToOther(debug []byte, sections []wasm.Section) bool {
	i := slices.IndexFunc(sections, func(s wasm.Section) bool { return s.IsCustom() && s.Name == codeDigest })
	return i >= 0 && !bytes.Equal(debug[sections[i].Body:sections[i].End], t.digest())
}

// readSections reads the custom sections of a file.
func (t *Table) readSections(file []byte, sections []wasm.Section) error {
	debug := map[string][]byte{}
	for _, s := range sections {
		if !s.IsCustom() {
			continue
		}
		content := file[s.Body:s.End]
		switch {
		case s.Name == "name":
			if names := wasm.FunctionNames(content); len(names) > 0 {
				t.names = names
			}
		case s.Name == sourceMapURL:
			if inline, ok := inlineMap(content); ok {
				if err := t.readSourceMap(inline); err != nil {
					return err
				}
			}
		case isUsed(s.Name):
			debug[s.Name] = content
		}
	}
	if debug[".debug_info"] == nil || t.code.End == 0 {
		return nil
	}
	index, err := readDWARF(debug, uint32(t.code.End-t.code.Body))
	if index != nil {
		t.dwarf = index
	}
	return err
}

// name returns the name of a function in the name section, or "".
func (t *Table) name(function uint32) string {
	i, ok := slices.BinarySearchFunc(t.names, function, func(n wasm.FunctionName, f uint32) int {
		return cmp.Compare(n.Function, f)
	})
	if !ok {
		return ""
	}
	return PlainName(string(t.names[i].Name))
}

// maxInlined limits the frames of one active call: inlined calls can be nested without limit.
const maxInlined = 64

// Frames returns the frames of a function that is active, innermost first: the inlined calls that contain the
// instruction, and the function itself, which is always there. function is its index, counted with imports. offset
// is that of the instruction in the module's file as uploaded; 0: it is unknown. For a caller it may be that of any
// byte of its call, such as the offset after the call minus 1.
func (t *Table) Frames(function uint32, offset int64) []Frame {
	var frames []Frame
	if offset >= int64(t.code.Body) && offset < int64(t.code.End) {
		if t.dwarf != nil {
			frames = t.dwarf.frames(uint32(offset - int64(t.code.Body)))
		}
		if len(frames) == 0 || len(frames) == 1 && frames[0].File == "" {
			if f, ok := t.mapped(offset); ok {
				frames = []Frame{f}
			}
		}
	}
	if len(frames) == 0 {
		frames = make([]Frame, 1)
	}
	if name := t.name(function); name != "" {
		frames[len(frames)-1].Function = name
	}
	for i := range frames {
		frames[i].Offset = max(offset, 0)
	}
	return frames
}
