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
	tables *symbols.GoTables // nil: it has none
}

// goGlobals are the types of the globals of a module from Go: SP, CTXT, g, RET0 to RET3, PAUSE.
var goGlobals = []wasm.ValueType{wasm.I32, wasm.I64, wasm.I64, wasm.I64, wasm.I64, wasm.I64, wasm.I64, wasm.I32}

// The indexes of the globals that are read.
const (
	goStackPointer = 0
	goGoroutine    = 2
)

// isGo reports whether a module has the globals of one from Go.
func isGo(m *wasm.Module) bool {
	var mutable []wasm.ValueType
	for _, g := range m.Globals() {
		if g.Mutable {
			mutable = append(mutable, g.Type)
		}
	}
	return m.Functions() > 0 && slices.Equal(mutable, goGlobals)
}

// goTables returns the tables of Go's runtime in the sandbox's module; nil: there are none.
func (s *sandbox) goTables() *symbols.GoTables {
	m := s.module
	if !m.program.Go {
		return nil
	}
	m.golang.once.Do(func() {
		size := s.memory.Size()
		if m.image != nil {
			size = m.image.Size()
		}
		m.golang.tables = symbols.FindGoTables(s.memory.Bytes()[:size], m.program.Imports, m.program.Functions)
	})
	return m.golang.tables
}

// goCalls sets the active calls of a module from Go. Only the innermost one may be on the native stack.
func (s *sandbox) goCalls(f *failure) {
	tables := s.goTables()
	if tables == nil {
		return
	}
	if f.crash != nil { // Go's runtime has listed them
		tables.ShortenPaths(f.crash.Frames)
		return
	}
	if len(f.calls) == 0 { // it has returned, or its calls are not known
		return
	}
	f.goCalls = tables.Stack(s.memory.Bytes()[:s.memory.Size()], symbols.GoStop{
		SP: uint32(s.globals[goStackPointer].Get()), G: s.globals[goGoroutine].Get(),
		Function: s.module.program.Imports + f.calls[0].Function, Block: int(s.block),
	})
}

// goFrames returns the frames of f.goCalls. f.calls has the offset of the innermost one only.
func (m *Module) goFrames(f *failure) []symbols.Frame {
	if f.goCalls[0].Function == m.program.Imports+f.calls[0].Function {
		frames := f.goCalls[0].Frames
		for i := range frames {
			frames[i].Offset = m.program.CodeStart + f.calls[0].Offset
		}
	}
	return symbols.GoFrames(f.goCalls, m.engine.symbols.get(m).module)
}

// addCrash adds what Go's runtime wrote to the failure that the host describes. If a limit of the
// host ended the run, the kind stays the host's.
func addCrash(described, crash *hostabi.Failure, limit bool) {
	if described.Message = crash.Message; !limit {
		described.Kind = crash.Kind
	}
	if len(crash.Frames) > 0 {
		described.Frames = crash.Frames
	}
}
