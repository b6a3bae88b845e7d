package sandbox_test

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// largeModule returns a module of about two mebibytes with an export of that name. Modules with
// other names have other code.
func largeModule(name string) string {
	num := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	section := func(id byte, content ...[]byte) []byte {
		all := slices.Concat(content...)
		return slices.Concat([]byte{id}, num(len(all)), all)
	}
	const functions = 1024
	var code []byte
	for i := range functions {
		line := slices.Concat([]byte{0x20, 0, 0x20, 0, 0x36, 2}, num(4096+len(name)*functions+i), []byte{0x20, 0, 0x41, 3, 0x6c, 0x21, 0})
		body := slices.Concat([]byte{1, 1, 0x7f}, slices.Repeat(line, 2048/len(line)), []byte{0x0b})
		code = append(append(code, num(len(body))...), body...)
	}
	return string(slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{1, 0x60, 0, 0}),
		section(3, num(functions), make([]byte, functions)),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, num(len(name)), []byte(name), []byte{0, 0, 6}, []byte("memory"), []byte{2, 0}),
		section(10, num(functions), code)))
}

// A loaded module takes little memory for the code that does not run, and none for its own
// bytes. What loading it needed besides is returned.
func TestALoadedModuleTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling the modules takes seconds")
	}
	const more = 8
	// prepare makes an app with so many modules. size is that of the modules with their code.
	prepare := func(modules int) (a *harness.App, size int) {
		a = &harness.App{T: t, Dir: t.TempDir()} // with a cache of its own
		a.Write("app.schema", harness.TinySchema)
		for i := range modules {
			module := largeModule("hello" + strings.Repeat("x", i))
			a.Write(fmt.Sprintf("build/large%d.wasm", i), module)
			size += len(module)
		}
		a.Serve().Stop() // compiles
		err := filepath.WalkDir(a.Path("data/cache"), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().IsRegular() {
				size += int(info.Size())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return a, size
	}
	one, size1 := prepare(1)
	all, size := prepare(1 + more)
	limit := (size - size1) / more / 4
	memory := memoryOfApp(one, 16<<20) // a little more than it holds in the end
	each := (memoryOfApp(all, memory+limit*more) - memory) / more
	t.Logf("%d KiB for each module, the limit is %d", each>>10, limit>>10)
	if each > limit {
		t.Errorf("each module takes %d KiB, the limit is %d", each>>10, limit>>10)
	}
}

// The native code of a large module is a mapping of a file without a name. On a file system whose
// files must not run, it stays in memory, and runs too.
func TestLargeCodeIsMovedToAFileIfPossible(t *testing.T) {
	a := &harness.App{T: t, Dir: t.TempDir()}
	a.Write("app.schema", harness.TinySchema)
	a.Write("build/large.wasm", largeModule("hello"))
	harness.SmallDisk(t, "tmpfs", a.Path("disk"), 512<<20)
	serve := func(data string) (moved bool) {
		s := a.Serve("--data", a.Path(data))
		defer s.Stop()
		if got := s.Get("/hello", ""); got.Status != 500 || !strings.Contains(got.Body, "handler_failed") {
			t.Errorf("the handler, which answers nothing, has %d %s", got.Status, got.Body)
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.Cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			fields := strings.Fields(line)
			if len(fields) > 6 && fields[1] == "r-xp" && strings.HasPrefix(fields[5], a.Path(data)) && fields[6] == "(deleted)" {
				moved = true
			}
		}
		return moved
	}
	if !serve("disk/data") {
		t.Error("the code is not a mapping of a file")
	}
	harness.Remount(t, a.Path("disk"), "noexec")
	if serve("disk/data") {
		t.Error("the code is a mapping of a file that must not be mapped to run")
	}
}

// memoryOfApp returns what a server of the app holds when it has returned what it needed at startup:
// as soon as that is at most limit, or else after a while. Badger's first memtable has 83 MB, which
// is memory of the process only if Go writes zeros there. That depends on where the heap begins,
// by chance, so several servers are started if the first holds more.
func memoryOfApp(a *harness.App, limit int) (smallest int) {
	smallest = math.MaxInt
	for range 6 {
		s := a.Serve()
		for end := time.Now().Add(10 * time.Second); smallest > limit && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			smallest = min(smallest, int(s.Resources().OwnBytes))
		}
		s.Stop()
		if smallest <= limit {
			break
		}
	}
	return smallest
}

// Handlers that fill their memory and wait make the process grow by [sandbox] total_memory
// and little more, however many callers there are.
func TestTheMemoryOfTheProcessIsBounded(t *testing.T) {
	callers := 100
	if harness.Soak {
		callers = 1000
	}
	const total, other = 64 << 20, 32 << 20 // connections need memory too
	schema := "routes(\"/\", auth: none, rateLimit: none, timeout: 60s) { GET /fill -> fillAndNap }\n"
	a := harness.NewApp(t, schema, "[sandbox]\nmemory = \"4mb\"\ntotal_memory = \"64mb\"\nqueue_wait = \"2s\"\n", "bounds")
	s := a.Serve()
	before := s.Resources().Bytes
	var served atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			got, err := s.Try("GET", "/fill", "")
			switch {
			case err == nil && got.Status == 200:
				served.Add(1)
			case err != nil || got.Status != 500 && got.Status != 503:
				t.Errorf("%d %s, %v", got.Status, got.Body, err)
			}
		})
	}
	all.Wait()
	peak := s.Resources().PeakBytes
	t.Logf("%d of %d requests were served; %d MiB before, %d MiB at the peak", served.Load(), callers, before>>20, peak>>20)
	if peak-before > total+other {
		t.Errorf("the process grew by %d MiB", (peak-before)>>20)
	}
	if served.Load() == 0 {
		t.Error("no request was served")
	}
}
