package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/fault"
)

// cache is the folder of what was made of modules:
//
//	<version>/code/…       what the compiler made of a rewritten module, where it says
//	<version>/<key>.sums   the SHA-256 of that, as sha256sum -c reads it
//
// A version is everything but the module that it depends on. What lies there is
// run as it is: it must be this user's alone. A list of sums is written last and
// looked at first, so a file that was cut short or has changed is made anew. What
// no list names is removed, as far as its name is one that we give; nothing else
// in the folder is touched.
//
// Processes may share the folder: what one of them removes another makes anew.
type cache struct {
	dir      string // with the version
	version  string
	most     int64 // bytes that are kept
	compiled wazero.CompilationCache
	mu       sync.Mutex // held while a module is made
}

const (
	sumsFile   = ".sums"
	codeFolder = "code"
)

// Names that we, or the compiler for us, give; earlier versions had programs.
var (
	versionName  = regexp.MustCompile(`^v[0-9a-f]{16}$`)
	entryName    = regexp.MustCompile(`^([0-9a-f]{64}\.(program|sums)|new-[0-9]+)$`)
	beingWritten = regexp.MustCompile(`^new-|\.tmp$`)
	codeName     = regexp.MustCompile(`^[0-9a-f]{64}(\.[0-9]+\.tmp)?$`)
)

// openCache opens the folder, and clears it of what is of no use any more and
// of what was not used for the longest, down to most bytes.
func openCache(dir string, most int64) (*cache, error) {
	version := version()
	sum := sha256.Sum256([]byte(version))
	name := "v" + hex.EncodeToString(sum[:8])
	c := &cache{dir: filepath.Join(dir, name), version: version, most: most}
	for _, folder := range []string{dir, c.dir, filepath.Join(c.dir, codeFolder)} {
		if err := ownFolder(folder); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && versionName.MatchString(e.Name()) && e.Name() != name {
			old := cache{dir: filepath.Join(dir, e.Name())}
			old.clear(func(string) bool { return true })
			old.removeFolders()
		}
	}
	c.tidy()
	if c.compiled, err = wazero.NewCompilationCacheWithDir(c.codeDir()); err != nil {
		return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	return c, nil
}

// codeDir is the compiler's own folder.
func (c *cache) codeDir() string { return filepath.Join(c.dir, codeFolder) }

// ownFolder makes a folder, or checks that nobody else can have put anything
// into it.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of compiled modules: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case ok && int(owner.Uid) != os.Getuid():
		return fault.New(fault.Invalid, "the folder of compiled modules %q belongs to user %d, and this is user %d: remove it, or run as its owner", dir, owner.Uid, os.Getuid())
	case mode&0o077 != 0:
		return fault.New(fault.Invalid, "the folder of compiled modules %q is open to others (mode %04o): empty it and set it to 0700", dir, mode)
	}
	return nil
}

// programVersion changes with what rewriting makes of a module.
const programVersion = 6

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

// make gives the code of a rewritten module: what is kept, or what compile makes,
// which is kept then. The key is that of the module's bytes.
func (c *cache) make(ctx context.Context, key string, s source,
	compile func(ctx context.Context, s source, kept bool) (wazero.CompiledModule, error)) (wazero.CompiledModule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.find(key)
	if !kept {
		c.tidy() // no code is found that nobody vouches for
	}
	before := c.code()
	compiled, err := compile(ctx, s, kept)
	if errors.Is(err, errUnreadable) { // it was so when its sums were taken
		c.remove(key, c.sums(key))
		before = c.code()
		compiled, err = compile(ctx, s, false)
	}
	if err != nil {
		return nil, err
	}
	added := slices.DeleteFunc(c.code(), func(name string) bool { return slices.Contains(before, name) })
	if len(added) > 0 {
		c.keep(key, added)
	}
	return compiled, nil
}

// find tells whether the code of a key was kept. It is gone, when one of its files
// is not as it was.
func (c *cache) find(key string) bool {
	sums := c.sums(key)
	if len(sums) == 0 {
		return false
	}
	for name, want := range sums {
		b, err := os.ReadFile(filepath.Join(c.dir, name))
		if sum := sha256.Sum256(b); err != nil || hex.EncodeToString(sum[:]) != want {
			c.remove(key, sums)
			return false
		}
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(c.dir, key+sumsFile), now, now) // it was used; else it only goes earlier
	return true
}

// sums reads the list of a key's files, nil when there is none that can be
// believed.
func (c *cache) sums(key string) map[string]string {
	text, err := os.ReadFile(filepath.Join(c.dir, key+sumsFile))
	if err != nil {
		return nil
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || !filepath.IsLocal(name) || !strings.HasPrefix(name, codeFolder+"/") {
			return nil
		}
		sums[name] = sum
	}
	return sums
}

func (c *cache) remove(key string, sums map[string]string) {
	_ = os.Remove(filepath.Join(c.dir, key+sumsFile)) // what cannot be removed is
	for name := range sums {                          // not believed either
		_ = os.Remove(filepath.Join(c.dir, name))
	}
}

// code lists the compiler's files, seen from c.dir, and what else stands in the
// place of one.
func (c *cache) code() (names []string) {
	_ = filepath.WalkDir(filepath.Join(c.dir, codeFolder), func(path string, d fs.DirEntry, err error) error {
		if d == nil || !codeName.MatchString(d.Name()) {
			return nil // a folder that cannot be read holds nothing
		}
		if name, err := filepath.Rel(c.dir, path); err == nil {
			names = append(names, name)
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return names
}

// keep writes the list of what belongs to a key. One that cannot be written costs
// the next start some time and nothing else.
func (c *cache) keep(key string, code []string) {
	var list bytes.Buffer
	for _, name := range code {
		b, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			return
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(b), name)
	}
	if c.write(key+sumsFile, list.Bytes()) == nil {
		c.tidy()
	}
}

// write replaces a file as a whole.
func (c *cache) write(name string, b []byte) error {
	f, err := os.CreateTemp(c.dir, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // unless it is gone
	}
	return err
}

// tidy removes modules that were not used for the longest, down to c.most bytes,
// and what belongs to none.
func (c *cache) tidy() {
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
		if size += e.size; size > c.most {
			continue
		}
		named[e.key+sumsFile] = true
		for name := range e.sums {
			named[name] = true
		}
	}
	c.clear(func(name string) bool { return !named[name] })
}

// clear removes the files of ours that which picks. One that is being written
// may be another process's, and stays for a while.
func (c *cache) clear(which func(name string) bool) {
	names := c.code()
	entries, _ := os.ReadDir(c.dir) // one that cannot be read is not ours
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
			_ = os.RemoveAll(path) // a folder would keep the compiler from its file for ever
		}
	}
}

func (c *cache) removeFolders() {
	folders, _ := filepath.Glob(filepath.Join(c.dir, codeFolder, "*"))
	for _, folder := range append(folders, filepath.Join(c.dir, codeFolder), c.dir) {
		_ = os.Remove(folder) // unless there is something in it
	}
}
