package compile

import (
	"os"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/system/memory"
	"runner.example/internal/wasm"
)

// wazero keeps parts of a compiled module in memory for as long as it is loaded: all of its
// native code, of which a handler runs a small part, the bytes of the functions that were
// compiled, and the offsets of their instructions, 16 bytes for each. It has no way to release
// them, so this file uses its private fields; TestALoadedModuleTakesLittleMemory fails if they
// change.

// minFileCode is the smallest native code that is moved to a file, in bytes.
const minFileCode = 1 << 20

// nativeModule has the private parts of a module that was just compiled.
type nativeModule struct {
	module    reflect.Value // *wasm.Module
	sourceMap reflect.Value
	code      []byte
	functions []int // where the code of each function begins
}

func nativeOf(compiled wazero.CompiledModule) (n nativeModule) {
	c := reflect.ValueOf(compiled).Elem()
	n.module = field(c, "module").Elem()
	engine := field(c, "compiledEngine").Elem().Elem()
	mu := field(engine, "mux").Addr().Interface().(*sync.RWMutex)
	mu.RLock()
	entry := field(engine, "compiledModules").MapIndex(n.module.FieldByName("ID"))
	mu.RUnlock()
	native := field(entry.Elem(), "compiledModule").Elem()
	n.sourceMap = field(native, "sourceMap")
	n.code = field(field(native, "executables").Elem(), "executable").Bytes()
	n.functions = field(native, "functionOffsets").Interface().([]int)
	return n
}

// releaseMemory releases memory of the module. Large native code is moved to a file in dir that
// has no name any more. The kernel reads the pages that run, and may drop them when memory is
// scarce. Without a dir, or if the file cannot be made or mapped, the code stays in memory.
// Other goroutines may run the code meanwhile.
func (n nativeModule) releaseMemory(dir string) {
	functions := n.module.FieldByName("CodeSection")
	for i := range functions.Len() {
		functions.Index(i).FieldByName("Body").SetZero()
	}
	if memory.CanMoveCode && dir != "" && len(n.code) >= minFileCode {
		_ = moveToFile(n.code, dir) // after an error it is where it was
	}
}

// takeOffsets makes a table of the offsets of instructions that wazero keeps, and releases them.
// nil: wazero has none.
func (n nativeModule) takeOffsets(offsets *wasm.Offsets) (t offsetTable) {
	native := field(n.sourceMap, "executableOffsets").Interface().([]uintptr)
	compiled := field(n.sourceMap, "wasmBinaryOffsets").Interface().([]uint64)
	if len(native) > 0 && len(native) == len(compiled) && len(n.code) > 0 {
		t = newOffsetTable(n.functions, uintptr(unsafe.Pointer(&n.code[0])), native, compiled, offsets)
	}
	n.sourceMap.SetZero()
	n.module.FieldByName("DWARFLines").SetZero()
	n.module.FieldByName("CustomSections").SetZero()
	return t
}

// field returns a field of an addressable struct, also if it is private.
func field(of reflect.Value, name string) reflect.Value {
	f := of.FieldByName(name)
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
}

// moveToFile replaces the memory of code, which begins at a page, by an equal file.
func moveToFile(code []byte, dir string) error {
	f, err := os.CreateTemp(dir, "new-") // openCache removes it if this process is killed now
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err := f.Write(code); err != nil {
		return err
	}
	return memory.MoveCode(code, f)
}
