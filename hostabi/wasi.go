package hostabi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/internal/clock"
	"runner.example/internal/cost"
)

// WASIModule is the module name that guests import the functions of WASI from.
const WASIModule = "wasi_snapshot_preview1"

// ClockGrain is the resolution of the guest's clocks: fine enough to measure its own work,
// too coarse to measure other guests.
const ClockGrain = time.Millisecond

// The errnos and file types of WASI preview 1 that are returned.
const (
	wasiOK          = 0
	wasiBadFD       = 8
	wasiExists      = 20
	wasiFault       = 21
	wasiFBig        = 22
	wasiIntr        = 27
	wasiInval       = 28
	wasiIO          = 29
	wasiIsDir       = 31
	wasiTooManyOpen = 33
	wasiNameTooLong = 37
	wasiNoFile      = 44
	wasiNoSys       = 52
	wasiNotDir      = 54
	wasiNoSock      = 57
	wasiROnly       = 69
	wasiSPipe       = 70
	wasiNotCapable  = 76

	unknownFile     = 0 // of pipes
	characterDevice = 2
	directory       = 3
	regularFile     = 4
)

// maxPart is the most bytes that one fd_write or fd_read moves, as with a pipe. The guest
// calls again for the rest.
const maxPart = 64 << 10

// maxParts is the most buffers that one of them uses of a list, as IOV_MAX.
const maxParts = 1024

// maxSubscriptions is the most subscriptions of one poll_oneoff.
const maxSubscriptions = 256

// WASI returns every function of WASI preview 1. Time and randomness are real. Standard
// output and error are log lines, standard input is empty. There are no files, arguments,
// environment variables or sockets. A command has its name as its argument, its request and
// its answer as CGI scripts have them. It and a program that waits for requests have files
// that they can read. No state outlives the run, so none reaches the next request.
//
// Functions that do nothing return badf for a file that is not open, else nosys. Open are
// only 0, 1, 2 and a program's files.
func WASI() []Function {
	w := &wasi{started: clock.Mark()}
	var all []Function
	for _, f := range []struct {
		name   string
		params string // i: i32, l: i64; all but proc_exit return an errno
		body   wasiBody
	}{
		{"args_get", "ii", argumentStrings},
		{"args_sizes_get", "ii", argumentSizes},
		{"environ_get", "ii", environmentStrings},
		{"environ_sizes_get", "ii", environmentSizes},
		{"clock_res_get", "ii", clockGrain},
		{"clock_time_get", "ili", w.now},
		{"fd_advise", "illi", knownFile},
		{"fd_allocate", "ill", readOnlyFile},
		{"fd_close", "i", closeFile},
		{"fd_datasync", "i", openFile},
		{"fd_fdstat_get", "ii", fileStatus},
		{"fd_fdstat_set_flags", "ii", openFile},
		{"fd_fdstat_set_rights", "ill", openFile},
		{"fd_filestat_get", "ii", fileAttributes},
		{"fd_filestat_set_size", "il", readOnlyFile},
		{"fd_filestat_set_times", "illi", readOnlyFile},
		{"fd_pread", "iiili", readFileAt},
		{"fd_prestat_get", "ii", rootSize},
		{"fd_prestat_dir_name", "iii", rootName},
		{"fd_pwrite", "iiili", noSeek},
		{"fd_read", "iiii", readFile},
		{"fd_readdir", "iiili", listDirectory},
		{"fd_renumber", "ii", renumberFile},
		{"fd_seek", "ilii", seekFile},
		{"fd_sync", "i", openFile},
		{"fd_tell", "ii", tellFile},
		{"fd_write", "iiii", writeOutput},
		{"path_create_directory", "iii", readOnly},
		{"path_filestat_get", "iiiii", pathAttributes},
		{"path_filestat_set_times", "iiiilli", changePath(2, wasiROnly)},
		{"path_link", "iiiiiii", changePath(2, wasiROnly)},
		{"path_open", "iiiiillii", openPath},
		{"path_readlink", "iiiiii", changePath(1, wasiInval)},
		{"path_remove_directory", "iii", changePath(1, wasiROnly)},
		{"path_rename", "iiiiii", changePath(1, wasiROnly)},
		{"path_symlink", "iiiii", badDirectory},
		{"path_unlink_file", "iii", changePath(1, wasiROnly)},
		{"poll_oneoff", "iiii", w.poll},
		{"proc_exit", "i", exit},
		{"proc_raise", "i", noSystem},
		{"random_get", "ii", random},
		{"sched_yield", "", yield},
		{"sock_accept", "iii", badSocket},
		{"sock_recv", "iiiiii", badSocket},
		{"sock_send", "iiiii", badSocket},
		{"sock_shutdown", "ii", badSocket},
	} {
		b := Function{Name: f.name, Fn: bindWASI(f.body, timed[f.name])}
		for _, p := range f.params {
			t := api.ValueTypeI32
			if p == 'l' {
				t = api.ValueTypeI64
			}
			b.Params = append(b.Params, t)
		}
		if f.name != "proc_exit" {
			b.Results = []api.ValueType{api.ValueTypeI32}
		}
		all = append(all, b)
	}
	return all
}

