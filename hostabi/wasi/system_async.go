package wasi

import (
	"io"
	"sync"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
	"runner.example/internal/component/canon"
)

// Functions that differ between WASI 0.3 and 0.2: clocks, the standard streams, and files.

// pause is a later that is ready at a time.
type pause struct{ at time.Time }

func (p pause) ready(now time.Time) (bool, time.Duration) {
	left := p.at.Sub(now)
	return left <= 0, left
}

func (pause) value(*run) any { return nil }
func (pause) drop()          {}

var asyncClockFunctions = map[string]function{
	"now":            func(r *run, _ []any) any { return r.monotonic() },
	"get-resolution": constant(uint64(hostabi.ClockGrain)),
	"wait-for":       func(r *run, a []any) any { return pause{r.timeAfter(a[0].(uint64))} },
	"wait-until": func(r *run, a []any) any {
		when := a[0].(uint64)
		return pause{r.timeAfter(when - min(when, r.monotonic()))}
	},
}

var systemClockFunctions = map[string]function{
	"now":            func(r *run, _ []any) any { return instant(r.call.Now()) },
	"get-resolution": constant(uint64(hostabi.ClockGrain)),
}

// instant is the WIT record instant of a time.
func instant(t time.Time) any { return []any{t.Unix(), uint64(t.Nanosecond())} }

var asyncTimezoneFunctions = map[string]function{
	"iana-id":         constant(some("UTC")),
	"utc-offset":      constant(some(int64(0))),
	"to-debug-string": constant("UTC"),
}

var asyncEnvironmentFunctions = merged(environmentFunctions, map[string]function{"get-initial-cwd": constant(none)})

// standardTypes are the types of the streams and futures of standard input and output.
var standardTypes = sync.OnceValue(func() (t struct{ bytes, result *payload }) {
	of := functionOf("wasi:cli/stdin@0.3", "read-via-stream").Result.Fields
	t.bytes, t.result = payloadOf(of[0].Type), payloadOf(of[1].Type)
	return t
})

// readStdin returns a stream of the input.
func readStdin(r *run, _ []any) any {
	t := standardTypes()
	return []any{r.open(t.bytes, &available{r.call.Stdin()}), r.open(t.result, value(ok(nil)))}
}

// writeLog returns a function that reads a stream of the guest, and writes it to the output or the log.
func writeLog(to func(*hostabi.Call) io.Writer) function {
	return func(r *run, a []any) any {
		t, log := standardTypes(), &logReader{to: to(r.call)}
		future := r.open(t.result, &promise{later: &log.transmission})
		r.connect(r.pass(a[0], t.bytes), log)
		return future
	}
}

// logReader writes what it reads to the output or the log.
type logReader struct {
	to io.Writer
	transmission
}

func (l *logReader) accept(_ *run, bytes any) bool {
	if _, err := l.to.Write(bytes.([]byte)); err != nil {
		l.end(canon.Case{}) // io
		return false
	}
	return true
}

func (l *logReader) close() {
	if !l.over {
		l.end(nil)
	}
}

// asyncFileFunctions are those of wasi:filesystem/types@0.3.
var asyncFileFunctions = func() map[string]function {
	all := map[string]function{
		"[method]descriptor.read-via-stream":   openFile,
		"[method]descriptor.read-directory":    listDirectory,
		"[method]descriptor.write-via-stream":  refuseWrites,
		"[method]descriptor.append-via-stream": refuseWrites,
		"[method]descriptor.is-same-object":    fileFunctions["[method]descriptor.is-same-object"],
		"[method]descriptor.get-type": onDescriptor(func(d *descriptor) any {
			return ok(asyncTypeOf(d.node()))
		}),
		"[method]descriptor.stat":    onDescriptor(func(d *descriptor) any { return ok(asyncStat(d.node())) }),
		"[method]descriptor.stat-at": asyncResult(atPath(2, func(n *files.Node) any { return ok(asyncStat(n)) })),
	}
	for _, name := range []string{
		"advise", "sync-data", "sync", "get-flags", "set-size", "set-times", "create-directory-at", "set-times-at", "link-at",
		"open-at", "readlink-at", "remove-directory-at", "rename-at", "symlink-at", "unlink-file-at",
		"metadata-hash", "metadata-hash-at",
	} {
		name = "[method]descriptor." + name
		all[name] = asyncResult(fileFunctions[name])
	}
	return all
}()

