package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"runner.example/internal/fault"
	"runner.example/runtime/capture"
	"runner.example/runtime/sandbox"
)

// start makes an engine with a cache, loads a module and runs it. It returns how long loading
// took.
func start(t *testing.T, options sandbox.Options, wasm []byte) time.Duration {
	t.Helper()
	e, err := sandbox.New(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m := load(t, e, wasm)
	took := time.Since(began)
	for way, want := range map[string]fault.Code{"normal": "", "deep": "", "growSome": "", "trap": fault.HandlerFailed, "outOfBounds": fault.HandlerFailed} {
		if call, err := within(t, plenty, m, way); fault.CodeOf(err) != want || want == "" && string(call.Response.Body) != "initial content" {
			t.Errorf("%s ends with %v and %q", way, err, call.Response.Body)
		}
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return took
}

// kept lists the files in a directory.
func kept(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// selfTests is how many modules the self-test has.
func selfTests() int {
	if capture.Available() {
		return 2
	}
	return 1
}

// When any byte of the cache has changed or a file is cut off, the next start compiles the
// module again, and does not run the damaged code.
func TestADamagedCacheIsNotUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("one thing after the other: nothing for the race detector")
	}
	options := sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), NoBreaker: true}
	wasm := assemble(t, "cases")
	cold := start(t, options, wasm)
	files := kept(t, options.CacheDir)
	if want := 3 * (1 + selfTests()); len(files) != want { // code, offsets and sums
		t.Fatalf("%d files are kept, want %d: %q", len(files), want, files)
	}
	t.Logf("%s without the cache, %s with it", cold, start(t, options, wasm))
	for _, path := range files {
		whole := read(t, path)
		places := 6
		if soak {
			places = 200
		}
		for i := range places + 2 {
			damaged := bytes.Clone(whole)
			switch i {
			case places:
				damaged = damaged[:len(damaged)/2]
			case places + 1:
				damaged = nil
			default:
				damaged[i*(len(damaged)-1)/(places-1)] ^= 1 << (i % 8)
			}
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			start(t, options, wasm)
			if now := kept(t, options.CacheDir); !slices.Equal(now, files) {
				t.Fatalf("with byte %d of %s changed, %q are kept, want %q", i, filepath.Base(path), now, files)
			}
			if !bytes.Equal(read(t, path), whole) {
				t.Errorf("%s was damaged and was not rebuilt", filepath.Base(path))
			}
		}
	}
}

