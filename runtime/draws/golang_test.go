package draws

import (
	"slices"
	"testing"
)

// A function of Go that goes on after its stack has grown is called by the runtime's loop, without its callers.
func TestDrawsOfGoAreFoundWithoutTheirCallers(t *testing.T) {
	loop := []string{"wasm_pc_f_loop", "_rt0_wasm_wasip1", "_rt0_wasm_wasip1_lib"}
	for name, row := range map[string]struct{ frames, want []string }{
		"a number":                      {[]string{"runtime.rand", "math/rand.(*runtimeSource).Int63", "math/rand.Int"}, []string{"a function", "math/rand.Int"}},
		"a package of the library":      {[]string{"runtime.rand", "hash/maphash.MakeSeed", "unique.init"}, nil},
		"the seed of a map":             {[]string{"runtime.rand", "internal/runtime/maps.NewMap"}, nil},
		"the initialization of itself":  {[]string{"runtime.rand", "math/rand.Int", "math/rand.init", "runtime.doInit1"}, nil},
		"a function within its callers": {[]string{"runtime.rand", "math/rand.Int", "main.draw"}, []string{"main.draw", "math/rand.Int"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drawOfGo(Number, slices.Concat(row.frames, loop)).Chain; !slices.Equal(got, row.want) {
				t.Errorf("the chain is %v, want %v", got, row.want)
			}
		})
	}
}
