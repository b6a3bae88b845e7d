package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/hostabi"
	"runner.example/runtime/sandbox"
)

// dice is a module with three regions of random state, 8 bytes each: in a page of its own, over the
// border of two pages, and in memory that it grew. Its runner_reseed copies the first to 0, and handle
// answers with that and all three. The handlers leave and fail overwrite them.
const dice = `(module
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(memory (export "memory") 3 64)
	(func (export "runner_prepare")
		(drop (memory.grow (i32.const 5)))
		(i32.store (i32.const 1024) (i32.const 4))
		(i32.store (i32.const 1028) (i32.const 40000)) (i32.store (i32.const 1032) (i32.const 8))
		(i32.store (i32.const 1036) (i32.const 0xffff0)) (i32.store (i32.const 1040) (i32.const 0))
		(i32.store (i32.const 1044) (i32.const 69628)) (i32.store (i32.const 1048) (i32.const 8))
		(i32.store (i32.const 1052) (i32.const 524280)) (i32.store (i32.const 1056) (i32.const 8)))
	(func (export "runner_random") (result i32) (i32.const 1024))
	(func (export "runner_reseed") (i64.store (i32.const 0) (i64.load (i32.const 40000))))
	(func (export "handle")
		(i64.store (i32.const 8) (i64.load (i32.const 40000)))
		(i64.store (i32.const 16) (i64.load (i32.const 69628)))
		(i64.store (i32.const 24) (i64.load (i32.const 524280)))
		(drop (call $send (i32.const 200) (i32.const 0) (i32.const 32))))
	(func $overwrite
		(i32.store (i32.const 1028) (i32.const 0)) ;; the table counts once
		(i64.store (i32.const 40000) (i64.const 7)) (i64.store (i32.const 69628) (i64.const 7))
		(i64.store (i32.const 524280) (i64.const 7)))
	(func (export "leave") (call $overwrite) (drop (memory.grow (i32.const 3)))
		(drop (call $send (i32.const 200) (i32.const 0) (i32.const 0))))
	(func (export "fail") (call $overwrite) unreachable))`

// seen collects random values.
type seen struct {
	mu     sync.Mutex
	values map[uint64]bool
}

func (s *seen) add(t *testing.T, value uint64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[value] || value == 0 || value == 7 {
		t.Errorf("a request found %016x, which another one had", value)
	}
	s.values[value] = true
}

// roll runs the module's handler, and adds the three values that it answers.
func (s *seen) roll(t *testing.T, m *sandbox.Module, call *hostabi.Call) {
	t.Helper()
	if err := m.Run(call, "handle"); err != nil {
		t.Fatal(err)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(call.Response.Body[8*i:]) }
	if word(0) != word(1) {
		t.Errorf("runner_reseed found %016x, and the handler %016x", word(0), word(1))
	}
	for i := range 3 {
		s.add(t, word(1+i))
	}
}

// 64 bits each: that any two of 12,000 values are equal by chance has a probability below 2^-37.
func TestRegionsOfRandomStateAreNewInEveryRequest(t *testing.T) {
	wasm := assembleText(t, dice)
	found := &seen{values: map[uint64]bool{}} // by all engines, as by several starts of a server
	for name, disabled := range fallbacks {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, sandbox.Options{Disable: disabled, NoBreaker: true})
			m := load(t, e, wasm)
			call := newCall(context.Background(), new(bytes.Buffer))
			for range 50 {
				found.roll(t, m, call)
				for _, way := range []string{"leave", "fail"} {
					if err := m.Run(call, way); (err != nil) != (way == "fail") {
						t.Fatalf("%s ends with %v", way, err)
					}
				}
				if _, err := m.Restored(); err != nil && restores(name) {
					t.Fatal(err)
				}
			}
			other := loadAs(t, e, "build/other.wasm", wasm)
			var workers sync.WaitGroup
			for i := range 8 {
				workers.Go(func() {
					call := newCall(context.Background(), new(bytes.Buffer))
					for range 40 {
						found.roll(t, []*sandbox.Module{m, other}[i%2], call)
					}
				})
			}
			workers.Wait()
			if !slices.Contains(disabled, sandbox.OptSnapshot) {
				if err := m.Trim(); err != nil {
					t.Fatal(err)
				}
				found.roll(t, m, call)
			}
		})
	}
}

// regionTable writes a table of regions.
func regionTable(regions ...uint32) []byte {
	table := binary.LittleEndian.AppendUint32(nil, uint32(len(regions)/2))
	for _, word := range regions {
		table = binary.LittleEndian.AppendUint32(table, word)
	}
	return table
}

