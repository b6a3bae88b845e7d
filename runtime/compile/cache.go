package compile

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/tetratelabs/wazero"

	"runner.example/internal/atomicio"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/system/disk"
	"runner.example/internal/system/memory"
)

// cache is the directory of compiled code:
//
//	<version>/code/…         the code of a rewritten module, where the compiler writes it
//	<version>/<key>.offsets  the offsetTable of that code
//	<version>/<key>.sums     the XXH64 of its files, in the format of xxh64sum -c
//
// A version stands for everything but the module that the code depends on. Code is run
// without further checks, so no other user may write to the directory. A .sums file is
// written last and read first, so a damaged or incomplete file is compiled again. Files
// with names like ours that no .sums file lists are removed; other files are not touched.
//
// Processes may share the directory: if one removes code, another compiles it again.
type cache struct {
	dir      string // with the version
	limit    int64  // in bytes
	from     string // the directory of another cache, with the version; empty: there is none
	compiled wazero.CompilationCache
	mu       sync.Mutex // held while a module is compiled
}

const (
	sumsFile    = ".sums"
	offsetsFile = ".offsets"
	codeDir     = "code"
)

// The names of files that this package or the compiler writes.
var (
	versionName  = regexp.MustCompile(`^v[0-9a-f]{16}$`)
	entryName    = regexp.MustCompile(`^([0-9a-f]{64}\.(sums|offsets)|new-[0-9]+)$`)
	beingWritten = regexp.MustCompile(`^new-|\.tmp$`)
	codeName     = regexp.MustCompile(`^[0-9a-f]{64}(\.[0-9]+\.tmp)?$`)
)

// openCache opens the directory, removes other versions, and evicts the least recently
// used code down to limit bytes. A version that was opened in the last hour stays: another build of this program may
// be compiling into it.
func openCache(dir, from string, limit int64) (*cache, error) {
	sum := sha256.Sum256([]byte(version()))
	name := "v" + hex.EncodeToString(sum[:8])
	c := &cache{dir: filepath.Join(dir, name), limit: limit}
	for _, dir := range []string{dir, c.dir, c.codeDir()} {
		if err := MakePrivate(dir); err != nil {
			return nil, err
		}
	}
	if from != "" && checkPrivate(from) == nil {
		c.from = filepath.Join(from, name)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache of compiled modules: %w", err)
	}
	now := clock.System()
	_ = os.Chtimes(c.dir, now, now) // when it was last opened
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && versionName.MatchString(e.Name()) && e.Name() != name &&
			now.Sub(info.ModTime()) > time.Hour {
			old := cache{dir: filepath.Join(dir, e.Name())}
			old.clear(func(string) bool { return true })
			old.removeDirs()
		}
	}
	c.evict()
	if c.compiled, err = wazero.NewCompilationCacheWithDir(c.codeDir()); err != nil {
		return nil, fmt.Errorf("open the cache of compiled modules: %w", err)
	}
	return c, nil
}

// codeDir is the directory that the compiler writes to.
func (c *cache) codeDir() string { return filepath.Join(c.dir, codeDir) }

// MakePrivate makes a directory, or checks that no other user can have written to it.
func MakePrivate(dir string) error {
	_, err := os.Stat(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the cache of compiled modules: %w", err)
	}
	if missing {
		if err := disk.MakePrivate(dir); err != nil {
			return fmt.Errorf("make the directory of the cache of compiled modules: %w", err)
		}
	}
	return checkPrivate(dir)
}

// checkPrivate checks that no other user can have written to a directory.
func checkPrivate(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("open the cache of compiled modules: %w", err)
	}
	if err := disk.CheckOwner(dir); err != nil {
		return fault.Wrap(err, fault.Invalid, "open the cache of compiled modules %q: %v", dir, err)
	}
	if err := disk.CheckPrivate(dir); err != nil {
		return fault.Wrap(err, fault.Invalid, "the cache of compiled modules %q %v, and remove what is in it: code there is run", dir, err)
	}
	return nil
}

// version is a text with everything that compiled code depends on, but the module. It has
// the build of this program, as another build may rewrite modules in another way.
func version() string {
	compiler, revision, system := "", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				compiler = d.Version + d.Sum
			}
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "GOOS":
				system = s.Value
			}
		}
	}
	build := ""
	if path, err := os.Executable(); err == nil {
		if info, err := os.Stat(path); err == nil {
			build = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
	}
	return fmt.Sprintln(compiler, revision, build, runtime.Version(), system, runtime.GOARCH)
}

// make fills in the code of a rewritten module from the cache, or has it compiled and keeps
// it. The code's key is a hash of the module's bytes.
func (c *cache) make(ctx context.Context, code *Code, s Source,
	compile func(ctx context.Context, s Source, kept bool) (wazero.CompiledModule, error)) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := code.key
	kept := c.find(key) || c.borrow(key) && c.find(key)
	if !kept {
		c.evict() // so that the compiler finds no code without a checksum
	}
	before := c.code()
	code.Compiled, err = compile(ctx, s, kept)
	if errors.Is(err, errUnreadable) { // it was damaged before its checksum was taken
		c.remove(key, c.sums(key))
		before = c.code()
		code.Compiled, err = compile(ctx, s, false)
	}
	if err != nil {
		return err
	}
	code.offsets = nativeOf(code.Compiled).takeOffsets(s.Offsets)
	added := slices.DeleteFunc(c.code(), func(name string) bool { return slices.Contains(before, name) })
	if len(added) > 0 {
		if code.offsets != nil && c.keepOffsets(key, added, code.offsets) == nil {
			added = append(added, key+offsetsFile)
		}
		c.keep(key, added)
	}
	if _, checked := c.sums(key)[key+offsetsFile]; checked {
		if mapped, err := memory.Map(filepath.Join(c.dir, key+offsetsFile)); err == nil {
			code.offsets, code.mapped = mapped, true
		}
	}
	return nil
}

