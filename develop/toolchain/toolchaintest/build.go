package toolchaintest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/runtime/sandbox"
)

// Interpreter returns an interpreter for one test. Its compiled code is that of Engine.
func Interpreter(t testing.TB) *python.Interpreter {
	t.Helper()
	p := python.NewInterpreter(Options(sandbox.Options{}), nil)
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// process is what the tests of a process share.
var process struct {
	dir     string // of compiled code
	once    sync.Once
	engine  *sandbox.Engine
	mu      sync.Mutex
	modules map[string]*sandbox.Module // of Module, by their files
}

// Main runs the tests of a package that uses Engine or NewEngine, and ends the process.
func Main(m *testing.M) {
	dir, err := os.MkdirTemp("", "runner-toolchaintest-")
	if err != nil {
		panic(err)
	}
	process.dir = dir
	status := m.Run()
	if process.engine != nil {
		_ = process.engine.Close(context.Background())
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// EngineCache is the directory of the compiled JavaScript engine, for toolchain.Options.
func EngineCache(t testing.TB) string {
	t.Helper()
	return filepath.Join(cache(t), "engine")
}

// cache is the directory of all tests in the user's cache.
func cache(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "runner-tests")
}

// App writes files to a new app directory.
func App(t testing.TB, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, files)
	return dir
}

// KeptApp returns an app directory in the user's cache with these files. Equal files have the same
// directory in every run, and are written once: then cargo compiles only what has changed.
func KeptApp(t testing.TB, files map[string]string) (dir string) {
	t.Helper()
	dir = filepath.Join(cache(t), "apps", fmt.Sprintf("%x", sha256.Sum256([]byte(content(t, files))))[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	building, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		t.Fatal(err)
	}
	write(t, building, files)
	if err := os.Rename(building, dir); err != nil {
		_ = os.RemoveAll(building)
		if _, there := os.Stat(dir); there != nil { // another process may have made it
			t.Fatal(err)
		}
	}
	return dir
}

// content is the same text for equal files.
func content(t testing.TB, files map[string]string) string {
	t.Helper()
	text, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Build builds the only module of an app, without warnings.
func Build(t testing.TB, dir string) *toolchain.Module {
	t.Helper()
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app", CacheDir: EngineCache(t)})
	if err != nil || warnings != nil || len(modules) != 1 {
		t.Fatalf("built %v, %v, %v", modules, warnings, err)
	}
	return modules[0]
}

// Engine returns an engine for all tests, whose handlers have 16 MiB of memory.
func Engine(t testing.TB) *sandbox.Engine {
	t.Helper()
	process.once.Do(func() {
		var err error
		if process.engine, err = sandbox.New(context.Background(), Options(sandbox.Options{MemoryBytes: 16 << 20})); err != nil {
			t.Fatal(err)
		}
	})
	return process.engine
}

// NewEngine returns an engine with these options for one test.
func NewEngine(t testing.TB, o sandbox.Options) *sandbox.Engine {
	t.Helper()
	engine, err := sandbox.New(context.Background(), Options(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// Options adds to the options of an engine that compiled code is shared by all tests of the process.
func Options(o sandbox.Options) sandbox.Options {
	o.NoBreaker, o.CacheDir = true, filepath.Join(process.dir, "code")
	return o
}

// Load loads the module in a file.
func Load(t testing.TB, engine *sandbox.Engine, path string) *sandbox.Module {
	t.Helper()
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Load(context.Background(), path, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Module builds an app of one module, without warnings, and loads it in Engine. Tests with equal files
// share the module.
func Module(t testing.TB, files map[string]string) *sandbox.Module {
	t.Helper()
	process.mu.Lock()
	defer process.mu.Unlock()
	key := content(t, files)
	m := process.modules[key]
	if m == nil {
		dir := App(t, files)
		m = Load(t, Engine(t), filepath.Join(dir, Build(t, dir).File))
		if process.modules == nil {
			process.modules = map[string]*sandbox.Module{}
		}
		process.modules[key] = m
	}
	return m
}
