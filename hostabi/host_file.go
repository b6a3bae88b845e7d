package hostabi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runner.example/hostabi/abi"
)

// The file /runner/host calls the host, for programs that cannot import its functions. A program writes a
// message and reads its answer:
//
//	query 26⏎{"from":"Order","limit":3}         →  ok 61⏎{"rows":[…],"nextCursor":null}
//	response_send 200 5⏎hello                   →  ok 1⏎0
//	get 17⏎{"from":"Orders"}                    →  invalid 78⏎{"code":"invalid","message":"…"}
//
// A message is the name of a function of the module "runner" or of an operation of call, the function's
// numbers, the length of what follows the line, and that: the function's texts, with a line end between two
// of them, or the operation's arguments. An answer is "ok" or an errno, and the length of what follows the
// line: what the function writes to its buffer, else its result as a decimal number; the result of an
// operation; or the error of call. A message runs the same code as an imported function of that name, with
// the same checks and limits.

// HostFile is the path of the file.
const HostFile = "runner/host"

// maxHead is the longest first line of a message.
const maxHead = 256

// hostMessages is what was written to the file and not yet called, and what was not yet read.
type hostMessages struct {
	in, out []byte
	read    int    // bytes of out
	memory  []byte // of the message that is called
}

// maxUnread is how many bytes of answers may be unread when another message is written. A program that writes
// and never reads is ended, because a message of few bytes can have a long answer.
const maxUnread = 8 << 20

// messageUnits is the work of a message, beside what its function does.
const messageUnits = 500

// keptMessages is the largest buffer that a Call keeps between runs.
const keptMessages = 64 << 10

func (h *hostMessages) reset() {
	h.in, h.out, h.read = h.in[:0], h.out[:0], 0
	if cap(h.in) > keptMessages || cap(h.out) > keptMessages || cap(h.memory) > keptMessages {
		*h = hostMessages{}
	}
}

// idle returns what a program must do before it waits, whose requests begin without messages and answers.
func (h *hostMessages) idle() error {
	switch {
	case len(h.in) > 0:
		return fmt.Errorf("request_next: a message in /%s is not complete: write all of it before", HostFile)
	case len(h.out) > h.read:
		return fmt.Errorf("request_next: an answer in /%s is not read: read it before", HostFile)
	}
	return nil
}

// readAnswer reads the next bytes of the answers. There are none before a message is complete.
func (h *hostMessages) readAnswer(c *Call, g guest) uint32 {
	read, errno := c.place(g, h.out[h.read:], maxFilePart)
	if errno != wasiOK {
		return errno
	}
	c.countMoved(read) // an answer that is there can be read
	h.read += read
	if h.read >= len(h.out)/2 { // also if the program never reads all
		h.out, h.read = h.out[:copy(h.out, h.out[h.read:])], 0
	}
	return errnoOf(g.put32(3, uint32(read)))
}

// write adds to the message, and calls what it names as soon as it is complete.
func (h *hostMessages) write(c *Call, part []byte) {
	h.in = append(h.in, part...)
	done := 0
	for {
		n := h.next(c, h.in[done:])
		if len(h.in) == 0 {
			return // it was refused
		}
		if n == 0 {
			break
		}
		done += n
	}
	h.in = h.in[:copy(h.in, h.in[done:])] // once, because there may be many messages
}

// next calls the message that text begins with, and returns its length; 0: it is not complete, or refused.
func (h *hostMessages) next(c *Call, text []byte) int {
	if unread := len(h.out) - h.read; unread > maxUnread && len(text) > 0 {
		c.unwind(fmt.Errorf("the program has not read %d bytes of answers in /%s: read each answer", unread, HostFile))
	}
	end := bytes.IndexByte(text[:min(len(text), maxHead)], '\n')
	if end < 0 {
		if len(text) >= maxHead {
			h.refuse("a message's first line is longer than %d bytes", maxHead)
		}
		return 0
	}
	words := strings.Fields(string(text[:end]))
	numbers := make([]int32, max(0, len(words)-1))
	for i := range numbers {
		n, err := strconv.ParseInt(words[i+1], 10, 32)
		if err != nil {
			h.refuse("%.60q in a message's first line is not a number", words[i+1])
			return 0
		}
		numbers[i] = int32(n)
	}
	if len(numbers) == 0 || numbers[len(numbers)-1] < 0 {
		h.refuse("a message's first line %.60q does not end with the length of what follows", text[:end])
		return 0
	}
	length := int(numbers[len(numbers)-1])
	if length > maxRowBytes+maxOpBytes {
		h.refuse("a message has %d bytes, the limit is %d", length, maxRowBytes+maxOpBytes)
		return 0
	}
	if len(text) < end+1+length {
		return 0
	}
	_ = c.work.Spend(messageUnits)
	c.checkWork()
	whole, rest := text[:end+1+length], text[end+1+length:]
	if c.streaming {
		c.refill() // before the bytes are counted
	}
	before, moved, second := len(h.out), c.moved, c.second
	c.moved -= len(whole) // it was counted when it was written, and the function counts it again
	h.call(c, words[0], numbers[:len(numbers)-1], whole[end+1:], len(rest))
	if c.streaming && words[0] == "response_write" {
		moved -= len(whole) // no more than it counts for other guests
	}
	if words[0] == "request_read" {
		moved -= len(whole) + len(h.out) - before
	}
	if c.moved <= c.limits.MovedBytes && c.second == second {
		c.moved = moved // the answer is counted when it is read
	}
	if c.Host.Messages != nil {
		c.Host.Messages(whole, h.out[before:])
	}
	return len(whole)
}

