package wasm

import "errors"

// feature is a part of WebAssembly that modules cannot use here.
type feature struct{ name, remedy string }

var (
	exceptions        = feature{"exception handling", "build it without WebAssembly exceptions (-fno-exceptions, panic=abort)"}
	tailCalls         = feature{"tail calls", "build it with -mno-tail-call"}
	garbageCollection = feature{"garbage-collected types", "build it for linear memory (WebAssembly 2.0)"}
	typedReferences   = feature{"typed function references", "build it for WebAssembly 2.0"}
	threads           = feature{"threads and atomics", "build it without threads (-mno-atomics)"}
	relaxedVectors    = feature{"relaxed SIMD", "build it with -mno-relaxed-simd"}
	wideArithmetic    = feature{"wide arithmetic", "build it with -mno-wide-arithmetic"}
	multiMemory       = feature{"several memories", "build it with one memory"}
)

func refusal(f feature) error {
	return errors.New("uses " + f.name + ", which cannot be run: " + f.remedy)
}

// featureOf is the feature that an instruction outside Core 2.0 belongs to.
func featureOf(op byte) (feature, bool) {
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return exceptions, true
	case 0x12, 0x13:
		return tailCalls, true
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return typedReferences, true
	case 0xd3, 0xfb:
		return garbageCollection, true
	case 0xfe:
		return threads, true
	}
	return feature{}, false
}

// uses are instructions with effects outside of memory and globals.
type uses uint16

const (
	usesTableSet uses = 1 << iota
	usesTableGrow
	usesTableFill
	usesTableCopy
	usesTableInit
	usesElemDrop
	usesMemoryInit
	usesDataDrop
)

var usesText = [...]struct {
	use  uses
	text string
}{
	{usesTableSet, "table.set"},
	{usesTableGrow, "table.grow"},
	{usesTableFill, "table.fill"},
	{usesTableCopy, "table.copy"},
	{usesTableInit, "table.init"},
	{usesElemDrop, "elem.drop"},
	{usesMemoryInit, "memory.init"},
	{usesDataDrop, "data.drop"},
}