// Code that was cut off before its checksum was taken, as on a full disk, is compiled again.
func TestIncompleteCodeIsCompiledAgain(t *testing.T) {
	options := sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), NoBreaker: true}
	wasm := assemble(t, "cases")
	start(t, options, wasm)
	files := kept(t, options.CacheDir)
	whole := map[string][]byte{}
	for _, path := range files {
		whole[path] = read(t, path)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"cut":          func(b []byte) []byte { return b[:len(b)/2] },
		"cut at once":  func(b []byte) []byte { return b[:3] },
		"empty":        func([]byte) []byte { return nil },
		"another kind": func(b []byte) []byte { return append([]byte("RUNNER"), b[6:]...) },
	} {
		for _, path := range files {
			if !strings.HasSuffix(path, ".sums") {
				continue
			}
			first, _, _ := strings.Cut(string(whole[path]), "\n")
			_, code, _ := strings.Cut(first, "  ")
			damaged := damage(bytes.Clone(whole[filepath.Join(filepath.Dir(path), code)]))
			list := fmt.Appendf(nil, "%016x  %s\n", xxhash.Sum64(damaged), code)
			if err := errors.Join(os.WriteFile(filepath.Join(filepath.Dir(path), code), damaged, 0o600), os.WriteFile(path, list, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		start(t, options, wasm)
		for _, path := range files {
			if !bytes.Equal(read(t, path), whole[path]) {
				t.Errorf("%s: %s was not rebuilt", name, filepath.Base(path))
			}
		}
	}
}

func TestADirectoryInPlaceOfCodeIsACacheMiss(t *testing.T) {
	options := sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), NoBreaker: true}
	wasm := assemble(t, "cases")
	start(t, options, wasm)
	files := kept(t, options.CacheDir)
	replaced := 0
	for _, path := range files {
		if !strings.Contains(path, "/code/") {
			continue
		}
		replaced++
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(path, "with", "something in it"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	start(t, options, wasm)
	if now := kept(t, options.CacheDir); replaced == 0 || !slices.Equal(now, files) {
		t.Errorf("%d files of code were replaced; then %q are kept, want %q", replaced, now, files)
	}
}

func TestCodeWithoutAChecksumIsNotUsed(t *testing.T) {
	options := sandbox.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), NoBreaker: true}
	wasm := assemble(t, "cases")
	start(t, options, wasm)
	files := kept(t, options.CacheDir)
	for _, path := range files {
		if strings.HasSuffix(path, ".sums") {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else {
			b := read(t, path)
			b[len(b)/2] ^= 1
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	start(t, options, wasm)
	if now := kept(t, options.CacheDir); !slices.Equal(now, files) {
		t.Errorf("%q are kept, want %q", now, files)
	}
}

func TestTheCacheDoesNotTouchOtherFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	options := sandbox.Options{CacheDir: dir, NoBreaker: true}
	wasm := assemble(t, "cases")
	start(t, options, wasm)
	files := kept(t, dir)
	version := filepath.Dir(files[slices.IndexFunc(files, func(f string) bool { return strings.HasSuffix(f, ".sums") })])
	code := filepath.Dir(files[slices.IndexFunc(files, func(f string) bool { return strings.Contains(f, "/code/") })])
	const old = "v0123456789abcdef"
	key := strings.Repeat("0a", 32)
	place := func(names ...string) (paths []string) {
		for _, name := range names {
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, name)
		}
		return paths
	}
	foreign := place("letter.txt", "photos/v1/a.jpg", "v0123456789abcdef.bak/x", key+".sums",
		filepath.Join(version, "notes"), filepath.Join(code, "notes"), "v00000000000000ff/diary/"+key+".sums", "v00000000000000ff/x",
		"v00000000000000aa/"+key+".sums") // of a program that has opened it just now
	useless := place(old+"/"+key+".sums", old+"/code/wazero/"+key, old+"/new-17",
		filepath.Join(version, key+".sums"), filepath.Join(version, "new-4"), filepath.Join(code, key), filepath.Join(code, key+".77.tmp"))
	long := time.Now().Add(-2 * time.Hour)
	for _, path := range append([]string{filepath.Join(dir, old), filepath.Join(dir, "v00000000000000ff")}, useless...) {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	foreign = append(foreign, place(filepath.Join(version, "new-5"), filepath.Join(code, key+".78.tmp"))...) // being written now
	start(t, options, wasm)
	for _, path := range slices.Concat(foreign, files) {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
	for _, path := range append(useless, filepath.Join(dir, old)) {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("it is still there: %s (%v)", path, err)
		}
	}
}

func TestAModuleIsLoadedIfTheCacheCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	e := newEngine(t, sandbox.Options{CacheDir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	m := load(t, e, assemble(t, "cases"))
	if _, err := within(t, plenty, m, "normal"); err != nil {
		t.Error(err)
	}
}

// The cache has a limit; the most recently used code stays.
func TestTheCacheEvictsTheLeastRecentlyUsedCode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	modules := make([][]byte, 3)
	for i := range modules {
		modules[i] = assembleText(t, fmt.Sprintf(`(module (memory (export "memory") 1)
			(func (export "h") %s (drop (i32.const %d))))`, strings.Repeat("(drop (i32.const 7))", 1000), i))
	}
	age := time.Now().Add(-time.Hour)
	programs := func(most int64, which ...int) int {
		for _, i := range which {
			e, err := sandbox.New(context.Background(), sandbox.Options{CacheDir: dir, CacheBytes: most})
			if err != nil {
				t.Fatal(err)
			}
			load(t, e, modules[i])
			if err := e.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			age = age.Add(time.Minute) // what was there was used before
			for _, path := range kept(t, dir) {
				if info, err := os.Stat(path); err == nil && info.ModTime().After(age) {
					_ = os.Chtimes(path, age, age)
				}
			}
		}
		list, _ := filepath.Glob(filepath.Join(dir, "*", "*.sums"))
		return len(list) - selfTests()
	}
	if n := programs(0, 0, 1, 2); n != 3 {
		t.Fatalf("%d modules are kept, want 3", n)
	}
	var size int64
	for _, path := range kept(t, dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, ".sums") {
			size += info.Size()
		}
	}
	if n := programs(size, 0); n != 3 { // 0 is the last that was used now, 1 the first
		t.Errorf("%d modules are kept within their size, want 3", n)
	}
	before := kept(t, dir)
	if n := programs(size-1, 2); n != 2 {
		t.Errorf("%d modules are kept within a byte less, want 2", n)
	}
	gone := slices.DeleteFunc(before, func(path string) bool { return slices.Contains(kept(t, dir), path) })
	if len(gone) != 3 {
		t.Errorf("%q are gone, want the three files of one module", gone)
	}
	if n := programs(size, 1); n != 3 { // it is rebuilt
		t.Errorf("%d modules are kept, want 3", n)
	}
}

func TestTheCacheIsPrivateToItsOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	start(t, sandbox.Options{CacheDir: dir, NoBreaker: true}, assemble(t, "cases"))
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory's mode is %v (%v), want 0700", info.Mode(), err)
	}
	for _, file := range kept(t, dir) {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v (%v)", file, info.Mode(), err)
		}
	}
	refused := func(because string) {
		t.Helper()
		e, err := sandbox.New(context.Background(), sandbox.Options{CacheDir: dir})
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), because) || strings.Contains(err.Error(), "\n") {
			t.Errorf("ends with %v, want one line with %q", err, because)
		}
		if err == nil {
			_ = e.Close(context.Background())
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	refused("run chmod 700 on it")
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	switch err := os.Chown(dir, os.Getuid()+1, -1); {
	case err == nil:
		refused("belongs to user")
	case !os.IsPermission(err) && err != syscall.EINVAL:
		t.Fatal(err)
	}
}

