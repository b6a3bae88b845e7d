package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/runtime/sandbox"
)

// A module that reports where it was stopped gets four pages beyond its limit, for its error: after it was
// refused memory twice, and not before. Another module never gets them.
func TestSpareMemoryIsForRunsThatWereRefusedMemoryTwice(t *testing.T) {
	const limit, first = 16, 2 // pages
	// grow grows by some pages at a time, 24 times, and answers with the results.
	module := func(reports string) []byte {
		return assembleText(t, `(module
			(import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
			(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
			(memory (export "memory") 2)
			`+reports+`
			(func (export "grow") (local $at i32)
				(drop (call $body (i32.const 0) (i32.const 0) (i32.const 4)))
				(loop
					(i32.store (i32.add (i32.const 1024) (local.get $at)) (memory.grow (i32.load (i32.const 0))))
					(br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (i32.const 96))))
				(drop (call $send (i32.const 200) (i32.const 1024) (i32.const 96)))))`)
	}
	for name, row := range map[string]struct {
		wasm []byte
		by   uint32
		want []int32 // memory.grow: the pages before, or -1; then -1
	}{
		"by a page": {module(`(func (export "runner_stopped"))`), 1,
			[]int32{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1, -1, 16, 17, 18, 19}},
		"by five pages":                {module(`(func (export "runner_stopped"))`), 5, []int32{2, 7, -1, -1, 12}},
		"by all spare pages and more":  {module(`(func (export "runner_stopped"))`), limit + 5 - first, nil},
		"by all pages and spare pages": {module(`(func (export "runner_stopped"))`), limit + 4 - first, []int32{-1, -1, 2}},
		"without a report":             {module(""), 1, []int32{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
	} {
		e := newEngine(t, sandbox.Options{MemoryBytes: limit << 16})
		m := load(t, e, row.wasm)
		want := slices.Clone(row.want)
		for len(want) < 24 {
			want = append(want, -1)
		}
		before := e.GuestMemory()
		for run := range 3 { // each begins without a refusal
			call := newCall(context.Background(), new(bytes.Buffer))
			call.Request.Body = binary.LittleEndian.AppendUint32(nil, row.by)
			if err := m.Run(call, "grow"); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got []int32
			for b := call.Response.Body; len(b) > 0; b = b[4:] {
				got = append(got, int32(binary.LittleEndian.Uint32(b)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, run %d: memory.grow returns %v, want %v", name, run, got, want)
			}
			if after := e.GuestMemory(); after != before {
				t.Errorf("%s, run %d: %d bytes are in use, and %d were before", name, run, after, before)
			}
		}
	}
}

// grower grows its memory of one page by the pages in the first byte of the body, and writes to those pages of
// the kernel behind the image whose numbers follow.
const grower = `(module
	(import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
	(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
	(memory (export "memory") 1)
	(func (export "grow") (local $at i32) (local $end i32)
		(local.set $end (call $body (i32.const 0) (i32.const 0) (i32.const 1024)))
		(local.set $at (i32.const 1))
		(if (i32.eq (memory.grow (i32.load8_u (i32.const 0))) (i32.const -1)) (then unreachable))
		(block (loop
			(br_if 1 (i32.ge_u (local.get $at) (local.get $end)))
			(i32.store (i32.add (i32.const 65536) (i32.mul (i32.load8_u (local.get $at)) (i32.const 4096))) (i32.const 1))
			(local.set $at (i32.add (local.get $at) (i32.const 1)))
			(br 0)))
		(drop (call $send (i32.const 204) (i32.const 0) (i32.const 0)))))`

// A sandbox keeps the pages behind its image that were written, for its next run. They stay charged to it
// until they are released. A run is charged for the memory that it has, or for those pages, not for both.
func TestPrivatePagesBehindTheImageStayCharged(t *testing.T) {
	if os.Getpagesize() != 4096 {
		t.Skip("counts pages of 4 KiB")
	}
	const page, guestPage = 4096, 64 << 10
	wasm := assembleText(t, grower)
	for name, disabled := range map[string][]string{
		"watched": nil, "by the page table": {sandbox.OptWatch}, "without a count of faults": {sandbox.OptFaults}, "portable": {native},
	} {
		e := newEngine(t, sandbox.Options{MemoryBytes: 32 * guestPage, Disable: disabled})
		m := load(t, e, wasm)
		if err := m.Trim(); err != nil {
			t.Fatal(err)
		}
		image := e.GuestMemory() // with the sandbox of the size of the image
		for i, step := range []struct {
			body []byte
			want int64 // pages that are charged beyond the image
		}{
			{[]byte{3, 0, 5, 47}, 3},
			{[]byte{3, 0, 5, 47}, 3},
			{[]byte{3, 1}, 4}, // the pages before are still there
			{[]byte{0}, 4},    // also after a run without more memory
			{[]byte{0}, 4},
			{[]byte{1, 2, 3}, 6}, // these are all that were written, 0, 1, 2, 3, 5 and 47
			{[]byte{4, 63}, 7},
		} {
			call := newCall(context.Background(), new(bytes.Buffer))
			call.Request.Body = step.body
			if err := m.Run(call, "grow"); err != nil {
				t.Fatal(err)
			}
			if e.Portable() { // it releases them at once
				step.want = 0
			}
			if got := e.GuestMemory() - image; got != step.want*page {
				t.Errorf("%s, run %d with %d: %d bytes are charged beyond the image, want %d pages", name, i, step.body, got, step.want)
			}
		}
		if _, err := m.Restored(); err != nil { // only now, because it reads all pages
			t.Errorf("%s: %v", name, err)
		}
		if err := m.Trim(); err != nil {
			t.Fatal(err)
		}
		if got := e.GuestMemory() - image; got != 0 {
			t.Errorf("%s: %d bytes are charged after the pages were released", name, got)
		}
		if err := m.Close(context.Background()); err != nil || e.GuestMemory() != 0 {
			t.Errorf("%s: closed, the module takes %d bytes: %v", name, e.GuestMemory(), err)
		}
	}
}

// A guest with a large image is charged for the pages that it has written while it waits, and for all when it runs.
func TestAGuestThatWaitsIsChargedForItsWrittenPages(t *testing.T) {
	eachKind(t, testAGuestThatWaitsIsChargedForItsWrittenPages)
}

func testAGuestThatWaitsIsChargedForItsWrittenPages(t *testing.T, as kind) {
	const page = 4096
	wasm := as.text(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 32)
		(func $nap (param $written i32)
			(memory.fill (i32.const 4096) (i32.const 1) (i32.mul (local.get $written) (i32.const 4096)))
			(i32.store (i32.const 16) (i32.const 1))
			(i64.store (i32.const 24) (i64.const 5000000000))
			(drop (call $poll (i32.const 0) (i32.const 200) (i32.const 1) (i32.const 300))))
		(func $answer (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0))))
		(func (export "few") (call $nap (i32.const 20)) (call $nap (i32.const 30)) (call $answer))
		(func (export "all") (call $nap (i32.const 511)) (call $nap (i32.const 30)) (call $answer)))`)
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{})
		if !strings.Contains(e.Optimizations(), "watch true") {
			t.Skip("this kernel does not report written pages")
		}
		m := load(t, e, wasm)
		rest := e.GuestMemory() - 2<<20 // of the image
		for _, row := range []struct {
			handler string
			pages   [2]int64 // in each wait
		}{{"few", [2]int64{21, 31}}, {"all", [2]int64{512, 512}}} { // a page stays written
			done := make(chan error)
			go func() {
				_, err := within(t, plenty, m, row.handler)
				done <- err
			}()
			for i := range 2 {
				synctest.Wait()
				if now := e.GuestMemory() - rest; now != row.pages[i]*page {
					t.Errorf("%s: %d pages are charged in wait %d, want %d", row.handler, now/page, i+1, row.pages[i])
				}
				time.Sleep(5 * time.Second)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if now := e.GuestMemory() - rest; now != 2<<20 {
				t.Errorf("%s: %d bytes are charged after the run", row.handler, now)
			}
		}
	})
}
