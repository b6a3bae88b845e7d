package wasi

import (
	"math"
	"slices"
	"sync"
	"time"

	"runner.example/internal/component"
	"runner.example/internal/component/canon"
)

// pipe is a stream of WASI 0.3, or a future, which is a stream of one value. The guest or the host has each end.
type pipe struct {
	of             *payload
	reader, writer *end     // the ends that are in the guest's table; nil: the host has the end, or it was dropped
	producer       producer // the host writes; nil: the guest does
	consumer       consumer // the host reads; nil: the guest does, or no reader is known yet
	unread         bool     // the readable end was dropped
	ended          bool     // the writable end was dropped
}

// payload is the type of a stream or future, with its elements.
type payload struct {
	*component.ValueType
	number int // among Host.Payloads
}

// payloads are the types of all streams and futures that interfaces pass.
var payloads = sync.OnceValue(func() (all []*payload) {
	for n, t := range host().Payloads() {
		all = append(all, &payload{t, n})
	}
	return all
})

// payloadOf is the type of a stream or future that a function of World has.
func payloadOf(t *component.ValueType) *payload {
	n, err := host().Payload(t)
	if err != nil {
		panic("BUG: a stream or future of an interface " + err.Error())
	}
	return payloads()[n]
}

// future reports whether it is the type of a future.
func (p *payload) future() bool { return p.Kind == component.Future }

// bytes reports whether elements are bytes.
func (p *payload) bytes() bool { return p.Element.Kind == component.U8 }

// numbers reports whether elements may be passed within a component: the canonical ABI permits only numbers.
func (p *payload) numbers() bool { return p.Element.Kind < component.Char }

// producer is the host as the writer of a pipe.
type producer interface {
	// ready is as that of pollable.
	ready(now time.Time) (bool, time.Duration)
	// read returns the next elements, n at most, as a list of package canon. The list is empty at the end.
	read(r *run, n uint32) any
	// drop is called when no more will be read.
	drop()
}

// consumer is the host as the reader of a pipe.
type consumer interface {
	// accept gets the next elements, and reports whether it accepts more. Bytes are valid until it returns.
	accept(r *run, elements any) bool
	// close is called after the last elements.
	close()
}

// end is an end of a pipe that the guest has.
type end struct {
	pipe     *pipe
	writable bool
	member
	busy      bool   // an operation is in progress, or the guest has not got its result
	complete  bool   // the operation is complete
	result    uint32 // of the operation
	at, count uint32 // the buffer in the guest's memory
	done      uint32 // elements of the buffer that were copied
	closed    bool   // no operation may follow
}

func (e *end) kind() string {
	switch {
	case e.pipe.of.future() && e.writable:
		return "the writable end of a future"
	case e.pipe.of.future():
		return "the readable end of a future"
	case e.writable:
		return "the writable end of a stream"
	}
	return "the readable end of a stream"
}

// The results of an operation on an end. For streams, the number of elements is in the bits from 4 on.
const (
	copyCompleted = iota
	copyDropped
	copyCancelled
	copyBlocked = math.MaxUint32 // instead of a result: the operation is in progress
)

// end returns the end of a pipe that a handle stands for.
func (r *run) end(handle uint32, of *payload, writable bool) *end {
	kind := (&end{pipe: &pipe{of: of}, writable: writable}).kind()
	e := r.entry(handle, kind).resource.(*end)
	if e.pipe.of != of {
		r.call.Trap("handle %d is %s of another type", handle, kind)
	}
	return e
}

// open adds the readable end of a pipe that the host writes, and returns its handle.
func (r *run) open(of *payload, from producer) uint32 {
	return r.addReader(&pipe{of: of, producer: from})
}

func (r *run) addReader(p *pipe) uint32 {
	p.reader = &end{pipe: p}
	return r.add(p.reader, 0)
}

// pass takes a readable end out of the guest's table, and returns its pipe: the guest passes it to the host.
func (r *run) pass(handle any, of *payload) *pipe {
	h := handle.(uint32)
	e := r.end(h, of, false)
	if e.busy || e.closed {
		r.call.Trap("%s of handle %d cannot be passed on: it is in use, or was read to its end", e.kind(), h)
	}
	r.dropWaitable(h, e.kind())
	e.pipe.reader = nil
	return e.pipe
}

// connect makes the host the reader of a pipe: it reads what is there, and what will be written.
func (r *run) connect(p *pipe, to consumer) {
	p.consumer = to
	switch {
	case p.producer != nil:
		r.drain(p)
	case p.ended:
		to.close()
	case p.writer != nil && p.writer.busy:
		r.advance(p.writer)
	}
}