// wasiBody implements a function of WASI. It returns an errno.
type wasiBody func(c *Call, g guest) uint32

func bindWASI(run wasiBody, timed bool) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		gc := guestOf(ctx)
		c := gc.call
		c.inside = true
		c.checkTime() // these calls are not counted, so each checks the time
		if timed {
			gc.beginWork()
		}
		errno := run(c, guest{m.Memory(), stack})
		if timed {
			gc.endWork()
		}
		c.checkWork()
		c.inside = false
		if len(stack) > 0 {
			stack[0] = uint64(errno)
		}
	}
}

// wasi has the start of the monotonic clock.
type wasi struct{ started time.Time }

// yield returns intr to a guest whose run is over.
func yield(c *Call, _ guest) uint32 {
	if c.stopping {
		return wasiIntr
	}
	return wasiOK
}

func noSystem(*Call, guest) uint32 { return wasiNoSys }

// open reports whether the file of a word is one of the three standard files.
func (g guest) open(word int) bool { return api.DecodeU32(g.words[word]) <= 2 }

func badFile(_ *Call, g guest) uint32 {
	if g.open(0) {
		return wasiNoSys
	}
	return wasiBadFD
}

// badDirectory is for path_symlink, whose directory is the third word.
func badDirectory(c *Call, g guest) uint32 {
	switch {
	case c.file(g, 2) != nil:
		return wasiROnly
	case g.open(2):
		return wasiNoSys
	}
	return wasiBadFD
}

func badSocket(_ *Call, g guest) uint32 {
	if g.open(0) {
		return wasiNoSock
	}
	return wasiBadFD
}

func openFile(c *Call, g guest) uint32 {
	if g.open(0) || c.file(g, 0) != nil {
		return wasiOK
	}
	return wasiBadFD
}

func noSeek(_ *Call, g guest) uint32 {
	if g.open(0) {
		return wasiSPipe
	}
	return wasiBadFD
}

// put32 writes a number where a word points.
func (g guest) put32(word int, n uint32) bool {
	return g.memory.WriteUint32Le(api.DecodeU32(g.words[word]), n)
}

func (g guest) put64(word int, n uint64) bool {
	return g.memory.WriteUint64Le(api.DecodeU32(g.words[word]), n)
}

func errnoOf(ok bool) uint32 {
	if ok {
		return wasiOK
	}
	return wasiFault
}

// The clocks of WASI. Those of CPU time are not offered.
const (
	clockRealtime  = 0
	clockMonotonic = 1
)

func clockGrain(_ *Call, g guest) uint32 {
	if api.DecodeU32(g.words[0]) > clockMonotonic {
		return wasiInval
	}
	return errnoOf(g.put64(1, uint64(ClockGrain)))
}

func (w *wasi) now(c *Call, g guest) uint32 {
	t, ok := w.clock(c, api.DecodeU32(g.words[0]))
	if !ok {
		return wasiInval
	}
	return errnoOf(g.put64(2, t))
}

// clock reads a clock in nanoseconds. The monotonic one begins at one second, because some
// libraries take 0 for an error.
func (w *wasi) clock(c *Call, id uint32) (uint64, bool) {
	if c.start != nil && id <= clockMonotonic {
		passed := c.start.passed()
		if id == clockRealtime {
			return uint64(c.start.time.Add(passed).Truncate(ClockGrain).UnixNano()), true
		}
		return uint64((c.start.since(w.started) + passed + time.Second).Truncate(ClockGrain)), true
	}
	switch id {
	case clockRealtime:
		return uint64(c.Now().UnixNano()), true
	case clockMonotonic:
		return c.Monotonic(w.started), true
	}
	return 0, false
}

