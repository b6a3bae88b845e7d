//go:build patched

package guard_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// generator writes random modules: a function whose accesses of memory have addresses at all edges, among
// operations that trap otherwise, have effects, grow the memory, or call the host.
type generator struct {
	random *rand.Rand
	code   []byte
	depth  int
}

func (g *generator) op(b ...byte) { g.code = append(g.code, b...) }

func (g *generator) unsigned(n uint64) { g.code = binary.AppendUvarint(g.code, n) }

func (g *generator) constant(n int32) {
	g.op(0x41)
	for v := int64(n); ; {
		b := byte(v & 0x7f)
		if v >>= 7; v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			g.op(b)
			return
		}
		g.op(b | 0x80)
	}
}

// The locals: 0 to 3 are i32, 4 and 5 are i64, 6 counts the loops down.
const (
	words, longs = 4, 2
	count        = words + longs
)

func (g *generator) word()          { g.op(0x20, byte(g.random.IntN(words))) }
func (g *generator) setWord()       { g.op(0x21, byte(g.random.IntN(words))) }
func (g *generator) long()          { g.op(0x20, words+byte(g.random.IntN(longs))) }
func (g *generator) setLong()       { g.op(0x21, words+byte(g.random.IntN(longs))) }
func (g *generator) one(n int) bool { return g.random.IntN(n) == 0 }

// address leaves an address, most of them in bounds.
func (g *generator) address() {
	if !g.one(8) {
		if g.one(2) {
			g.constant(g.random.Int32N(page - 300))
		} else {
			g.word()
			g.constant(page - 300)
			g.op(0x70) // remainder
		}
		return
	}
	switch g.random.IntN(5) {
	case 0:
		g.word()
	case 1:
		g.constant(int32(page - g.random.IntN(12)))
	case 2:
		g.constant([]int32{0, -1, -8, -page, 1 << 30, -1 << 31, 3 * page}[g.random.IntN(7)])
	case 3: // the end of memory, or close to it
		g.op(0x3f, 0)
		g.constant(16)
		g.op(0x74)
		g.constant(int32(g.random.IntN(12)))
		g.op(0x6b)
	case 4:
		g.long()
		g.op(0xa7) // wrap
	}
}

// place writes the alignment and the offset of an access.
func (g *generator) place() { g.aligned(0) }

// aligned is place for an access of an alignment.
func (g *generator) aligned(alignment byte) {
	g.op(alignment)
	offsets := []uint64{0, 1, 4, 8, 100}
	if g.one(20) {
		offsets = []uint64{page - 8, page, 1 << 20, 1<<31 - 9, 1<<31 - 8, 1 << 31, 1<<32 - 1}
	}
	g.unsigned(offsets[g.random.IntN(len(offsets))])
}

func (g *generator) statement() {
	switch g.random.IntN(19) {
	case 0, 1, 2:
		g.address()
		g.op([]byte{0x28, 0x2c, 0x2d, 0x2e, 0x2f}[g.random.IntN(5)])
		g.place()
		if g.one(4) {
			g.op(0x1a) // its result is not used
		} else {
			g.setWord()
		}
	case 3, 4:
		g.address()
		g.op([]byte{0x29, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35}[g.random.IntN(7)])
		g.place()
		g.setLong()
	case 5: // a load and something that may trap before the load's result is used
		g.address()
		g.op(0x28)
		g.place()
		g.word()
		g.word()
		if !g.one(6) {
			g.constant(1)
			g.op(0x72) // or
		}
		g.op([]byte{0x6d, 0x6e, 0x6f}[g.random.IntN(3)]) // division
		g.op(0x6a)
		g.setWord()
	case 6: // floats and vectors
		g.address()
		switch g.random.IntN(4) {
		case 0:
			g.op(0x2a)
			g.place()
			g.op(0xbc) // as bits
			g.setWord()
		case 1:
			g.op(0x2b)
			g.place()
			g.op(0xbd)
			g.setLong()
		case 2:
			g.op(0xfd, byte(g.random.IntN(11))) // loads of vectors, wide, splat
			g.place()
			g.op(0xfd, 0x1d, 0) // take its first number
			g.setLong()
		case 3:
			g.op(0xfd, 0x5c+byte(g.random.IntN(2))) // with zeros
			g.place()
			g.op(0xfd, 0x1d, 0)
			g.setLong()
		}
	case 7, 8:
		g.address()
		g.word()
		g.op([]byte{0x36, 0x3a, 0x3b}[g.random.IntN(3)])
		g.place()
	case 9:
		g.address()
		g.long()
		g.op([]byte{0x37, 0x3c, 0x3d, 0x3e}[g.random.IntN(4)])
		g.place()
	case 10:
		g.address()
		g.long()
		g.op(0xfd, 0x12) // splat
		g.op(0xfd, 11)
		g.place()
	case 11:
		g.constant(int32(g.random.IntN(3)))
		g.op(0x40, 0) // grow
		g.setWord()
	case 12: // fill and copy
		g.address()
		g.address()
		g.constant(int32(g.random.IntN(200)))
		if g.one(2) {
			g.op(0xfc, 11, 0)
		} else {
			g.op(0xfc, 10, 0, 0)
		}
	case 13:
		g.word()
		g.op(0x10, 0) // the host
		g.setWord()
	case 14:
		g.word()
		g.word()
		g.op([]byte{0x6a, 0x6b, 0x6c, 0x71, 0x73, 0x74, 0x76}[g.random.IntN(7)])
		g.setWord()
	case 15:
		g.word()
		g.op(0x04, 0x40)
		g.block()
		if g.one(2) {
			g.op(0x05)
			g.block()
		}
		g.op(0x0b)
	case 17: // atomic accesses, which must be aligned too
		g.address()
		if !g.one(6) {
			g.op(0x41, 0x78, 0x71) // and -8
		}
		which := g.random.IntN(7)
		size := []byte{2, 3, 0, 1, 0, 1, 2}[which]
		long := which == 1 || which > 3
		value := func() {
			if long {
				g.long()
			} else {
				g.word()
			}
		}
		first := []byte{0x10, 0x17, 0x1e, 0x25, 0x2c, 0x33, 0x3a, 0x41, 0x48}[g.random.IntN(9)] // load, store, …, cmpxchg
		if first != 0x10 {
			value()
		}
		if first == 0x48 {
			value()
		}
		g.op(0xfe, first+byte(which))
		g.aligned(size)
		switch {
		case first == 0x17:
		case long:
			g.setLong()
		default:
			g.setWord()
		}
	case 18:
		g.address()
		g.word()
		g.op(0xfe, 0) // notify
		g.aligned(2)
		g.setWord()
		g.op(0xfe, 3, 0) // fence
	case 16: // at most as often as the count allows
		g.op(0x03, 0x40)
		g.block()
		g.op(0x20, count)
		g.constant(1)
		g.op(0x6b, 0x22, count)
		g.constant(0)
		g.op(0x4a, 0x0d, 0, 0x0b)
	}
}

