package compile

import (
	"os"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/unix"
)

// wazero keeps two parts of a compiled module in memory for as long as it is loaded: all of
// its native code, of which a handler runs a small part, and the bytes of the functions that
// were compiled. It has no way to release them, so releaseMemory uses its private fields;
// TestALoadedModuleTakesLittleMemory fails if they change.

// minFileCode is the smallest native code that is moved to a file, in bytes.
const minFileCode = 1 << 20

// releaseMemory releases memory of a module that was just compiled. Large native code is moved
// to a file in dir that has no name any more. The kernel reads the pages that run, and may
// drop them when memory is scarce. Without a dir, or if the file cannot be made or mapped, the
// code stays in memory. Other goroutines may run the code meanwhile.
func releaseMemory(compiled wazero.CompiledModule, dir string) {
	c := reflect.ValueOf(compiled).Elem()
	module, engine := field(c, "module").Elem(), field(c, "compiledEngine").Elem().Elem()
	functions := module.FieldByName("CodeSection")
	for i := range functions.Len() {
		functions.Index(i).FieldByName("Body").SetZero()
	}
	mu := field(engine, "mux").Addr().Interface().(*sync.RWMutex)
	mu.RLock()
	entry := field(engine, "compiledModules").MapIndex(module.FieldByName("ID"))
	mu.RUnlock()
	code := field(field(field(entry.Elem(), "compiledModule").Elem(), "executables").Elem(), "executable").Bytes()
	if dir != "" && len(code) >= minFileCode {
		_ = moveToFile(code, dir) // after an error it is where it was
	}
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
	length := uintptr(len(code))
	mapped, err := unix.MmapPtr(int(f.Fd()), 0, nil, length, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return err // such as a file system whose files must not run
	}
	_, err = unix.MremapPtr(mapped, length, unsafe.Pointer(&code[0]), length, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
	if err != nil {
		panic("BUG: move native code to a file: " + err.Error()) // it may be unmapped
	}
	return nil
}