// fileStatus writes an fdstat:
//
//	u8 type · u8 0 · u16 flags · u32 0 · u64 rights · u64 inherited rights
func fileStatus(c *Call, g guest) uint32 {
	f := c.file(g, 0)
	if !g.open(0) && f == nil {
		return wasiBadFD
	}
	room, ok := g.memory.Read(api.DecodeU32(g.words[1]), 24)
	if !ok {
		return wasiFault
	}
	clear(room)
	const mayRead, maySeek, mayTell, mayWrite, mayStat, mayPoll = 1 << 1, 1 << 2, 1 << 5, 1 << 6, 1 << 21, 1 << 27
	if f != nil { // libraries do not try what the rights exclude
		rights := uint64(mayRead | maySeek | mayTell | mayStat | mayPoll)
		switch room[0] = typeOf(f.node()); {
		case f.node().IsDirectory():
			rights = math.MaxUint64
			binary.LittleEndian.PutUint64(room[16:], rights)
		case f.node().Host:
			rights = mayRead | mayWrite | mayStat | mayPoll
		}
		binary.LittleEndian.PutUint64(room[8:], rights)
		return wasiOK
	}
	room[0] = c.fileType()
	rights := uint64(mayWrite | mayPoll)
	if api.DecodeU32(g.words[0]) == 0 {
		rights = mayRead | mayPoll
	}
	binary.LittleEndian.PutUint64(room[8:], rights)
	return wasiOK
}

// fileAttributes writes a filestat: 64 bytes, all zero except the type at 16 and the number
// of links at 24.
func fileAttributes(c *Call, g guest) uint32 {
	if f := c.file(g, 0); f != nil {
		return g.putFile(1, f.node())
	}
	if !g.open(0) {
		return wasiBadFD
	}
	room, ok := g.memory.Read(api.DecodeU32(g.words[1]), 64)
	if !ok {
		return wasiFault
	}
	clear(room)
	room[16], room[24] = c.fileType(), 1
	return wasiOK
}

// fileType returns the type of the three standard files. To libraries a character device is
// a terminal, which they write to line by line. A command has pipes, because interpreters
// would start an interactive session on a terminal.
func (c *Call) fileType() byte {
	if c.program.running {
		return unknownFile
	}
	return characterDevice
}

// parts returns how many buffers of a read or a write are used.
func (g guest) parts() uint64 { return min(uint64(api.DecodeU32(g.words[2])), maxParts) }

// part returns a buffer of the list of (u32 pointer, u32 length) that the second word points
// to, cut to most bytes.
func (g guest) part(i uint64, most int) ([]byte, bool) {
	at := uint64(api.DecodeU32(g.words[1])) + 8*i
	if at > math.MaxUint32 {
		return nil, false
	}
	pair, ok := g.memory.ReadUint64Le(uint32(at))
	if !ok {
		return nil, false
	}
	return g.memory.Read(uint32(pair), min(uint32(pair>>32), uint32(most)))
}

// writeOutput logs what is written, line by line. A command's standard output is its
// answer.
func writeOutput(c *Call, g guest) uint32 {
	var out io.Writer
	most := maxPart
	switch fd := api.DecodeU32(g.words[0]); {
	case fd == 1 && c.program.running:
		out, most = &c.program, min(most, c.program.most-len(c.program.out))
	case fd == 1:
		out = &c.stdout
	case fd == 2:
		out = &c.stderr
	default:
		if f := c.file(g, 0); f != nil {
			return c.writeFile(g, f)
		}
		return wasiBadFD
	}
	if most == 0 {
		return wasiFBig
	}
	written := 0
	for i := uint64(0); i < g.parts() && written < most; i++ {
		part, ok := g.part(i, most-written)
		if !ok {
			return wasiFault
		}
		_, _ = out.Write(part) // never fails
		written += len(part)
	}
	if out == &c.program {
		c.streamOutput()
	}
	return errnoOf(g.put32(3, uint32(written)))
}

