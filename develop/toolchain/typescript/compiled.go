package typescript

import "github.com/tetratelabs/wazero"

// memoryPages limits the engine's memory during a build: 256 MiB.
const memoryPages = 4096

// engineConfig returns the configuration of the engine: compiled, with the compiled code
// cached in the directory, or interpreted without one. Compiling takes longer than a build;
// reading compiled code takes almost no time. A directory that cannot be used is ignored,
// because it changes only the time.
//
// The compiler checks a checksum when it reads, and files are replaced as a whole.
func engineConfig(dir string) (wazero.RuntimeConfig, wazero.CompilationCache) {
	if dir != "" {
		if cache, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			return wazero.NewRuntimeConfig().WithCompilationCache(cache).WithMemoryLimitPages(memoryPages), cache
		}
	}
	return wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(memoryPages), nil
}
