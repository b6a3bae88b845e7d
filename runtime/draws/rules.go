package draws

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// rules say what the functions of a language do, by their names.
type rules struct {
	// watch says what a call of a function is: Number, or Clock if it seeds a generator.
	watch func(name string) (Kind, bool)
	// arguments returns the arguments of a function that seeds a generator. false: this is not the
	// beginning of a call.
	arguments func(name string, m api.Module, params []uint64) (string, bool)
	// draw returns the draw to report. Without a chain, the language's runtime drew for itself. frames
	// begin with the innermost function.
	draw func(kind Kind, frames []string) Draw
}

// rulesOfOthers are the rules of C, C++, Rust and AssemblyScript.
var rulesOfOthers = rules{watch: watchOthers, arguments: wasmArguments, draw: drawOfOthers}

// numbers are the functions of the generators that languages have.
var numbers = []string{
	"rand", "random", "drand48", "lrand48", "mrand48", "arc4random", "arc4random_buf", "arc4random_uniform",
	"~lib/math/NativeMath.random", "~lib/math/NativeMathf.random",
}

// seeding matches functions that seed a generator, in any of these languages.
var seeding = regexp.MustCompile(
	`(?i)(^|[^a-z])s(rand(om|48)?)$|(^|[^a-z0-9])(re)?seed([^a-z]|random|$)|from_seed|seed_from|mersenne_twister_engine\(|linear_congruential_engine\(`)

// ownDraws matches what runtimes draw for themselves: the guard of the stack, and the keys of maps.
var ownDraws = regexp.MustCompile(`^__(init_ssp|stack_chk)|hashmap_random_keys|RandomState`)

// generatorCrate matches functions of Rust crates that make a generator of the keys of maps.
var generatorCrate = regexp.MustCompile(`\b(fast|nano|oo|w?y|micro)?rand(om)?(_[a-z0-9]+)?::`)

func watchOthers(name string) (Kind, bool) {
	switch {
	case slices.Contains(numbers, name):
		return Number, true
	case seeding.MatchString(name):
		return Clock, true
	}
	return 0, false
}

func wasmArguments(_ string, _ api.Module, params []uint64) (string, bool) {
	return fmt.Sprint(params), true
}

// wrappers are functions of the toolchain around the first function of the program.
var wrappers = regexp.MustCompile(`^(_initialize|_start|__wasm_call_ctors|runner_(warm|prepare))(\.command_export)?$`)

func drawOfOthers(kind Kind, frames []string) Draw {
	if kind == Random && slices.ContainsFunc(frames, ownDraws.MatchString) &&
		!slices.ContainsFunc(frames, isGeneratorCrate) {
		return Draw{}
	}
	if kind == Random { // from the function of the generator, if it is known
		for i, name := range slices.Backward(frames) {
			if slices.Contains(numbers, name) {
				kind, frames = Number, frames[i:]
				break
			}
		}
	}
	chain := slices.Clone(frames)
	slices.Reverse(chain)
	for len(chain) > 1 && wrappers.MatchString(chain[0]) {
		chain = chain[1:]
	}
	return Draw{kind, chain}
}

func isGeneratorCrate(name string) bool {
	return !strings.HasPrefix(name, "std::") && !strings.HasPrefix(name, "<std::") && generatorCrate.MatchString(name)
}
