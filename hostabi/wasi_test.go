package hostabi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/internal/deadline"
)

// Numbers of WASI preview 1.
const (
	wasiOK    = 0
	wasiBadFD = 8
	wasiFault = 21
	wasiInval = 28
	wasiNoSys = 52
)

// system calls a function of WASI.
func (g *guest) system(name string, words ...uint64) uint32 {
	g.t.Helper()
	f, ok := g.wasi[name]
	if !ok || len(words) != len(f.Params) {
		g.t.Fatalf("%s: there: %v, takes %d words", name, ok, len(f.Params))
	}
	stack := make([]uint64, max(1, len(words)))
	copy(stack, words)
	f.Fn.Call(g.context(), g.module, stack)
	return api.DecodeU32(stack[0])
}

// print writes text to standard output (1) or error (2), as often as it takes.
func (g *guest) print(fd int, text string) {
	g.t.Helper()
	for text != "" {
		at, n := g.put(text)
		g.module.Memory().WriteUint64Le(0, uint64(n)<<32|uint64(at))
		if errno := g.system("fd_write", uint64(fd), 0, 1, 8); errno != wasiOK {
			g.t.Fatalf("fd_write: %d", errno)
		}
		written, _ := g.module.Memory().ReadUint32Le(8)
		text = text[written:]
		g.next = 1024
	}
}

func (g *guest) at(offset, n uint32) []byte {
	b, _ := g.module.Memory().Read(offset, n)
	return b
}

func TestAllFunctionsOfWASIPreview1ExistAndMostReturnAnError(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if len(g.wasi) != 46 {
		t.Errorf("%d functions, and preview 1 has 46", len(g.wasi))
	}
	acting := map[string]bool{"poll_oneoff": true, "proc_exit": true, "random_get": true, "fd_write": true, "clock_time_get": true, "clock_res_get": true}
	for name, f := range g.wasi {
		if acting[name] {
			continue
		}
		words := make([]uint64, len(f.Params))
		for i := range words {
			words[i] = 64
		}
		errno := g.system(name, words...)
		switch {
		case name == "args_get" || name == "environ_get" || name == "sched_yield" || name == "args_sizes_get" || name == "environ_sizes_get":
			if errno != wasiOK {
				t.Errorf("%s: %d", name, errno)
			}
		case name == "proc_raise":
			if errno != wasiNoSys {
				t.Errorf("%s: %d", name, errno)
			}
		case errno != wasiBadFD:
			t.Errorf("%s of a file that is not open: %d, want badf", name, errno)
		}
		for i := range words {
			words[i] = 1
		}
		if errno := g.system(name, words...); errno == wasiBadFD && name != "fd_read" {
			t.Errorf("%s of standard output: badf", name)
		}
	}
}

func TestClocksStepByMilliseconds(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	read := func(clock uint64) uint64 {
		if errno := g.system("clock_time_get", clock, 1, 512); errno != wasiOK {
			t.Fatalf("clock %d: %d", clock, errno)
		}
		return binary.LittleEndian.Uint64(g.at(512, 8))
	}
	before := time.Now().Truncate(time.Millisecond).UnixNano()
	if now := read(0); now%1e6 != 0 || int64(now) < before || int64(now) > time.Now().UnixNano() {
		t.Errorf("the clock says %d", now)
	}
	g.call.Host.Calendar = func() time.Time { return time.Unix(0, 1_234_567_890_123_456_789) }
	if now := read(0); now != 1_234_567_890_123_000_000 {
		t.Errorf("the clock says %d, which is not the time of the host's calendar", now)
	}
	last := read(1)
	if last < 1e9 || last%1e6 != 0 {
		t.Errorf("the monotonic clock begins at %d", last)
	}
	for range 1000 {
		now := read(1)
		if now < last {
			t.Fatalf("the monotonic clock goes from %d to %d", last, now)
		}
		last = now
	}
	for id := uint64(2); id < 5; id++ {
		if a, b := g.system("clock_time_get", id, 1, 512), g.system("clock_res_get", id, 512); a != wasiInval || b != wasiInval {
			t.Errorf("clock %d: %d, %d, want inval", id, a, b)
		}
	}
	if errno := g.system("clock_res_get", 0, 512); errno != wasiOK || binary.LittleEndian.Uint64(g.at(512, 8)) != 1e6 {
		t.Errorf("the grain of the clock is %d (%d)", binary.LittleEndian.Uint64(g.at(512, 8)), errno)
	}
}

