package hostabi_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/deadline"
)

// FuzzHostCall lets a guest with any memory call any functions with any
// numbers: no call may panic, return an invalid result, or write outside of
// the buffer that the guest offered.
func FuzzHostCall(f *testing.F) {
	f.Add([]byte("apiKeys.create{\"scope\":\"read_only\"}"), []byte("\x0c\x00\x00\x00\x00\x0e\x00\x00\x00\x0e\x00\x00\x00\x15\x00\x00\x00"))
	f.Add([]byte("query{\"from\":\"Thing\",\"where\":[[\"n\",\"=\",1]]}"),
		[]byte("\x0c\x00\x00\x00\x00\x05\x00\x00\x00\x05\x00\x00\x00\x26\x00\x00\x00\x0b\xc8\x00\x00\x00\x01\x00\x00\x00"))
	f.Add([]byte("insert{\"into\":\"Thing\",\"values\":[{},{}]}"),
		[]byte("\x0c\x00\x00\x00\x00\x06\x00\x00\x00\x06\x00\x00\x00\x21\x00\x00\x00\x0b\xc8\x00\x00\x00\x02\x00\x00\x00"))
	f.Add([]byte("digest{\"algorithm\":\"SHA-256\",\"data\":\"x\"}"),
		[]byte("\x0e\x00\x00\x00\x00\x06\x00\x00\x00\x06\x00\x00\x00\x22\x00\x00\x00\x0f\x10\x00\x00\x00\x00\x0d\x00\x00\x00\x00\x00\x01\x00\x00\x40\x00\x00\x00"))
	f.Add([]byte("fetch{\"url\":\"https://a.example\",\"headers\":[[\"a\",\"b\"]],\"timeout\":1}"),
		[]byte("\x0e\x00\x00\x00\x00\x05\x00\x00\x00\x05\x00\x00\x00\x42\x00\x00\x00\x0f\x10\x00\x00\x00\x00"))
	f.Add([]byte("sleep{\"seconds\":0.001}"), []byte("\x0e\x00\x00\x00\x00\x05\x00\x00\x00\x05\x00\x00\x00\x11\x00\x00\x00\x0f\x0f"))
	f.Add([]byte("content-type"), []byte("\x04\x00\x00\x00\x00\x0c\x00\x00\x00\x00\x01\x00\x00\x40\x00\x00\x00"))
	f.Add([]byte("\xff"), []byte("\x05\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"))
	g := newGuest(f, hostabi.Limits{})
	table := abi.Functions()
	memory := g.module.Memory()
	f.Fuzz(func(t *testing.T, content, calls []byte) {
		g.t = t
		deadline := deadline.New(context.Background(), time.Now().Add(time.Second)) // some calls wait
		defer deadline.Stop()
		defer func() {
			if r := recover(); r != nil && r != hostabi.ErrTimeOver {
				panic(r)
			}
			g.call.End()
		}()
		g.call.Context = deadline
		g.call.Begin()
		g.log.Reset()
		all, _ := memory.Read(0, memoryBytes)
		clear(all)
		copy(all, content)
		for len(calls) > 0 {
			fn := table[int(calls[0])%len(table)]
			calls = calls[1:]
			words := make([]uint32, fn.Words())
			for i := range words {
				var word [4]byte
				calls = calls[copy(word[:], calls):]
				words[i] = binary.LittleEndian.Uint32(word[:])
			}
			before := string(all)
			answered := g.call.Response.Status
			n := g.raw(fn.Name, words...)
			if n < int32(abi.Internal) {
				t.Fatalf("%s%v returns %d", fn.Name, words, n)
			}
			if s := g.call.Response.Status; s != answered && (answered != 0 || n != 0 || s < 200 || s > 599) {
				t.Fatalf("%s%v returns %d and turned the status %d into %d", fn.Name, words, n, answered, s)
			}
			// The room, when there is one, is the last two words.
			from, to := uint64(memoryBytes), uint64(memoryBytes)
			if last := len(fn.Params) - 1; last >= 0 && fn.Params[last].Kind == abi.Buffer && n >= 0 {
				from = uint64(words[len(words)-2])
				to = from + uint64(words[len(words)-1])
			}
			if words := min(from, memoryBytes); string(all[:words]) != before[:words] {
				t.Fatalf("%s wrote before the room at %d", fn.Name, from)
			}
			if to < memoryBytes && string(all[to:]) != before[to:] {
				t.Fatalf("%s wrote past the room at %d", fn.Name, from)
			}
		}
	})
}