// keepOffsets writes the offsets of a key's code to a file of their own.
func (c *cache) keepOffsets(key string, code []string, offsets offsetTable) error {
	for _, name := range code {
		file, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			return err
		}
		if file, ok := withoutOffsets(file); ok {
			if err := c.write(name, file); err != nil {
				return err
			}
		}
	}
	return c.write(key+offsetsFile, offsets)
}

// find reports whether the code of a key is in the cache. It removes code with a wrong
// checksum.
func (c *cache) find(key string) bool {
	sums := c.sums(key)
	if len(sums) == 0 {
		return false
	}
	for name, want := range sums {
		if sum, err := sumOf(filepath.Join(c.dir, name)); err != nil || sum != want {
			c.remove(key, sums)
			return false
		}
	}
	now := clock.System()
	_ = os.Chtimes(filepath.Join(c.dir, key+sumsFile), now, now) // when it was last used; an error only has it evicted earlier
	return true
}

// borrow copies the code of a key from the other cache, and reports whether that has it. find checks the copy.
func (c *cache) borrow(key string) bool {
	if c.from == "" {
		return false
	}
	sums := (&cache{dir: c.from}).sums(key)
	if len(sums) == 0 {
		return false
	}
	for _, name := range append(slices.Sorted(maps.Keys(sums)), key+sumsFile) { // the list is the last
		file, err := os.ReadFile(filepath.Join(c.from, name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(c.dir, name)), 0o700)
		}
		if err != nil || c.write(name, file) != nil {
			return false
		}
	}
	return true
}

// sumOf returns the XXH64 of a file in hexadecimal. Code has many megabytes, so it is not
// read into memory at once.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := xxhash.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%016x", sum.Sum64()), nil
}

// sums reads the checksums of a key's files; nil: there is no valid list.
func (c *cache) sums(key string) map[string]string {
	text, err := os.ReadFile(filepath.Join(c.dir, key+sumsFile))
	if err != nil {
		return nil
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || !filepath.IsLocal(name) || !strings.HasPrefix(name, codeDir+"/") && name != key+offsetsFile {
			return nil
		}
		sums[name] = sum
	}
	return sums
}

func (c *cache) remove(key string, sums map[string]string) {
	_ = os.Remove(filepath.Join(c.dir, key+sumsFile)) // a file that stays has a wrong checksum
	for name := range sums {
		_ = os.Remove(filepath.Join(c.dir, name))
	}
}

// code lists the compiler's files relative to c.dir, with slashes, and directories with such names.
func (c *cache) code() (names []string) {
	_ = filepath.WalkDir(filepath.Join(c.dir, codeDir), func(path string, d fs.DirEntry, err error) error {
		if d == nil || !codeName.MatchString(d.Name()) {
			return nil // a directory that cannot be read counts as empty
		}
		if name, err := filepath.Rel(c.dir, path); err == nil {
			names = append(names, filepath.ToSlash(name))
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return names
}

// keep writes the checksums of a key's files. If that fails, the next start compiles the
// module again.
func (c *cache) keep(key string, code []string) {
	var list bytes.Buffer
	for _, name := range code {
		sum, err := sumOf(filepath.Join(c.dir, name))
		if err != nil {
			return
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, name)
	}
	if c.write(key+sumsFile, list.Bytes()) == nil {
		c.evict()
	}
}

// write replaces a file atomically.
func (c *cache) write(name string, b []byte) error {
	f, err := atomicio.Create(c.dir, "new-", 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Rename(filepath.Join(c.dir, name))
}

// evict removes the least recently used modules, down to c.limit bytes, and files that
// belong to no module.
func (c *cache) evict() {
	type entry struct {
		key  string
		sums map[string]string
		used time.Time
		size int64
	}
	var all []entry
	lists, _ := filepath.Glob(filepath.Join(c.dir, "*"+sumsFile)) // the pattern is good
	for _, path := range lists {
		e := entry{key: strings.TrimSuffix(filepath.Base(path), sumsFile)}
		if e.sums = c.sums(e.key); e.sums == nil {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			e.used = info.ModTime()
		}
		for name := range e.sums {
			if info, err := os.Stat(filepath.Join(c.dir, name)); err == nil {
				e.size += info.Size()
			}
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.key, b.key)) })
	named, size := map[string]bool{}, int64(0)
	for _, e := range all {
		if size += e.size; size > c.limit {
			continue
		}
		named[e.key+sumsFile] = true
		for name := range e.sums {
			named[name] = true
		}
	}
	c.clear(func(name string) bool { return !named[name] })
}

// clear removes those of our files that which selects. A file that another process may be
// writing stays for an hour.
func (c *cache) clear(which func(name string) bool) {
	names := c.code()
	entries, _ := os.ReadDir(c.dir) // a directory that cannot be read has no file of ours
	for _, e := range entries {
		if e.Type().IsRegular() && entryName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		path := filepath.Join(c.dir, name)
		if beingWritten.MatchString(name) {
			if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < time.Hour {
				continue
			}
		}
		if which(name) {
			_ = os.RemoveAll(path) // the compiler could not replace a directory
		}
	}
}

func (c *cache) removeDirs() {
	dirs, _ := filepath.Glob(filepath.Join(c.codeDir(), "*"))
	for _, dir := range append(dirs, c.codeDir(), c.dir) {
		_ = os.Remove(dir) // if it is empty
	}
}
