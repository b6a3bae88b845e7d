package sandbox

import (
	"crypto/sha256"
	"errors"
	"math"
	"sync"

	"runner.example/internal/symbols"
	"runner.example/runtime/compile"
)

// symbolBytes limits the total size of the files and tables that are kept. The last ones that were read
// are kept even if they are larger.
const symbolBytes = 64 << 20

// symbolTables keeps the functions and lines of modules whose handlers failed recently. Reading them
// takes up to a second, and a handler may fail in each request. They depend on debug files, which
// a module does not know: DiscardSymbols says that these may have changed.
type symbolTables struct {
	mu     sync.Mutex
	tables map[[sha256.Size]byte]*symbolTable
}

// symbolTable is what is known of one module.
type symbolTable struct {
	used int64 // the Engine.idleTick of its last use; guarded by symbolTables.mu

	reading sync.Mutex // held while the rest is set
	done    bool
	module  []byte         // its file; nil: it cannot be read
	table   *symbols.Table // nil: there is none
	size    int64

	named struct { // a handler may fail at the same place in each request
		sync.Mutex
		frames map[compile.Instruction][]symbols.Frame // not changed
		bytes  int                                     // of their texts, about
	}
}

// namedBytes limits the frames that are kept of a module.
const namedBytes = 256 << 10

// get returns the symbols of a module. It reads them if they are not kept.
func (t *symbolTables) get(m *Module) *symbolTable {
	read := m.engine.options.ReadModule
	if read == nil {
		return &symbolTable{}
	}
	t.mu.Lock()
	s := t.tables[m.sum]
	if s == nil {
		s = &symbolTable{}
		if t.tables == nil {
			t.tables = map[[sha256.Size]byte]*symbolTable{}
		}
		t.tables[m.sum] = s
	}
	s.used = m.engine.idleTick.Load()
	t.mu.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.done {
		return s
	}
	s.done = true
	module, debug, err := read(m.sum)
	if module != nil {
		module, _, err = link(module)
	}
	if err == nil && module != nil {
		var unusable error
		s.table, unusable = symbols.Read(module, debug)
		s.module, err = module, errors.Join(err, unusable)
	}
	if err != nil {
		m.engine.options.Logger.Warn("symbols not read", "module", m.name, "cause", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.size = int64(len(module) + len(debug))
	if s.table != nil {
		s.size += s.table.Size()
	}
	t.shrink(s)
	return s
}

// shrink discards the least recently used tables until the rest is within symbolBytes. It does not
// discard keep.
func (t *symbolTables) shrink(keep *symbolTable) {
	for {
		total, oldest := int64(0), [sha256.Size]byte{}
		least := int64(math.MaxInt64)
		for sum, s := range t.tables {
			total += s.size
			if s != keep && s.size > 0 && s.used < least {
				least, oldest = s.used, sum
			}
		}
		if total <= symbolBytes || least == math.MaxInt64 {
			return
		}
		delete(t.tables, oldest)
	}
}

// DiscardSymbols discards what the engine has read with Options.ReadModule. It is called when a module may have
// another debug file than before, and may be called at any time.
func (e *Engine) DiscardSymbols() {
	e.symbols.mu.Lock()
	defer e.symbols.mu.Unlock()
	clear(e.symbols.tables)
}

// tidy discards the tables that were last used before a tick.
func (t *symbolTables) tidy(before int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for sum, s := range t.tables {
		if s.used < before {
			delete(t.tables, sum)
		}
	}
}

// framesAt returns the frames of an instruction of a module. They must not be changed.
func (s *symbolTable) framesAt(m *Module, p compile.Instruction) []symbols.Frame {
	s.named.Lock()
	frames, known := s.named.frames[p]
	s.named.Unlock()
	if known {
		return frames
	}
	function, offset := m.program.Imports+p.Function, m.program.CodeStart+p.Offset
	if s.table == nil {
		frames = []symbols.Frame{{Offset: offset}}
	} else {
		frames = s.table.Frames(uint32(function), offset)
	}
	if last := &frames[len(frames)-1]; last.Function == "" {
		last.Function = compile.Quote(m.program.Exported[function], 200)
	}
	size := 0
	for _, f := range frames {
		size += 100 + len(f.Function) + len(f.File)
	}
	s.named.Lock()
	defer s.named.Unlock()
	if s.named.frames == nil || s.named.bytes+size > namedBytes {
		s.named.frames, s.named.bytes = map[compile.Instruction][]symbols.Frame{}, 0
	}
	s.named.frames[p] = frames
	s.named.bytes += size
	return frames
}

// frames names the active calls of a failure. code is the module's code from the innermost
// instruction on, or nil.
func (m *Module) frames(calls []compile.Instruction) (frames []symbols.Frame, code []byte) {
	if len(calls) == 0 {
		return nil, nil
	}
	known := m.engine.symbols.get(m)
	for _, p := range calls {
		if len(frames) >= symbols.MaxFrames {
			break
		}
		frames = append(frames, known.framesAt(m, p)...)
	}
	if at := m.program.CodeStart + calls[0].Offset; at < int64(len(known.module)) {
		code = known.module[at:]
	}
	return frames[:min(len(frames), symbols.MaxFrames)], code
}
