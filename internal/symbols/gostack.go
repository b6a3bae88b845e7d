package symbols

import (
	"path"
	"strings"
)

// Go's code keeps its stack in linear memory, so that goroutines can be suspended. Only the innermost
// function of a resumed goroutine is certain to be on the native stack. The stack pointer is
// global 0 of the module, and g, the goroutine, is global 2. A call pushes the program counter at
// which its caller continues:
//
//	sp ──► frame of the function (its size is in a table, by block)
//	       u64 program counter in its caller
//	       frame of the caller …
//
// The runtime's own work is done on the stack of g0. The goroutine that it works for is saved in its
// g:
//
//	g      u64 low end of the stack · u64 high end · … at 48: u64 m · at 56: sched
//	sched  u64 sp · u64 program counter · u64 g
//	m      u64 g0 · …
const (
	gM       = 48
	gSP      = 56
	gCounter = 64
	gSelf    = 72
	maxCalls = 256  // walked
	mSearch  = 1024 // bytes of an m
	maxTried = 4096 // slices that may be the list of all goroutines
)

// GoStop is where the code of a Go module stopped.
type GoStop struct {
	SP uint32 // global 0
	G  uint64 // global 2
	// Function is the index of the innermost function that runs, in the module as it was uploaded;
	// -1: it is not known.
	Function int
	// Block is the number of the block of code with which the function continues; -1: it is not known.
	Block int
}

// GoCall is an active call in a Go module: the function and what is inlined there.
type GoCall struct {
	Function int     // index in the module
	Frames   []Frame // innermost first; offsets are unknown
	defined  int     // its number among the functions that the module defines
	counter  uint64  // at which it continues; 0: unknown
}

// Stack returns the active calls of the goroutine that was running, innermost first, with at most 32
// frames. If all goroutines are waiting, they are those of the first one. The runtime's own functions are
// left out, unless there are no others. The bytes of memory are not kept.
func (g *GoTables) Stack(memory []byte, at GoStop) []GoCall {
	w := goWalk{g: g, v: viewOf(memory)}
	w.start(at)
	calls := visibleCalls(g, w.calls)
	if len(calls) > 0 {
		return calls
	}
	own := w.calls
	w.calls = nil
	w.resume(w.mainGoroutine()) // the scheduler is running
	if calls = visibleCalls(g, w.calls); len(calls) == 0 {
		calls = own[:min(len(own), MaxFrames)]
	}
	return calls
}

// visibleCalls leaves out the runtime's own functions.
func visibleCalls(g *GoTables, all []GoCall) (calls []GoCall) {
	n := 0
	for _, c := range all {
		if c.Frames = visible(g, c.Frames, n == 0); len(c.Frames) > 0 && n < MaxFrames {
			calls = append(calls, c)
			n += len(c.Frames)
		}
	}
	return calls
}

// goWalk walks a stack.
type goWalk struct {
	g     *GoTables
	v     view
	calls []GoCall
}

// add adds a call that continues at a block. shown is the block of the instruction that is shown.
func (w *goWalk) add(f goFunction, block, shown int) {
	defined := f.index - w.g.imports
	counter := (uint64(defined)+w.g.first)<<16 | uint64(block)
	w.calls = append(w.calls, GoCall{f.index, f.appendFrames(w.v, nil, max(shown, 0)), defined, counter})
}

// start walks from the innermost function.
func (w *goWalk) start(at GoStop) {
	system := at.G != 0 && w.v.u64(w.v.u64(at.G+gM)) == at.G // it is g0
	f, known := w.g.function(w.v, at.Function)
	sp := uint64(at.SP)
	if !known { // as if it had called the host without a frame
		w.walk(sp, system, at.G)
		return
	}
	block := at.Block
	if block < 0 {
		block = w.guess(f, sp)
	}
	w.add(f, block, block)
	inner := &w.calls[0]
	if inner.counter = 0; at.Block < 0 { // it is somewhere in the function
		inner.Frames = inner.Frames[len(inner.Frames)-1:]
		inner.Frames[0].Line = 0
	}
	if w.leave(f, system, at.G) {
		return
	}
	if size, ok := f.stackBytes(w.v, block); ok && !f.isOutermost(w.v) {
		w.walk(sp+size, system, at.G)
	}
}

// guess returns a block that the function may be in: the first one, before it has a frame, or the one
// after it.
func (w *goWalk) guess(f goFunction, sp uint64) int {
	const entry, body = 0, 1
	if size, ok := f.stackBytes(w.v, body); ok {
		if _, _, ok := w.g.byCounter(w.v, w.v.u64(sp+size)); ok {
			return body
		}
	}
	return entry
}

// walk walks the callers, from the place of a program counter.
func (w *goWalk) walk(sp uint64, system bool, g uint64) {
	for len(w.calls) < maxCalls {
		f, block, ok := w.g.byCounter(w.v, w.v.u64(sp))
		if !ok {
			return
		}
		w.add(f, block, block-1)
		size, ok := f.stackBytes(w.v, block)
		if !ok || f.isOutermost(w.v) || w.leave(f, system, g) {
			return
		}
		sp += 8 + size
	}
}