// drain reads what the host has written. It does not wait for more.
func (r *run) drain(p *pipe) {
	for more := true; more; {
		if more, _ = p.producer.ready(r.call.Mark()); more {
			elements := p.producer.read(r, maxRead)
			r.call.CountMoved(int(lengthOf(elements)))
			more = lengthOf(elements) > 0 && p.consumer.accept(r, elements) && !p.of.future()
		}
	}
	p.producer.drop()
	p.consumer.close()
}

func lengthOf(elements any) uint32 {
	if b, ok := elements.([]byte); ok {
		return uint32(len(b))
	}
	return uint32(len(elements.([]any)))
}

// pipeFunction is a built-in for a type of streams or futures. Its arguments and its result are core values.
type pipeFunction func(r *run, of *payload, core []uint64)

// newPipe is stream.new and future.new. The result has the readable end in its lower half.
func newPipe(r *run, of *payload, core []uint64) {
	p := &pipe{of: of}
	reader := r.addReader(p)
	p.writer = &end{pipe: p, writable: true}
	core[0] = uint64(reader) | uint64(r.add(p.writer, 0))<<32
}

// copying returns stream.read, stream.write, future.read or future.write.
func copying(writable, async bool) pipeFunction {
	return func(r *run, of *payload, core []uint64) {
		e, count := r.end(uint32(core[0]), of, writable), uint32(1)
		if !of.future() {
			count = uint32(core[2])
		}
		r.startCopy(e, uint32(core[1]), count)
		if complete, _ := r.advance(e); !complete && async {
			core[0] = copyBlocked
			return
		}
		r.block([]waitable{e})
		_, result := e.event(r)
		core[0] = uint64(result)
	}
}

// startCopy begins an operation.
func (r *run) startCopy(e *end, at, count uint32) {
	switch size := uint64(count) * uint64(e.pipe.of.Element.Size()); {
	case e.busy || e.closed:
		r.call.Trap("%s is in use, or was used to its end", e.kind())
	case count > 1<<28-1:
		r.call.Trap("%s: a buffer of %d elements", e.kind(), count)
	case at&(e.pipe.of.Element.Align()-1) != 0 || uint64(at)+size > uint64(r.memory.Size()):
		r.call.Trap("%s: its buffer of %d bytes at %#x is not aligned, or is outside of memory", e.kind(), size, at)
	}
	e.busy, e.complete, e.result = true, false, copyCompleted
	e.at, e.count, e.done = at, count, 0
}

// finish completes an operation.
func (e *end) finish(result uint32) { e.complete, e.result = true, result }

// advance copies what can be copied now. It reports whether the operation is complete. If not, it returns the time
// after which to ask again, as ready of pollable does.
func (r *run) advance(e *end) (bool, time.Duration) {
	p := e.pipe
	switch {
	case e.complete:
	case e.writable && p.consumer != nil:
		r.toHost(e)
	case e.writable && p.unread:
		e.finish(copyDropped)
	case !e.writable && p.producer != nil:
		return p.producer.ready(r.call.Mark()) // the guest gets it when it asks for the result
	case !e.writable && p.ended:
		e.finish(copyDropped)
	case p.reader != nil && p.writer != nil && p.reader.busy && p.writer.busy:
		r.copyWithin(p)
	}
	return e.complete, never
}

// copyWithin copies from one end to the other, if the guest has both.
func (r *run) copyWithin(p *pipe) {
	if !p.of.numbers() {
		r.call.Trap("a component writes a %s to itself: only numbers can be", p.of)
	}
	from, to, size := p.writer, p.reader, p.of.Element.Size()
	n := min(from.count-from.done, to.count-to.done)
	memory := whole(r.memory)
	r.call.CountMoved(int(n * size))
	copy(memory[to.at+to.done*size:][:n*size], memory[from.at+from.done*size:])
	from.done, to.done = from.done+n, to.done+n
	if n > 0 || from.count == 0 {
		from.finish(copyCompleted)
	}
	if n > 0 || to.count == 0 && from.done < from.count { // a read of nothing waits for something to read
		to.finish(copyCompleted)
	}
}

// toHost passes what is in the guest's buffer to the consumer.
func (r *run) toHost(e *end) {
	of := e.pipe.of
	var elements any
	if of.bytes() {
		elements = whole(r.memory)[e.at:][:e.count]
		r.call.CountMoved(int(e.count))
	} else {
		r.call.CountMoved(int(e.count) * 16) // the memory that Go needs for each element
		lifter := canon.Lifter{Memory: whole(r.memory), Budget: r.call.MovedLeft()}
		all := make([]any, e.count)
		for i := range all {
			v, err := lifter.Load(of.Element, e.at+uint32(i)*of.Element.Size())
			if err != nil {
				r.call.Trap("%s: %v", e.kind(), err)
			}
			all[i] = v
		}
		r.call.CountMoved(r.call.MovedLeft() - lifter.Budget)
		elements = all
	}
	if !e.pipe.consumer.accept(r, elements) {
		e.pipe.consumer, e.pipe.unread = nil, true
		e.finish(copyDropped)
		return
	}
	e.done = e.count
	e.finish(copyCompleted)
}

