package toolchain

import (
	"fmt"
	"os"
	"path/filepath"

	"runner.example/internal/system/disk"
)

// privateCache returns the absolute path of CacheDir, empty if it cannot be used. It holds programs
// and code that is executed unchecked, so it must belong to this user alone.
func (o *Options) privateCache() string {
	if o.CacheDir == "" {
		return ""
	}
	dir, err := filepath.Abs(o.CacheDir)
	if err != nil || ensurePrivateDir(dir) != nil {
		return ""
	}
	return dir
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
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if err := disk.CheckOwner(dir); err != nil {
		return err
	}
	if err := disk.CheckPrivate(dir); err != nil {
		return fmt.Errorf("%s %w", dir, err)
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