// leave continues on the stack of the goroutine that g0 works for, if the function is where g0's stack
// was entered.
func (w *goWalk) leave(f goFunction, system bool, g uint64) bool {
	if !system {
		return false
	}
	switch f.name {
	case "runtime.systemstack", "runtime.mcall", "runtime.morestack":
		w.resume(w.current(w.v.u64(g + gM)))
		return true
	}
	return false
}

// current returns the goroutine that an m runs: one that names it, with a saved stack. 0: none.
func (w *goWalk) current(m uint64) uint64 {
	g0 := w.v.u64(m)
	for at := m + 8; at < m+mSearch; at += 8 {
		if g := w.v.u64(at); g != 0 && g != g0 && w.v.u64(g+gM) == m && w.isSaved(g) {
			return g
		}
	}
	return 0
}

// isSaved reports whether there is a goroutine with a saved stack.
func (w *goWalk) isSaved(g uint64) bool {
	low, high, sp := w.v.u64(g), w.v.u64(g+8), w.v.u64(g+gSP)
	return low < sp && sp <= high && high <= w.v.size()
}

// resume walks the saved stack of a goroutine, if it has one.
func (w *goWalk) resume(g uint64) {
	if g == 0 || !w.isSaved(g) {
		return
	}
	sp := w.v.u64(g + gSP)
	f, block, ok := w.g.byCounter(w.v, w.v.u64(g+gCounter))
	if !ok {
		return
	}
	if f.name == "runtime.systemstack_switch" { // the saved stack is that of systemstack, which has no frame
		w.walk(sp, false, g)
		return
	}
	w.add(f, block, block-1)
	if size, ok := f.stackBytes(w.v, block); ok {
		w.walk(sp+size, false, g)
	}
}

// mainGoroutine returns the first goroutine in the runtime's list of all goroutines; 0: it was not found. It
// searches the variables for that list: a slice of pointers to goroutines. Each goroutine points to itself.
func (w *goWalk) mainGoroutine() uint64 {
	tried := 0
	for at := w.g.begin &^ 7; at+24 <= w.g.end && tried < maxTried && w.v.spend(); at += 8 {
		list, n, capacity := w.v.u64(at), w.v.u64(at+8), w.v.u64(at+16)
		if n == 0 || n > capacity || capacity > 1<<24 || list&7 != 0 || list == 0 || list >= w.v.size() {
			continue
		}
		tried++
		if g := w.v.u64(list); g != 0 && g&7 == 0 && w.v.u64(g+gSelf) == g && w.isSaved(g) {
			return g
		}
	}
	return 0
}

// visible returns the frames without those of Go's runtime, with shortened paths. g may be nil. first: they
// are the innermost ones.
func visible(g *GoTables, all []Frame, first bool) []Frame {
	var frames []Frame
	for _, f := range all {
		if f.Function == "runtime.gopanic" {
			f.Function = "panic"
		}
		if isGoRuntime(f.Function) || f.File == "<autogenerated>" || f.Function == "panic" && first && len(frames) == 0 {
			continue
		}
		if f.File = g.path(f); len(frames) < MaxFrames {
			frames = append(frames, f)
		}
	}
	return frames
}

// isGoRuntime reports whether a function is one of the runtime's own, which Go's traces leave out too.
func isGoRuntime(name string) bool {
	for _, prefix := range []string{"runtime.", "internal/runtime/"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return prefix != "runtime." || rest == "" || rest[0] < 'A' || rest[0] > 'Z'
		}
	}
	return strings.HasPrefix(name, "wasm_") || strings.HasPrefix(name, "_rt0_")
}

// path returns the path of a frame's file as it is shown: from the directory of the main module, or
// with the path of another package: net/http/server.go, example.com/text@v1.2.3/text.go. g may be nil.
func (g *GoTables) path(f Frame) string {
	pkg := goPackage(f.Function)
	main, module := "", ""
	if g != nil {
		main, module = g.main, g.module
	}
	if pkg == "main" {
		pkg = main
	}
	dir, base := path.Split(strings.ReplaceAll(f.File, `\`, "/"))
	if rest, ok := strings.CutPrefix(pkg, module); ok && module != "" && (rest == "" || rest[0] == '/') {
		rest = strings.TrimPrefix(rest, "/")
		if rest == "" || strings.HasSuffix("/"+dir, "/"+rest+"/") {
			return path.Join(rest, base)
		}
	}
	for _, cache := range []string{"/pkg/mod/", "/src/"} { // of a build without -trimpath
		if i := strings.LastIndex(dir, cache); i >= 0 {
			return dir[i+len(cache):] + base
		}
	}
	return f.File
}

// goPackage is the import path in the name of a function.
func goPackage(name string) string {
	name, _, _ = strings.Cut(name, "[") // arguments of types have paths too
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + pkg
}
