//go:build wasip1 && !go1.27

package codec

import (
	"reflect"
	"runtime/debug"
	"strings"
	"unsafe"
)

// typelinks lists the types of the program that have no name: the pointers to those that
// have one are among them. The runtime keeps the function and its type for the packages
// that link to it.
//
//go:linkname typelinks reflect.typelinks
func typelinks() (sections []unsafe.Pointer, offsets [][]int32)

// PrepareAll makes the plans of the types that the program's own module has, and of those
// without a name. So plans exist before the first request.
func PrepareAll() {
	module := "main"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != "" {
		module = info.Main.Path
	}
	plans.mu.Lock()
	defer plans.mu.Unlock()
	sections, offsets := typelinks()
	for i, section := range sections {
		for _, offset := range offsets[i] {
			t := reflect.TypeOf(0) // for its dynamic type
			(*eface)(unsafe.Pointer(&t)).data = unsafe.Add(section, offset)
			if isOwn(t, module) {
				makePlan(t)
			}
		}
	}
	publish()
}

// isOwn reports whether handlers of the module may read or write values of a type.
func isOwn(t reflect.Type, module string) bool {
	for t.Name() == "" {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
			continue
		case reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "" {
					return true
				}
			}
		}
		return false
	}
	of := t.PkgPath()
	return of == "" || of == "main" || within(of, module) || within(of, sdk)
}

var sdk = strings.TrimSuffix(intoType.PkgPath(), "/internal/codec")

func within(path, module string) bool {
	rest, ok := strings.CutPrefix(path, module)
	return ok && (rest == "" || rest[0] == '/')
}