// refuse answers a message that is not valid, and discards all bytes that were written.
func (h *hostMessages) refuse(format string, args ...any) {
	h.in = h.in[:0]
	text := fmt.Sprintf(format, args...)
	h.answer(abi.Invalid, []byte(`{"code":"invalid","message":`+strconv.Quote(text)+`}`))
}

func (h *hostMessages) answer(errno abi.Errno, body []byte) {
	status := "ok"
	if errno < 0 {
		status = errno.String()
	}
	h.out = append(h.out, status...)
	h.out = strconv.AppendInt(append(h.out, ' '), int64(len(body)), 10)
	h.out = append(append(h.out, '\n'), body...)
}

// call calls a function or an operation. rest is how much was written behind the message.
func (h *hostMessages) call(c *Call, name string, numbers []int32, payload []byte, rest int) {
	f, known := byName[name]
	if !known { // an operation, or none: call says so
		memory := messageMemory(append([]byte(name), payload...))
		g := guest{memory, []uint64{0, uint64(len(name)), uint64(len(name)), uint64(len(payload))}}
		result := abi.Errno(byName["call"].run(c.guest, c, g, true))
		if result >= 0 && c.moved+len(c.result.JSON) > c.limits.MovedBytes { // as when call_result reads it
			c.countMoved(len(c.result.JSON))
			c.fail("", errMoved)
			result = abi.Limit
		}
		h.answer(min(result, 0), c.result.JSON)
		return
	}
	if name == "request_next" && (rest > 0 || len(h.out) > h.read) {
		h.refuse("request_next must be the only message: read the answers of others before")
		return
	}
	words, memory, buffer, problem := h.arguments(f.Function, numbers, payload)
	if problem != "" {
		h.refuse("%s: %s", name, problem)
		return
	}
	if f.Name == "request_body" && c.Request != nil {
		if body, _ := c.WholeBody(); len(body) > len(memory)-buffer {
			memory = slices.Grow(memory, len(body))[:buffer+len(body)]
			words[len(words)-1] = uint64(len(body))
		}
	}
	h.memory = memory
	result := f.run(c.guest, c, guest{messageMemory(memory), words}, f.timed)
	switch {
	case result < 0 && f.reports:
		h.answer(abi.Errno(result), c.result.JSON)
	case result < 0:
		h.answer(abi.Errno(result), nil)
	case f.reports && f.Name != "call_start" && f.Name != "call_wait":
		h.answer(0, c.result.JSON)
	case buffer < 0:
		h.answer(0, strconv.AppendInt(nil, int64(result), 10))
	case int(result) > len(memory)-buffer && f.Name != "request_body":
		h.answer(abi.TooLarge, nil)
	default:
		h.answer(0, memory[buffer:][:min(int(result), len(memory)-buffer)])
	}
}

// arguments puts the numbers and texts of a function into words, and the texts into memory. buffer is where the
// function's buffer begins there, -1 if it has none. problem says what is wrong with the message.
func (h *hostMessages) arguments(f abi.Function, numbers []int32, payload []byte) (
	words []uint64, memory []byte, buffer int, problem string) {
	texts := 0
	for _, p := range f.Params {
		if p.Kind == abi.Text || p.Kind == abi.Bytes {
			texts++
		}
	}
	memory, buffer = append(h.memory[:0], payload...), -1
	at := 0
	for _, p := range f.Params {
		switch p.Kind {
		case abi.Number:
			if len(numbers) == 0 {
				return nil, nil, 0, "a number is missing: " + p.Name
			}
			words = append(words, uint64(uint32(numbers[0])))
			numbers = numbers[1:]
		case abi.Buffer:
			buffer = len(memory)
			memory = slices.Grow(memory, bufferBytes)[:buffer+bufferBytes]
			words = append(words, uint64(buffer), bufferBytes)
		default:
			end := len(payload)
			if texts--; texts > 0 {
				n := bytes.IndexByte(payload[at:], '\n')
				if n < 0 {
					return nil, nil, 0, "a line end is missing after " + p.Name
				}
				end = at + n
			}
			words = append(words, uint64(at), uint64(end-at))
			at = min(end+1, len(payload))
		}
	}
	switch {
	case len(numbers) > 0:
		return nil, nil, 0, "it has too many numbers"
	case at < len(payload) && texts == 0 && !hasText(f):
		return nil, nil, 0, "nothing may follow the first line"
	}
	return words, memory, buffer, ""
}

func hasText(f abi.Function) bool {
	return slices.ContainsFunc(f.Params, func(p abi.Param) bool { return p.Kind == abi.Text || p.Kind == abi.Bytes })
}

// bufferBytes is the size of the buffer for what a function writes. Only request_body writes more.
const bufferBytes = 64 << 10

// messageMemory is the memory that the arguments of a message point to.
type messageMemory []byte

func (b messageMemory) Read(offset, n uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(n)
	if end > uint64(len(b)) {
		return nil, false
	}
	return b[offset:end:end], true
}

func (b messageMemory) ReadUint64Le(offset uint32) (uint64, bool) {
	at, ok := b.Read(offset, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(at), true
}

func (b messageMemory) WriteUint32Le(offset, v uint32) bool {
	at, ok := b.Read(offset, 4)
	if ok {
		binary.LittleEndian.PutUint32(at, v)
	}
	return ok
}

func (b messageMemory) WriteUint64Le(offset uint32, v uint64) bool {
	at, ok := b.Read(offset, 8)
	if ok {
		binary.LittleEndian.PutUint64(at, v)
	}
	return ok
}