func TestATableOfRandomRegionsThatIsNotValidIsRefused(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	many := make([]uint32, 2*65)
	hugeCount := binary.LittleEndian.AppendUint32(nil, 0xffffffff)
	for _, row := range []struct {
		name  string
		at    int32
		table []byte
		want  string // empty: it is valid
	}{
		{"none", 8, regionTable(), ""},
		{"all of the memory's end", 8, regionTable(65528, 8), ""},
		{"itself", 8, regionTable(8, 12), ""},
		{"neighbours", 8, regionTable(1000, 8, 1008, 8), ""},
		{"the most bytes", 8, regionTable(0, 4096), ""},
		{"no bytes", 8, regionTable(1000, 0, 0xffffffff, 0), ""},
		{"behind the memory", 8, regionTable(65529, 8), "region 1 of its table, 8 bytes at 65529, lies outside of memory, which has 65536 bytes"},
		{"a negative address", 8, regionTable(1000, 8, 0xfffffff8, 8), "region 2 of its table, 8 bytes at 4294967288, lies outside of memory, which has 65536 bytes"},
		{"a negative length", 8, regionTable(1000, 0xffffffff), "region 1 of its table, 4294967295 bytes at 1000, lies outside of memory, which has 65536 bytes"},
		{"a sum that overflows", 8, regionTable(0xfffffff0, 0x20), "region 1 of its table, 32 bytes at 4294967280, lies outside of memory, which has 65536 bytes"},
		{"the same twice", 8, regionTable(1000, 8, 1000, 8), "region 2 of its table, 8 bytes at 1000, overlaps another one"},
		{"one within another", 8, regionTable(1000, 64, 1010, 8), "region 2 of its table, 8 bytes at 1010, overlaps another one"},
		{"one byte shared", 8, regionTable(1007, 8, 1000, 8), "region 2 of its table, 8 bytes at 1000, overlaps another one"},
		{"too many bytes", 8, regionTable(0, 4000, 8000, 97), "the regions of its table have more than 4096 bytes"},
		{"too many regions", 8, regionTable(many...), "its table has 65 regions, and the limit is 64"},
		{"a huge count", 8, hugeCount, "its table has 4294967295 regions, and the limit is 64"},
		{"a table at the end", 65532, regionTable(), ""},
		{"a table over the end", 65533, nil, "its table at 65533 lies outside of memory, which has 65536 bytes"},
		{"entries over the end", 65524, regionTable(1000, 8)[:12], ""},
		{"entries behind the end", 65528, regionTable(1000, 8)[:8], "its table of 1 regions at 65528 lies outside of memory, which has 65536 bytes"},
		{"a negative table", -4, nil, "its table at 4294967292 lies outside of memory, which has 65536 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var data strings.Builder
			for _, b := range row.table {
				fmt.Fprintf(&data, `\%02x`, b)
			}
			wasm := assembleText(t, fmt.Sprintf(`(module (memory (export "memory") 1) (func (export "handle"))
				(func (export "runner_random") (result i32) (i32.const %d)) (data (i32.const %d) "%s"))`, row.at, max(row.at, 0), data.String()))
			m, err := e.Load(context.Background(), "build/hostile.wasm", wasm)
			if err == nil {
				defer m.Close(context.Background())
			}
			want := ""
			if row.want != "" {
				want = "build/hostile.wasm: fails before its first request: runner_random: " + row.want
			}
			if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
				t.Errorf("it is refused with\n%v, want\n%s", err, want)
			}
		})
	}
}

func TestRunnerRandomOfAnotherTypeIsRefused(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	for _, row := range []struct{ function, want string }{
		{`(func (export "runner_random"))`, "exports runner_random as () -> (): it must be () -> i32"},
		{`(func (export "runner_random") (param i32) (result i32) (i32.const 0))`, "exports runner_random as (i32) -> (i32): it must be () -> i32"},
		{`(func (export "runner_random") (result i64) (i64.const 0))`, "exports runner_random as () -> (i64): it must be () -> i32"},
		{`(func (export "runner_random") (result i32) unreachable)`, "fails before its first request: runner_random: wasm error: unreachable"},
		// as an SDK says that it does not find the state
		{`(data (i32.const 0) "not found") (func (export "runner_random") (result i32) (call $log (i32.const 3) (i32.const 0) (i32.const 9)) unreachable)`,
			"fails before its first request: runner_random: wasm error: unreachable; its last log lines: not found"},
	} {
		_, err := e.Load(context.Background(), "build/hostile.wasm", assembleText(t, `(module (import "runner" "log" (func $log (param i32 i32 i32)))
			(memory (export "memory") 1) (func (export "handle")) `+row.function+`)`))
		if want := "build/hostile.wasm: " + row.want; fmt.Sprint(err) != want {
			t.Errorf("%s is refused with\n%v, want\n%s", row.function, err, want)
		}
	}
}

// Whatever a table says, the regions that are written lie in memory, apart from each other, and are few.
func FuzzATableOfRandomRegions(f *testing.F) {
	f.Add(uint32(0), regionTable(16, 8))
	f.Add(uint32(4), append(make([]byte, 4), regionTable(0xffffffff, 0xffffffff, 4, 4)...))
	f.Add(uint32(0xfffffffd), []byte{})
	f.Fuzz(func(t *testing.T, at uint32, memory []byte) {
		written := make([]bool, len(memory))
		sum := uint64(0)
		regions, err := sandbox.RandomRegions(memory, at)
		for _, r := range regions {
			if err != nil || r[0] >= r[1] || r[1] > uint64(len(memory)) {
				t.Fatalf("regions %v of %d bytes, %v", regions, len(memory), err)
			}
			for i := r[0]; i < r[1]; i++ {
				if written[i] {
					t.Fatalf("regions %v overlap", regions)
				}
				written[i] = true
			}
			sum += r[1] - r[0]
		}
		if sum > 4096 {
			t.Fatalf("regions %v have %d bytes", regions, sum)
		}
	})
}
