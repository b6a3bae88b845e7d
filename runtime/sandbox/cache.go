package sandbox

import (
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/fault"
)

// cache is the folder of what was made of modules:
//
//	<version>/<key>.program   a rewritten module, as gob
//	<version>/code/           what the compiler made of it
//
// A version is everything but the module that it depends on. What lies there is
// run as it is: it must be this user's alone.
type cache struct {
	dir      string // with the version
	version  string
	compiled wazero.CompilationCache
}

// openCache opens the folder, and empties it of what other versions left.
func openCache(dir string) (*cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of compiled modules: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fault.New(fault.Invalid, "the folder of compiled modules %q is open to others (mode %04o): empty it and set it to 0700", dir, mode)
	}
	c := &cache{version: version()}
	sum := sha256.Sum256([]byte(c.version))
	name := "v" + hex.EncodeToString(sum[:8])
	c.dir = filepath.Join(dir, name)
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of compiled modules: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	for _, old := range entries {
		if old.Name() != name {
			if err := os.RemoveAll(filepath.Join(dir, old.Name())); err != nil {
				return nil, fmt.Errorf("empty the folder of compiled modules: %w", err)
			}
		}
	}
	if c.compiled, err = wazero.NewCompilationCacheWithDir(filepath.Join(c.dir, "code")); err != nil {
		return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	return c, nil
}

// programVersion changes with what rewriting makes of a module.
const programVersion = 2

// version names all that a cached program and its code depend on. The build is
// part of it: between two of them the rewriter may have changed.
func version() string {
	compiler, revision := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				compiler = d.Version + d.Sum
			}
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	build := ""
	if path, err := os.Executable(); err == nil {
		if info, err := os.Stat(path); err == nil {
			build = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
	}
	return fmt.Sprintln(programVersion, compiler, revision, build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// key is that of a module under the options that its program depends on.
func (c *cache) key(binary []byte, memoryBytes int64) string {
	h := sha256.New()
	fmt.Fprintln(h, c.version, memoryBytes, maxStack, maxTable, fuelModule, exportPrefix)
	h.Write(binary)
	return hex.EncodeToString(h.Sum(nil))
}

func (c *cache) path(key string) string { return filepath.Join(c.dir, key+".program") }

// program gives what keep kept, nil when that is not there or damaged.
func (c *cache) program(binary []byte, memoryBytes int64) *program {
	f, err := os.Open(c.path(c.key(binary, memoryBytes)))
	if err != nil {
		return nil
	}
	defer f.Close()
	p := new(program)
	if gob.NewDecoder(f).Decode(p) != nil {
		return nil
	}
	return p
}

// keep writes a program for the next start. A file that cannot be written costs
// that start some time and nothing else.
func (c *cache) keep(binary []byte, memoryBytes int64, p *program) {
	path := c.path(c.key(binary, memoryBytes))
	f, err := os.CreateTemp(c.dir, "new-")
	if err != nil {
		return
	}
	err = gob.NewEncoder(f).Encode(p)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(f.Name())
	}
}