// Code of another cache is copied, unless it is damaged or other users can write to that cache.
func TestCodeIsTakenFromAnotherCache(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	wasm := assemble(t, "cases")
	start(t, sandbox.Options{CacheDir: from, NoBreaker: true}, wasm)
	var code string
	marked := map[string][]byte{} // the lists in another order, which compiling would not write
	for _, path := range kept(t, from) {
		switch {
		case strings.HasSuffix(path, ".sums"):
			lines := slices.Collect(strings.Lines(string(read(t, path))))
			slices.Reverse(lines)
			marked[filepath.Base(path)] = []byte(strings.Join(lines, ""))
			if err := os.WriteFile(path, marked[filepath.Base(path)], 0o600); err != nil {
				t.Fatal(err)
			}
		case filepath.Base(filepath.Dir(path)) != filepath.Base(from) && !strings.HasSuffix(path, ".offsets"):
			code = path
		}
	}
	taken := func() (n int) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "cache")
		start(t, sandbox.Options{CacheDir: dir, CacheFrom: from, NoBreaker: true}, wasm)
		for _, path := range kept(t, dir) {
			if list := marked[filepath.Base(path)]; list != nil && bytes.Equal(read(t, path), list) {
				n++
			}
		}
		return n
	}
	if n := taken(); n != len(marked) {
		t.Errorf("the code of %d modules was copied, want %d", n, len(marked))
	}
	whole := read(t, code)
	if err := os.WriteFile(code, append(bytes.Clone(whole[:len(whole)-1]), ^whole[len(whole)-1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := taken(); n != len(marked)-1 {
		t.Errorf("with one damaged, the code of %d modules was copied, want %d", n, len(marked)-1)
	}
	if err := errors.Join(os.WriteFile(code, whole, 0o600), os.Chmod(from, 0o755)); err != nil {
		t.Fatal(err)
	}
	if n := taken(); n != 0 {
		t.Errorf("the code of %d modules was copied from a directory that is open to others", n)
	}
}

// Modules with equal code share it: data and names do not matter to the compiler.
func TestModulesThatDifferInTheirDataAreCompiledOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	e := newEngine(t, sandbox.Options{CacheDir: dir})
	one := func(name, text string, pages int) *sandbox.Module {
		return load(t, e, assembleText(t, fmt.Sprintf(`(module
			(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
			(memory (export "memory") %d) (data (i32.const 8) %q)
			(func (export %q) (drop (call $send (i32.const 200) (i32.const 8) (i32.const 5)))))`, pages, text, name)))
	}
	a := one("a", "first", 1)
	before := kept(t, dir)
	b, c := one("b", "other", 1), one("a", "third", 3)
	if now := kept(t, dir); !slices.Equal(now, before) {
		t.Errorf("two modules of the same code left %q, and there was %q", now, before)
	}
	answers := func(m *sandbox.Module, handler, want string) {
		t.Helper()
		for range 2 {
			if call, err := within(t, plenty, m, handler); err != nil || string(call.Response.Body) != want {
				t.Errorf("%s answers %q, %v; want %q", handler, call.Response.Body, err, want)
			}
		}
	}
	answers(a, "a", "first")
	answers(b, "b", "other")
	answers(c, "a", "third")
	if err := a.Close(context.Background()); err != nil { // the others still have the code
		t.Error(err)
	}
	answers(b, "b", "other")
	answers(c, "a", "third")
	if _, err := within(t, plenty, b, "a"); fault.CodeOf(err) != fault.HandlerFailed {
		t.Errorf("a handler of another module with the same code ends with %v", err)
	}
}
