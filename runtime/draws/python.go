package draws

import (
	"bytes"
	"slices"
	"strings"

	"runner.example/hostabi"
)

// CPython draws the seed of its hashes when it starts, unless this variable sets it. Published builds have no names
// of functions, so the draw is identified by its size: it is the first one of so many bytes.
const (
	pythonSeed      = "PYTHONHASHSEED"
	pythonSeedBytes = 24
)

// drawsPythonSeed reports whether a program is CPython, and draws that seed.
func drawsPythonSeed(module []byte, p *hostabi.Program) bool {
	isSeed := func(variable string) bool { return strings.HasPrefix(variable, pythonSeed+"=") }
	return bytes.Contains(module, []byte(pythonSeed)) && !slices.ContainsFunc(p.Env, isSeed)
}
