package opcode

// Feature is a part of WebAssembly that modules cannot use here.
type Feature struct{ Name, Remedy string }

// The features that modules are known to use.
var (
	Exceptions = Feature{
		"exception handling", "build it without WebAssembly exceptions (-fno-exceptions, -sSUPPORT_LONGJMP=0, panic=abort)",
	}
	GarbageCollection = Feature{"garbage-collected types", "build it for linear memory (WebAssembly 2.0)"}
	TypedReferences   = Feature{"typed function references", "build it for WebAssembly 2.0"}
	StackSwitching    = Feature{"stack switching", "build it without continuations"}
	SharedAll         = Feature{"shared-everything threads", "build it without threads"}
	RelaxedVectors    = Feature{"relaxed SIMD", "build it with -mno-relaxed-simd"}
	HalfFloats        = Feature{"half-precision floats", "build it with -mno-fp16"}
	WideArithmetic    = Feature{"wide arithmetic", "build it with -mno-wide-arithmetic"}
	Strings           = Feature{"references to strings (stringref)", "build it for WebAssembly 2.0 and linear memory"}
	MultiMemory       = Feature{"several memories", "build it with one memory (-mno-multimemory)"}
)

// FeatureOf is the feature that an instruction belongs to that modules cannot use.
func FeatureOf(op byte) (Feature, bool) {
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return Exceptions, true
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return TypedReferences, true
	case 0xd3, 0xfb:
		return GarbageCollection, true
	case 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6:
		return StackSwitching, true
	}
	return Feature{}, false
}