// random fills memory, within the limit of moved bytes.
func random(c *Call, g guest) uint32 {
	room, ok := g.memory.Read(api.DecodeU32(g.words[0]), api.DecodeU32(g.words[1]))
	if !ok {
		return wasiFault
	}
	if !c.countMoved(len(room)) {
		return wasiInval
	}
	if !c.fillRandom(room) {
		return wasiIO // the run ends
	}
	return wasiOK
}

// fillRandom fills memory. It returns false if the run ends.
func (c *Call) fillRandom(room []byte) bool {
	for part := range slices.Chunk(room, cost.Every/randomUnits) {
		if c.work.Spend(randomUnits*len(part)) != nil {
			return false
		}
		if c.start != nil {
			_, _ = c.start.random.Read(part) // never fails
			continue
		}
		if c.Draws != nil {
			c.Draws.Random(part)
			continue
		}
		_, _ = rand.Read(part) // never fails
	}
	return true
}

// randomUnits is the cost of a random byte.
const randomUnits = 2

func exit(c *Call, g guest) uint32 {
	c.unwind(&Exit{api.DecodeU32(g.words[0])})
	return wasiOK
}

// Layouts of poll_oneoff. A subscription:
//
//	u64 user data · u8 type · at 16: u32 clock, at 24: u64 time, at 40: u16 flags  or  at 16: u32 file
//
// and an event:
//
//	u64 user data · u16 errno · u8 type · at 16: u64 bytes · u16 flags
const (
	subscriptionBytes = 48
	eventBytes        = 32

	eventClock = 0
	eventRead  = 1
	eventWrite = 2

	absoluteTime = 1
	hangUp       = 1
)

// poll waits for the first of its clocks, or the end of the request's time. It never waits
// for files: input is present or at its end, and output is always ready.
func (w *wasi) poll(c *Call, g guest) uint32 {
	n := api.DecodeU32(g.words[2])
	if n == 0 || n > maxSubscriptions {
		return wasiInval
	}
	in, ok1 := g.memory.Read(api.DecodeU32(g.words[0]), n*subscriptionBytes)
	out, ok2 := g.memory.Read(api.DecodeU32(g.words[1]), n*eventBytes)
	if !ok1 || !ok2 {
		return wasiFault
	}
	in = bytes.Clone(in) // in and out may overlap
	due := make([]time.Duration, n)
	for i := range due {
		due[i] = w.wait(c, in[i*subscriptionBytes:])
	}
	first := slices.Min(due)
	c.sleep(first)
	events := 0
	for i := range due {
		if due[i] <= first {
			c.writeEvent(out[events*eventBytes:][:eventBytes], in[i*subscriptionBytes:])
			events++
		}
	}
	return errnoOf(g.put32(3, uint32(events)))
}

// wait returns the time until a subscription has an event.
func (w *wasi) wait(c *Call, subscription []byte) time.Duration {
	if subscription[8] != eventClock {
		return 0
	}
	at := binary.LittleEndian.Uint64(subscription[24:])
	if binary.LittleEndian.Uint16(subscription[40:])&absoluteTime != 0 {
		now, _ := w.clock(c, binary.LittleEndian.Uint32(subscription[16:])) // 0 for an unknown clock, which is an error at once
		at -= min(at, now)
	}
	if binary.LittleEndian.Uint32(subscription[16:]) > clockMonotonic {
		return 0
	}
	return time.Duration(min(at, math.MaxInt64))
}

// writeEvent writes the event of a subscription.
func (c *Call) writeEvent(out, subscription []byte) {
	clear(out)
	copy(out, subscription[:8])
	out[10] = subscription[8]
	what := binary.LittleEndian.Uint32(subscription[16:])
	errno := uint16(wasiOK)
	switch kind := subscription[8]; {
	case kind == eventClock && what > clockMonotonic:
		errno = wasiInval
	case kind == eventClock:
	case kind == eventRead && what == 0:
		if n := c.availableInput(); n > 0 {
			binary.LittleEndian.PutUint64(out[16:], uint64(n))
		} else {
			out[24] = hangUp
		}
	case kind == eventWrite && (what == 1 || what == 2):
		binary.LittleEndian.PutUint64(out[16:], maxPart)
	default:
		errno = wasiBadFD
	}
	binary.LittleEndian.PutUint16(out[8:], errno)
}