func (g *generator) block() {
	if g.depth++; g.depth < 4 {
		for range g.random.IntN(6) {
			g.statement()
		}
	}
	g.depth--
}

// module returns the module. Its function "run" leaves its locals in globals.
func (g *generator) module() []byte {
	for range 4 + g.random.IntN(12) {
		g.statement()
		for i := range words + longs { // so that they can be seen when the rest traps
			g.op(0x20, byte(i), 0x24, byte(i))
		}
	}
	g.op(0x0b)
	body := append([]byte{3, words, 0x7f, longs, 0x7e, 1, 0x7f}, g.code...)
	m := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, content []byte) {
		m = append(m, id)
		m = binary.AppendUvarint(m, uint64(len(content)))
		m = append(m, content...)
	}
	section(1, []byte{2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 0, 0}) // types
	section(2, append([]byte{1}, "\x03env\x02id\x00\x00"...))
	section(3, []byte{1, 1})
	section(5, []byte{1, 1, 1, 4}) // memory
	globals := []byte{words + longs}
	for i := range words + longs {
		if i < words {
			globals = append(globals, 0x7f, 1, 0x41, 0, 0x0b)
		} else {
			globals = append(globals, 0x7e, 1, 0x42, 0, 0x0b)
		}
	}
	section(6, globals)
	exports := []byte{2 + words + longs}
	exports = append(exports, "\x03run\x00\x01\x06memory\x02\x00"...)
	for i := range words + longs {
		exports = append(exports, 2, 'g', '0'+byte(i), 3, byte(i))
	}
	section(7, exports)
	code := binary.AppendUvarint([]byte{1}, uint64(len(body)))
	section(10, append(code, body...))
	return m
}

// outcome is all that can be seen of a run.
func (i *instances) outcome(t *testing.T, module []byte) (text string, memory []byte) {
	t.Helper()
	compiled := i.compile(t, module)
	defer compiled.Close(i.ctx)
	m, release := i.instance(t, compiled)
	defer release()
	_, err := m.ExportedFunction("run").Call(i.ctx)
	text = fmt.Sprint(err)
	for n := range words + longs {
		text += fmt.Sprintf(" %#x", m.ExportedGlobal(fmt.Sprintf("g%d", n)).Get())
	}
	memory, _ = m.Memory().Read(0, m.Memory().Size())
	return text, bytes.Clone(memory)
}

// compareKinds runs a module as both kinds of code.
func compareKinds(t *testing.T, plain, guarded *instances, seed uint64) (trapped bool) {
	t.Helper()
	g := &generator{random: rand.New(rand.NewPCG(seed, 1))}
	// Seven loops, and words and longs that differ.
	for i := range words {
		g.constant(int32(g.random.Uint32()) >> g.random.IntN(32))
		g.op(0x21, byte(i))
	}
	for i := range longs {
		g.constant(int32(g.random.Uint32()))
		g.op(0xac, 0x21, words+byte(i))
	}
	g.constant(7)
	g.op(0x21, count)
	module := g.module()
	want, wantMemory := plain.outcome(t, module)
	have, haveMemory := guarded.outcome(t, module)
	if want != have || !bytes.Equal(wantMemory, haveMemory) {
		t.Fatalf("seed %d: guarded %s, compared %s, equal memories %v\n%x", seed, have, want, bytes.Equal(wantMemory, haveMemory), module)
	}
	return want[0] != '<' // <nil>
}

func signExtended(_ context.Context, _ api.Module, x uint32) uint64 { return uint64(int64(int32(x))) }

// Both kinds of code do the same: results, memory, error and trace.
func TestGuardedCodeDoesWhatComparedCodeDoes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("first seed %d", seed)
	plain, guarded := newInstances(t, false, signExtended), newInstances(t, true, signExtended)
	n, trapped := rounds(1500), 0
	for i := range uint64(n) {
		if compareKinds(t, plain, guarded, seed+i) {
			trapped++
		}
	}
	t.Logf("%d modules, %d of them trapped", n, trapped)
	if trapped < n/10 || trapped > n*9/10 {
		t.Errorf("%d of %d modules trapped: the generator is one-sided", trapped, n)
	}
}

func FuzzGuardedCode(f *testing.F) {
	plain, guarded := newInstances(f, false, signExtended), newInstances(f, true, signExtended)
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { compareKinds(t, plain, guarded, seed) })
}