// asyncResult makes a function of WASI 0.2 one of 0.3, which has the error-codes in another order.
func asyncResult(f function) function {
	return func(r *run, a []any) any {
		result := f(r, a).(canon.Case)
		if result.Index == 1 {
			return fail(asyncFileCode(result.Value.(canon.Case)))
		}
		return result
	}
}

// asyncFileCodes are the numbers of error-codes of WASI 0.3, by those of 0.2.
var asyncFileCodes = sync.OnceValue(func() map[uint32]uint32 {
	numbers := map[string]uint32{}
	for n, c := range functionOf("wasi:filesystem/types@0.3", "[method]descriptor.sync").Result.Fields[1].Type.Cases() {
		numbers[c.Name] = uint32(n)
	}
	codes := map[uint32]uint32{}
	for name, old := range fileCodes() {
		if n, ok := numbers[name]; ok {
			codes[old] = n
		}
	}
	return codes
})

func asyncFileCode(c canon.Case) canon.Case {
	n, ok := asyncFileCodes()[c.Index]
	if !ok {
		panic("BUG: an error-code of files that WASI 0.3 does not have")
	}
	return canon.Case{Index: n}
}

// asyncTypeOf is the descriptor-type of a file.
func asyncTypeOf(n *files.Node) canon.Case {
	if n.IsDirectory() {
		return canon.Case{Index: 2}
	}
	return canon.Case{Index: 5}
}

func asyncStat(n *files.Node) any {
	at := some(instant(time.Unix(0, hostabi.FileTime)))
	return []any{asyncTypeOf(n), uint64(1), uint64(n.Size()), at, at, at}
}

// fileTypes are the types of the streams and futures of files.
var fileTypes = sync.OnceValue(func() (t struct{ bytes, entries, result *payload }) {
	of := functionOf("wasi:filesystem/types@0.3", "[method]descriptor.read-via-stream").Result.Fields
	t.bytes, t.result = payloadOf(of[0].Type), payloadOf(of[1].Type)
	t.entries = payloadOf(functionOf("wasi:filesystem/types@0.3", "[method]descriptor.read-directory").Result.Fields[0].Type)
	return t
})

// opened returns a stream, and a future with an error or none. problem is a result of WASI 0.2, or nil.
func (r *run) opened(of *payload, what producer, problem any) any {
	result := ok(nil)
	if problem != nil {
		result = fail(asyncFileCode(problem.(canon.Case).Value.(canon.Case)))
	}
	return []any{r.open(of, what), r.open(fileTypes().result, value(result))}
}

func openFile(r *run, a []any) any {
	rest, problem := r.content(use[*descriptor](r, a[0]), a[1].(uint64))
	return r.opened(fileTypes().bytes, &available{rest}, problem)
}

func listDirectory(r *run, a []any) any {
	d, entries := use[*descriptor](r, a[0]), []any{}
	if !d.node().IsDirectory() {
		return r.opened(fileTypes().entries, &available{entries}, fileError("not-directory"))
	}
	for _, n := range d.node().Children() {
		if !n.Host {
			entries = append(entries, []any{asyncTypeOf(n), n.Name})
		}
	}
	return r.opened(fileTypes().entries, &available{entries}, nil)
}

// refuseWrites takes a stream for a file, and refuses it.
func refuseWrites(r *run, a []any) any {
	use[*descriptor](r, a[0])
	r.connect(r.pass(a[1], fileTypes().bytes), closedReader{})
	return r.open(fileTypes().result, value(fail(asyncFileCode(fileError("read-only").Value.(canon.Case)))))
}

// closedReader reads nothing.
type closedReader struct{}

func (closedReader) accept(*run, any) bool { return false }
func (closedReader) close()                {}

// refused is the function of sockets that fails: its result is the first error code.
var refused = constant(fail(canon.Case{}))
