package toolchain_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/runtime/sandbox"
)

const goCosts = `package main

import (
	"runtime"
	"time"

	runner "runner.example/sdk/go"
)

func main() {}

type address struct {
	Street string ` + "`json:\"street\"`" + `
	Zip    string ` + "`json:\"zip,omitempty\"`" + `
}

//go:wasmexport reads
func exportReads() { runner.Handle(reads) }

func reads(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	type line struct {
		Item  string
		Price *float64
	}
	type order struct {
		ID      string
		Lines   []line
		Address struct{ address }
		At      time.Time
		Tags    map[string]string
	}
	got, err := runner.Body[order](req)
	return runner.OK(struct {
		Order order  ` + "`json:\"order\"`" + `
		Next  *order ` + "`json:\"next\"`" + `
	}{got, nil}), err
}

// The garbage of the initialization is most of what a collection waits for.
var kept [][]byte

func init() {
	for range 320 {
		kept = append(kept, make([]byte, 8<<10))
	}
	kept = nil
}

//go:wasmexport collections
func exportCollections() { runner.Handle(collections) }

func collections(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 256 {
		kept = append(kept, make([]byte, 8<<10))
	}
	runtime.ReadMemStats(&after)
	return runner.OK(after.NumGC - before.NumGC), nil
}

//go:wasmexport wastes
func exportWastes() { runner.Handle(wastes) }

func wastes(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	sum := 0
	for i := range 10 * 16 * 16 {
		garbage := make([]byte, 64<<10)
		garbage[i] = 1
		kept = append(kept[:0], garbage)
		sum += len(garbage)
	}
	return runner.OK(sum), nil
}
`

const goWarm = `package main

import runner "runner.example/sdk/go"

//go:wasmexport runner_warm
func exportWarm() { runner.Warm(reads, "{}", ` + "`" + orderBody + "`" + `) }
`

const orderBody = `{"ID":"o-1","Lines":[{"Item":"tea","Price":1.5},{"Item":"milk","Price":null}],"Address":{"street":"Main Street"},"At":"2026-01-02T03:04:05Z","Tags":{"a":"b"}}`

// goModule builds a module of files in Go, and loads it with 16 MiB of memory.
func goModule(t *testing.T, files map[string]string) *sandbox.Module {
	dir := goDirectory(t, files)
	modules, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"})
	if err != nil {
		t.Fatal(err)
	}
	return toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
}

func TestAHandlerInGoNeedsNoWarming(t *testing.T) {
	plain := goModule(t, map[string]string{"main.go": goCosts})
	warmed := goModule(t, map[string]string{"main.go": goCosts, "warm.go": goWarm})
	fuel := func(m *sandbox.Module) (least uint64) {
		request := abi.Request{Method: []byte("POST"), Path: []byte("/"), Body: []byte(orderBody)}
		for i := range 5 {
			call := toolchaintest.NewCall(t.Context(), &request, slog.DiscardHandler)
			usage, err := m.Measure(call, "reads")
			if err != nil || call.Response.Status != 200 || !strings.Contains(string(call.Response.Body), `"street":"Main Street"`) {
				t.Fatalf("%v, %d %s", err, call.Response.Status, call.Response.Body)
			}
			if i == 0 || uint64(usage.Fuel) < least {
				least = uint64(usage.Fuel)
			}
		}
		return least
	}
	cold, warm := fuel(plain), fuel(warmed)
	t.Logf("%d fuel, %d warmed", cold, warm)
	if cold > warm+warm*2/5 {
		t.Errorf("a request takes %d fuel, and %d if the handler ran before", cold, warm)
	}
	t.Run("and finds room in the heap", func(t *testing.T) {
		if got := toolchaintest.Ask(t, plain, "collections", abi.Request{Method: []byte("GET"), Path: []byte("/")}); got.Status != 200 || got.Body != "0" {
			t.Errorf("%d %s collections of garbage in a request that allocates 2 MiB", got.Status, got.Body)
		}
	})
	t.Run("and may allocate more than its memory in all", func(t *testing.T) {
		if got := toolchaintest.Ask(t, plain, "wastes", abi.Request{Method: []byte("GET"), Path: []byte("/")}); got.Status != 200 || got.Body != "167772160" {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	})
}
