package draws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
)

// goNames returns the names of a Go module's functions by their index. nil: it is not a Go module, or
// the tables of its Go version are not known, or it needs more memory than memoryBytes (0: no limit).
func goNames(m *wasm.Module, memoryBytes int64) map[uint32]string {
	segments, err := m.Data()
	if err != nil || m.Memory() == nil {
		return nil
	}
	size := int64(m.Memory().MinPages) * wasm.PageBytes
	if memoryBytes > 0 && size > memoryBytes {
		return nil
	}
	memory := make([]byte, size)
	for _, s := range segments {
		if uint64(s.Offset)+uint64(len(s.Bytes)) > uint64(len(memory)) {
			return nil
		}
		copy(memory[s.Offset:], s.Bytes)
	}
	tables := symbols.FindGoTables(memory, len(m.Imports()), m.Functions())
	if tables == nil {
		return nil
	}
	return tables.Names(memory)
}

var rulesOfGo = rules{watch: watchGo, arguments: goArguments, draw: drawOfGo}

// goGenerator returns all numbers of Go's own generator.
const goGenerator = "runtime.rand"

// goSeeding are the functions of the standard library that seed a generator, with the bytes of their
// arguments.
var goSeeding = map[string]uint32{
	"math/rand.NewSource": 8, "math/rand.Seed": 8, "math/rand.(*rngSource).Seed": 16, "math/rand.(*Rand).Seed": 16,
	"math/rand/v2.NewPCG": 16, "math/rand/v2.(*PCG).Seed": 24,
	"math/rand/v2.NewChaCha8": 32, "math/rand/v2.(*ChaCha8).Seed": 40,
}

func watchGo(name string) (Kind, bool) {
	_, seeds := goSeeding[name]
	switch {
	case name == goGenerator:
		return Number, true
	case seeds || isUser(name) && seeding.MatchString(name[strings.LastIndexByte(name, '.'):]):
		return Clock, true
	}
	return 0, false
}

// goArguments reads the arguments of a Go function. They follow the return address on the stack in
// memory, to which the first global points. The parameter says where in the function the call
// continues: 0 is its beginning.
func goArguments(name string, m api.Module, params []uint64) (string, bool) {
	of, ok := m.(experimental.InternalModule)
	if len(params) != 1 || params[0] != 0 || !ok || of.NumGlobal() == 0 {
		return "", false
	}
	const address = 8
	size := goSeeding[name]
	if size == 0 {
		size = 16 // a receiver and a number, or two numbers
	}
	args, ok := m.Memory().Read(uint32(of.Global(0).Get())+address, size)
	return fmt.Sprintf("%x", args), ok
}

// generators are the packages of the standard library whose functions draw for their caller.
// cryptoReader is crypto/rand.Reader.
var generators = []string{"crypto/rand", cryptoReader, "math/rand", "math/rand/v2", "hash/maphash"}

const cryptoReader = "crypto/internal/rand"

// unknownCaller begins a chain whose functions outside of the standard library are not active in
// the interpreter.
const unknownCaller = "a function"

// drawOfGo returns a chain from the outermost function outside of the standard library to the function
// of a generator's package that drew, unless that is inlined.
func drawOfGo(kind Kind, frames []string) Draw {
	inner := slices.IndexFunc(frames, isUser)
	callees := frames[:max(inner, 0)]
	if inner < 0 {
		callees = frames
	}
	drew := -1
	for i, name := range callees {
		if slices.Contains(generators, packageOf(name)) {
			drew = i
		}
	}
	switch {
	case inner >= 0:
	case drew >= 0 && !slices.ContainsFunc(frames[drew+1:], func(name string) bool { return packageOf(name) != "" }):
		// Its stack has grown in it, or it was resumed: then its callers are in memory only.
		return Draw{kind, []string{unknownCaller, frames[drew]}}
	default:
		return Draw{} // the standard library for itself
	}
	switch {
	case drew >= 0:
	case kind == Number:
		return Draw{} // the seed of a map, or the order of its keys
	default:
		drew = inner
	}
	outer := len(frames) - 1
	for !isUser(frames[outer]) {
		outer--
	}
	chain := slices.Clone(frames[drew : outer+1])
	if packageOf(chain[0]) == cryptoReader {
		chain[0] = "crypto/rand.Read"
	}
	slices.Reverse(chain)
	return Draw{kind, chain}
}

// packageOf is the import path in the name of a Go function, empty if it is not one.
func packageOf(name string) string {
	name, _, _ = strings.Cut(name, "[") // arguments of types have paths too
	slash := strings.LastIndexByte(name, '/') + 1
	dot := strings.IndexByte(name[slash:], '.')
	if dot < 0 {
		return ""
	}
	return name[:slash+dot]
}

// isUser reports whether a Go function is not of the standard library.
func isUser(name string) bool {
	path := packageOf(name)
	first, _, _ := strings.Cut(path, "/")
	return path != "" && !slices.Contains(standard, first)
}

// standard are the first elements of the paths of the standard library, and the package that
// generated functions have.
var standard = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed encoding
	errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect
	regexp runtime slices sort strconv strings structs sync syscall testing text time type type: unicode unique unsafe vendor weak`)