func TestRandomBytesDifferAndCountAsMovedBytes(t *testing.T) {
	g := newGuest(t, hostabi.Limits{MovedBytes: 10_000})
	seen := map[string]bool{}
	for range 100 {
		if errno := g.system("random_get", 512, 16); errno != wasiOK {
			t.Fatal(errno)
		}
		seen[string(g.at(512, 16))] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different of 100", len(seen))
	}
	if errno := g.system("random_get", 0, 20_000); errno != wasiInval {
		t.Errorf("more than may be moved: %d", errno)
	}
	if errno := g.system("random_get", memoryBytes-8, 16); errno != wasiFault {
		t.Errorf("outside of memory: %d", errno)
	}
}

func TestAWriteAcceptsAsMuchAsAPipe(t *testing.T) {
	g := newGuest(t, hostabi.Limits{LogBytes: 1 << 20})
	binary.LittleEndian.PutUint32(g.at(0, 4), 1024)
	binary.LittleEndian.PutUint32(g.at(4, 4), 100_000)
	if errno := g.system("fd_write", 1, 0, 1, 8); errno != wasiOK {
		t.Fatal(errno)
	}
	if n := binary.LittleEndian.Uint32(g.at(8, 4)); n != 64<<10 {
		t.Errorf("one write took %d bytes, want 65536", n)
	}
	for name, words := range map[string][4]uint64{
		"the list outside of memory":    {1, memoryBytes, 1, 8},
		"a list that wraps around":      {1, 0xffff_fff8, 2, 8},
		"a part outside of memory":      {1, 16, 1, 8},
		"the answer outside of memory":  {1, 0, 0, 0xffff_fffe},
		"as many parts as can be named": {1, memoryBytes - 8, 0xffff_ffff, 8},
	} {
		copy(g.at(16, 8), "\xff\xff\xff\xff\x08\x00\x00\x00")
		if errno := g.system("fd_write", words[:]...); errno != wasiFault {
			t.Errorf("%s: %d, want fault", name, errno)
		}
	}
	if errno := g.system("fd_write", 0, 0, 1, 8); errno != wasiBadFD {
		t.Errorf("writing to standard input: %d", errno)
	}
}

// subscribe writes subscriptions at 1024: a kind, then a clock or a file, then
// nanoseconds and flags.
func (g *guest) subscribe(subs ...[4]uint64) {
	for i, s := range subs {
		b := g.at(1024+uint32(i)*48, 48)
		clear(b)
		binary.LittleEndian.PutUint64(b, uint64(100+i))
		b[8] = byte(s[0])
		binary.LittleEndian.PutUint32(b[16:], uint32(s[1]))
		binary.LittleEndian.PutUint64(b[24:], s[2])
		binary.LittleEndian.PutUint16(b[40:], uint16(s[3]))
	}
}

// events gives "user data:errno" of each event at 4096.
func (g *guest) events() (list []string) {
	n := binary.LittleEndian.Uint32(g.at(8, 4))
	for i := range n {
		b := g.at(4096+i*32, 32)
		list = append(list, fmt.Sprintf("%d:%d", b[0], binary.LittleEndian.Uint16(b[8:])))
	}
	return list
}

