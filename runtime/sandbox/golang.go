package sandbox

import (
	"slices"
	"sync"

	"runner.example/hostabi"
	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
)

// goTables are the tables of Go's runtime in the memory of a module, once it has failed.
type goTables struct {
	once   sync.Once
	tables *symbols.Go // nil: it has none
}

// goGlobals are the types of the globals of a module from Go: SP, CTXT, g, RET0 to RET3, PAUSE.
var goGlobals = []wasm.ValueType{wasm.I32, wasm.I64, wasm.I64, wasm.I64, wasm.I64, wasm.I64, wasm.I64, wasm.I32}

// The indexes of the globals that are read.
const (
	goStackPointer = 0
	goGoroutine    = 2
)

// isGo reports whether a module has the globals of one from Go.
func isGo(m *wasm.Module, mutable []wasm.ExportedGlobal) bool {
	return m.Functions() > 0 && slices.EqualFunc(mutable, goGlobals, func(g wasm.ExportedGlobal, t wasm.ValueType) bool { return g.Type == t })
}

// goTables finds the tables of the module that the sandbox is of; nil: there are none.
func (s *sandbox) goTables() *symbols.Go {
	m := s.module
	if !m.program.Go {
		return nil
	}
	m.golang.once.Do(func() {
		size := s.memory.size
		if m.image != nil {
			size = m.image.size
		}
		m.golang.tables = symbols.FindGo(s.memory.region[:size], m.program.Imports, m.program.Functions)
	})
	return m.golang.tables
}

// goCalls are the active calls of a module from Go: only the innermost one may be on the native stack.
func (s *sandbox) goCalls(f *failure) {
	tables := s.goTables()
	if tables == nil {
		return
	}
	if f.crash != nil { // the runtime has listed them
		tables.Relative(f.crash.Frames)
		return
	}
	if len(f.places) == 0 { // it has returned, or the places are not known
		return
	}
	f.goCalls = tables.Stack(s.memory.region[:s.memory.size], symbols.GoStop{
		SP: uint32(s.globals[goStackPointer].Get()), G: s.globals[goGoroutine].Get(),
		Function: s.module.program.Imports + f.places[0].Function, Block: int(s.block),
	})
}

// goFrames are the frames of the calls. Only the innermost one has its place in places.
func (m *Module) goFrames(f *failure) []symbols.Frame {
	if f.goCalls[0].Function == m.program.Imports+f.places[0].Function {
		frames := f.goCalls[0].Frames
		for i := range frames {
			frames[i].Offset = m.program.CodeStart + f.places[0].Offset
		}
	}
	return symbols.GoFrames(f.goCalls, m.engine.symbols.of(m).module)
}

// crashed adds to what the host tells of a failure what the guest wrote about it.
func crashed(told *hostabi.Failure, crash *hostabi.Failure, limit bool) {
	if told.Message = crash.Message; !limit {
		told.Kind = crash.Kind
	}
	if len(crash.Frames) > 0 {
		told.Frames = crash.Frames
	}
}
