package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tetratelabs/wazero"
)

// memoryPages limits the engine's memory during a build: 256 MiB.
const memoryPages = 4096

// engineConfig returns the configuration of the engine: compiled, with the compiled code
// cached in the directory, or interpreted without one. Compiling takes longer than a build;
// reading compiled code takes almost no time. A directory that cannot be used is ignored,
// because it changes only the time.
//
// Cached code is executed unchecked, so the directory must belong to this user alone. The
// compiler checks a checksum when it reads, and files are replaced as a whole.
func engineConfig(dir string) (wazero.RuntimeConfig, wazero.CompilationCache) {
	if dir != "" && ensurePrivateDir(dir) == nil {
		if cache, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			return wazero.NewRuntimeConfig().WithCompilationCache(cache).WithMemoryLimitPages(memoryPages), cache
		}
	}
	return wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(memoryPages), nil
}

// ensurePrivateDir creates a directory, or checks that no other user can write to it.
func ensurePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s can be written to by other users: change its owner or its mode", dir)
	}
	return nil
}

// EngineCache returns the user's cache directory for the compiled JavaScript engine, empty when
// the user has none: then builds take longer.
func EngineCache() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "runner", "engine")
}