func TestPollWaitsOnlyForClocks(t *testing.T) {
	const clock, read, write = 0, 1, 2
	const monotonic = 1
	second := uint64(time.Second)
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		for _, row := range []struct {
			name string
			subs [][4]uint64
			took time.Duration
			want string
		}{
			{"one clock", [][4]uint64{{clock, monotonic, 3 * second, 0}}, 3 * time.Second, "[100:0]"},
			{"two clocks", [][4]uint64{{clock, 0, 5 * second, 0}, {clock, monotonic, second, 0}}, time.Second, "[101:0]"},
			{"clocks of one time", [][4]uint64{{clock, 0, second, 0}, {clock, monotonic, second, 0}}, time.Second, "[100:0 101:0]"},
			{"no time", [][4]uint64{{clock, 0, 0, 0}, {clock, 0, second, 0}}, 0, "[100:0]"},
			{"output", [][4]uint64{{write, 1, 0, 0}, {clock, 0, second, 0}}, 0, "[100:0]"},
			{"input", [][4]uint64{{read, 0, 0, 0}}, 0, "[100:0]"},
			{"a file that is not open", [][4]uint64{{read, 3, 0, 0}, {write, 0, 0, 0}}, 0, "[100:8 101:8]"},
			{"another clock", [][4]uint64{{clock, 3, second, 0}}, 0, "[100:28]"},
			{"a time gone by", [][4]uint64{{clock, 0, 1, 1}}, 0, "[100:0]"},
		} {
			g.subscribe(row.subs...)
			start := time.Now()
			if errno := g.system("poll_oneoff", 1024, 4096, uint64(len(row.subs)), 8); errno != wasiOK {
				t.Errorf("%s: %d", row.name, errno)
			}
			if got := fmt.Sprint(g.events()); time.Since(start) != row.took || got != row.want {
				t.Errorf("%s: %s after %s, want %s after %s", row.name, got, time.Since(start), row.want, row.took)
			}
		}
		start := time.Now()
		g.subscribe([4]uint64{clock, 0, uint64(start.Add(7 * time.Second).UnixNano()), 1})
		g.system("poll_oneoff", 1024, 4096, 1, 8)
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("until an instant 7 s ahead: %s", took)
		}
		deadline := deadline.New(context.Background(), time.Now().Add(time.Second))
		defer deadline.Stop()
		g.call.Context = deadline
		g.subscribe([4]uint64{clock, 0, ^uint64(0), 0})
		start = time.Now()
		func() {
			defer func() {
				if r := recover(); r != hostabi.ErrTimeOver || time.Since(start) != time.Second {
					t.Errorf("a sleep longer than the request: %v after %s", r, time.Since(start))
				}
			}()
			g.system("poll_oneoff", 1024, 4096, 1, 8)
		}()
		func() { // every call looks at the clock: none of them is counted
			defer func() {
				if r := recover(); r != hostabi.ErrTimeOver {
					t.Errorf("a call after the request's time: %v", r)
				}
			}()
			g.system("sched_yield")
		}()
		g.call.Context = context.Background()
		for _, words := range [][4]uint64{{1024, 4096, 0, 8}, {1024, 4096, 5000, 8}, {0, 4096, 1 << 31, 8}} {
			if errno := g.system("poll_oneoff", words[:]...); errno != wasiInval {
				t.Errorf("%d subscriptions: %d, want inval", words[2], errno)
			}
		}
	})
}

func TestExitUnwindsTheGuest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	defer func() {
		if exit, ok := recover().(*hostabi.Exit); !ok || exit.Status != 7 || g.call.HostFailed() {
			t.Errorf("%v; a failure of the host: %v", exit, g.call.HostFailed())
		}
	}()
	g.system("proc_exit", 7)
}

// FuzzWASI: no numbers make the host panic, or write where the guest did not say.
func FuzzWASI(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := newGuest(t, hostabi.Limits{})
		chance := rand.New(rand.NewPCG(seed, seed))
		over := deadline.New(context.Background(), time.Now())
		g.call.Request.Body = make([]byte, chance.IntN(1000))
		if chance.IntN(2) == 0 {
			g.program()
		}
		for name, f := range g.wasi {
			g.call.Context = context.Background()
			if name == "poll_oneoff" {
				g.call.Context = over // so that it does not wait
			}
			words := make([]uint64, len(f.Params))
			for i := range words {
				switch chance.IntN(4) {
				case 0:
					words[i] = uint64(chance.IntN(4))
				case 1:
					words[i] = memoryBytes - 16 + uint64(chance.IntN(32))
				case 2:
					words[i] = uint64(chance.Uint32())
				default:
					words[i] = chance.Uint64N(memoryBytes)
				}
			}
			func() {
				defer func() {
					r := recover()
					if _, exited := r.(*hostabi.Exit); r != nil && !exited && r != hostabi.ErrTimeOver {
						t.Errorf("seed %d: %s%v: %v", seed, name, words, r)
					}
				}()
				g.system(name, words...)
			}()
		}
		if bytes.Count(g.at(0, memoryBytes), []byte{0}) == 0 {
			t.Error("all of the memory was written to")
		}
	})
}