// fromHost writes elements of the producer to the guest's buffer.
func (r *run) fromHost(e *end) {
	of := e.pipe.of
	elements := e.pipe.producer.read(r, e.count)
	if e.done = lengthOf(elements); e.done == 0 && e.count > 0 {
		e.finish(copyDropped)
		return
	}
	e.finish(copyCompleted)
	if b, ok := elements.([]byte); ok {
		r.call.CountMoved(len(b))
		copy(whole(r.memory)[e.at:], b)
		return
	}
	list, err := component.New(component.ValueType{Kind: component.FixedList, Element: of.Element, Length: max(1, e.done)})
	if err != nil {
		panic("BUG: the elements of a " + of.String() + ": " + err.Error())
	}
	if e.done > 0 {
		r.write(e.kind(), list, e.at, elements, true)
	}
}

// ready implements waitable.
func (e *end) ready(r *run, _ time.Time) (bool, time.Duration) {
	if !e.busy {
		return false, never
	}
	return r.advance(e)
}

// event implements waitable. It ends the operation: the guest gets the result.
func (e *end) event(r *run) (code, number uint32) {
	if !e.complete {
		r.fromHost(e)
	}
	return e.end()
}

// end ends an operation that is complete. It returns the code of its event, and the result.
func (e *end) end() (code, number uint32) {
	code, number = eventStreamRead, e.result|e.done<<4
	if e.pipe.of.future() {
		code, number = eventFutureRead, e.result
	}
	if e.writable {
		code++
	}
	e.busy = false
	e.closed = e.result == copyDropped || e.pipe.of.future() && e.result == copyCompleted
	return code, number
}

// cancelling returns stream.cancel-read, stream.cancel-write, future.cancel-read or future.cancel-write.
func cancelling(writable bool) pipeFunction {
	return func(r *run, of *payload, core []uint64) {
		e := r.end(uint32(core[0]), of, writable)
		if !e.busy {
			r.call.Trap("%s has no operation in progress", e.kind())
		}
		if !e.complete {
			e.finish(copyCancelled)
		}
		_, number := e.end()
		core[0] = uint64(number)
	}
}

// dropping returns stream.drop-readable, stream.drop-writable, future.drop-readable or future.drop-writable.
func dropping(writable bool) pipeFunction {
	return func(r *run, of *payload, core []uint64) {
		h := uint32(core[0])
		e := r.end(h, of, writable)
		p := e.pipe
		switch {
		case e.busy:
			r.call.Trap("%s is dropped while an operation is in progress", e.kind())
		case writable && of.future() && !e.closed:
			r.call.Trap("%s is dropped, and no value was written", e.kind())
		}
		r.dropWaitable(h, e.kind())
		switch {
		case writable && p.consumer != nil:
			p.writer, p.ended = nil, true
			p.consumer.close()
		case writable:
			p.writer, p.ended = nil, true
		default:
			p.reader = nil
			p.stop()
		}
	}
}

// stop ends a pipe that will not be read any more.
func (p *pipe) stop() {
	if p.producer != nil {
		p.producer.drop()
	}
	p.consumer, p.unread = nil, true
}

// available is a producer of elements that already exist: bytes, or a list.
type available struct{ rest any }

func (*available) ready(time.Time) (bool, time.Duration) { return true, 0 }

func (t *available) read(_ *run, n uint32) (next any) {
	if b, ok := t.rest.([]byte); ok {
		n = min(n, uint32(len(b)))
		next, t.rest = b[:n], b[n:]
		return next
	}
	all := t.rest.([]any)
	n = min(n, uint32(len(all)))
	next, t.rest = all[:n], all[n:]
	return slices.Clip(next.([]any))
}

func (*available) drop() {}

// value is the producer of a future whose value already exists.
func value(v any) producer { return &available{[]any{v}} }

// later is a value that may not be ready yet: the result of an async function, or the value of a future.
type later interface {
	// ready is as that of pollable.
	ready(now time.Time) (bool, time.Duration)
	// value returns it when it is ready, once.
	value(r *run) any
	// drop is called when the value was taken, or is no longer needed.
	drop()
}

// promise is a later as the producer of a future.
type promise struct {
	later
	taken bool
}

func (p *promise) read(r *run, n uint32) any {
	if p.taken || n == 0 {
		return []any{}
	}
	p.taken = true
	return []any{p.later.value(r)}
}
