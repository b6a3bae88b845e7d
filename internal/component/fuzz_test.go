package component_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

func FuzzReadRefusesOrPlans(f *testing.F) {
	for _, c := range specCases(f, "cases") {
		f.Add(c.Wasm)
	}
	for _, name := range []string{"command-0.2", "starlingmonkey-0.2", "quickjs-0.3"} {
		f.Add(sampleFile(f, name))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		before := bytes.Clone(file)
		p, err := component.Read(file, wasm.DefaultLimits())
		if !bytes.Equal(before, file) {
			t.Fatal("the file was changed")
		}
		if err == nil {
			checkPlan(t, p)
			return
		}
		var is *component.Error
		if !errors.As(err, &is) || is.At < 0 || is.At > len(file) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("the error is not one line with a place in the file: %v", err)
		}
	})
}

// build makes components for tests of bounds.
type build struct{ bytes.Buffer }

func newBuild() *build {
	b := &build{}
	b.WriteString("\x00asm\x0d\x00\x01\x00")
	return b
}

func (b *build) number(n int) { b.Write(binary.AppendUvarint(nil, uint64(n))) }

// section appends a section, with a count of its entries unless that is negative.
func (b *build) section(id byte, count int, content ...[]byte) {
	all := bytes.Join(content, nil)
	if count >= 0 {
		all = append(binary.AppendUvarint(nil, uint64(count)), all...)
	}
	b.WriteByte(id)
	b.number(len(all))
	b.Write(all)
}

// index appends an index below 8192, in two bytes so that it is a signed number too.
func index(before []byte, n int, after ...byte) []byte {
	return append(append(bytes.Clone(before), byte(n)|0x80, byte(n>>7)), after...)
}

// The cases here take exponential time or memory, or a deep stack, without bounds.
func TestWhatGrowsFasterThanTheFileIsBounded(t *testing.T) {
	tuples := newBuild() // each is two of the one before
	tuples.section(7, 1, []byte{0x6f, 1, 0x7f})
	for n := range 60 {
		tuples.section(7, 1, index(index([]byte{0x6f, 2}, n), n))
	}

	nestedLists := newBuild()
	nestedLists.section(7, 1, []byte{0x70, 0x7f})
	for n := range 200 {
		nestedLists.section(7, 1, index([]byte{0x70}, n))
	}

	// each component instantiates the one before twice
	components := newBuild()
	empty := []byte("\x00asm\x0d\x00\x01\x00")
	components.section(4, -1, empty)
	for n := range 60 {
		c := newBuild()
		c.section(6, 1, index([]byte{4, 2, 1}, n))
		c.section(5, 2, []byte{0, 0, 0, 0, 0, 0})
		components.section(4, -1, c.Bytes())
	}

	// each component instantiates the one before, once
	chain := newBuild()
	chain.section(4, -1, empty)
	for n := range 5_000 {
		c := newBuild()
		c.section(6, 1, index([]byte{4, 2, 1}, n))
		c.section(5, 1, []byte{0, 0, 0})
		chain.section(4, -1, c.Bytes())
	}

	// each type of an instance exports two of the one before
	instances := newBuild()
	instances.section(7, 1, []byte{0x42, 0})
	for n := range 60 {
		instances.section(7, 1, index([]byte{0x42, 3, 2, 3, 2, 1}, n, 4, 0, 1, 'a', 5, 0, 4, 0, 1, 'b', 5, 0))
	}

	deep := empty
	for range 200 {
		b := newBuild()
		b.section(4, -1, deep)
		deep = b.Bytes()
	}

	types := newBuild() // types within types
	content := []byte{0x7f}
	for range 200 {
		content = append([]byte{0x41, 1, 1}, content...)
	}
	types.section(7, 1, content)

	many := newBuild() // types of components that are compared
	many.section(7, 1, []byte{0x42, 0})
	for n := range 2_000 {
		many.section(7, 1, index([]byte{0x42, 2, 2, 3, 2, 1}, n, 4, 0, 1, 'a', 5, 0))
	}

	// a component has an instance for each of many instantiations of a module with many exports
	modules := newBuild()
	var exports []byte
	for n := range 5_000 {
		exports = append(exports, 4)
		exports = append(exports, byte('a'+n%26), byte('a'+n/26%26), byte('a'+n/676%26), byte('a'+n/17576))
		exports = append(exports, 3, 0)
	}
	m := newBuild()
	m.Reset()
	m.WriteString("\x00asm\x01\x00\x00\x00")
	m.section(6, 1, []byte{0x7f, 0, 0x41, 0, 0x0b})
	m.section(7, 5_000, exports)
	modules.section(1, -1, m.Bytes())
	modules.section(2, 900, bytes.Repeat([]byte{0, 0, 0}, 900))

	counts := newBuild()
	counts.section(7, 1<<28)

	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"tuples of tuples", tuples.Bytes(), "(maxTypeSize)"},
		{"lists of lists", nestedLists.Bytes(), "(maxTypeDepth)"},
		{"components that instantiate two", components.Bytes(), "(maxInstances)"},
		{"components that instantiate one", chain.Bytes(), "(maxNesting)"},
		{"types of instances with two", instances.Bytes(), "(maxSteps)"},
		{"nested components", deep, "(maxNesting)"},
		{"nested types", types.Bytes(), "(maxNesting)"},
		{"types of instances with one", many.Bytes(), "(maxNesting)"},
		{"modules with many exports", modules.Bytes(), "(maxSteps)"},
		{"a count of entries", counts.Bytes(), "(maxEntries)"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := component.Read(c.file, wasm.DefaultLimits())
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %v, %d MiB allocated", c.name, took, allocated)
		if allocated > 512 {
			t.Errorf("%s: %d MiB were allocated", c.name, allocated)
		}
	}
}
