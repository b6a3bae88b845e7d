package build

import (
	"fmt"
	"os"
	"syscall"

	"github.com/tetratelabs/wazero"
)

// memoryPages bounds the memory of the engine while a module is built: 256 MiB.
const memoryPages = 4096

// engineConfig says how the engine runs: compiled, with what the compiler makes
// kept in the folder, or interpreted without one. Compiling takes longer than what
// one build does, reading what was compiled takes next to nothing. A folder that
// cannot be used is done without, as it changes nothing but the time.
//
// What lies there is run as it is, so it must be this user's alone. The compiler
// checks what it reads against a sum, and files are replaced whole.
func engineConfig(folder string) (wazero.RuntimeConfig, wazero.CompilationCache) {
	if folder != "" && ownFolder(folder) == nil {
		if cache, err := wazero.NewCompilationCacheWithDir(folder); err == nil {
			return wazero.NewRuntimeConfig().WithCompilationCache(cache).WithMemoryLimitPages(memoryPages), cache
		}
	}
	return wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(memoryPages), nil
}

// ownFolder makes a folder, or checks that nobody else can have put anything into
// it.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not this user's alone", dir)
	}
	return nil
}
