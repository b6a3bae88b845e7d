;; Handlers that dirty their sandbox in every way there is, and handlers that
;; tell what they find in it.
(module
  (import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
  (import "runner" "request_method" (func $method (param i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 4)
  (global $g32 (mut i32) (i32.const 0x11))
  (global $g64 (mut i64) (i64.const 0x22))
  (global $f32 (mut f32) (f32.const 1.5))
  (global $f64 (mut f64) (f64.const -0.0))
  (global $seed (mut i64) (i64.const 0))
  (data (i32.const 1024) "initial content")

  ;; init leaves marks in memory and globals, and a bigger memory
  (func (export "_initialize")
    (i32.store (i32.const 200000) (i32.const 0x600d))
    (global.set $g64 (i64.const 0x33))
    (drop (memory.grow (i32.const 2))))
  ;; a random state as languages have it
  (func (export "runner_reseed")
    (drop (call $random (i32.const 64) (i32.const 8)))
    (global.set $seed (i64.load (i32.const 64))))

  ;; smear writes the request's body over the memory in steps, and the globals
  (func $smear (local $at i32)
    (global.set $g32 (i32.const 0x7ead))
    (global.set $g64 (i64.const 0x7ead))
    (global.set $f32 (f32.const 3.5))
    (global.set $f64 (f64.const 2.5))
    (loop
      (drop (call $body (i32.const 0) (local.get $at) (i32.const 64)))
      (local.set $at (i32.add (local.get $at) (i32.const 7919)))
      (br_if 0 (i32.lt_u (local.get $at) (i32.const 390000)))))
  (func $answer (drop (call $send (i32.const 200) (i32.const 1024) (i32.const 15))))

  (func (export "normal") (call $smear) (call $answer))
  (func (export "trap") (call $smear) unreachable)
  (func (export "outOfBounds") (call $smear) (drop (i32.load (i32.const -8))))
  (func (export "spin") (call $smear) (loop (br 0)))
  (func (export "leave") (call $smear) (call $answer) (call $exit (i32.const 0)))
  (func (export "fail") (call $smear) (call $exit (i32.const 9)))

  ;; grown memory, written to from end to end
  (func $grow (param $pages i32) (local $at i32) (local $end i32)
    (local.set $at (i32.shl (memory.size) (i32.const 16)))
    (if (i32.eq (memory.grow (local.get $pages)) (i32.const -1)) (then unreachable))
    (local.set $end (i32.shl (memory.size) (i32.const 16)))
    (memory.fill (local.get $at) (i32.const 0x5a) (i32.sub (local.get $end) (local.get $at))))
  (func (export "growSome") (call $smear) (call $grow (i32.const 3)) (call $answer))
  ;; more than a sandbox keeps
  (func (export "growMuch") (call $smear) (call $grow (i32.const 100)) (call $answer))
  (func (export "outOfMemory") (call $smear)
    (loop (call $grow (i32.const 16)) (br 0)))
  (func (export "growAndTrap") (call $grow (i32.const 1)) unreachable)

  (func $deep (param i32) (result i32)
    (i32.store (i32.shl (i32.and (local.get 0) (i32.const 0xffff)) (i32.const 2)) (local.get 0))
    (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func (export "stack") (call $smear) (drop (call $deep (i32.const 0))))
  ;; deep, but not too deep
  (func $down (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $down (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 0))))
  (func (export "deep") (drop (call $down (i32.const 10000))) (call $answer))

  ;; a call tree without a loop
  (func $tree (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (call $tree (i32.sub (local.get 0) (i32.const 1))) (call $tree (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 1))))
  (func (export "tree") (drop (call $tree (i32.const 60))))
  ;; recursion that goes deep again and again, without a loop
  (func $dive (param i32)
    (if (i32.eqz (local.get 0)) (then (return)))
    (drop (call $down (i32.const 5000)))
    (call $dive (i32.sub (local.get 0) (i32.const 1)))
    (call $dive (i32.sub (local.get 0) (i32.const 1))))
  (func (export "dive") (call $dive (i32.const 60)))

  ;; dump answers with all the memory there is, and behind it the globals
  (func (export "dump") (local $end i32)
    (local.set $end (i32.shl (memory.size) (i32.const 16)))
    (global.set $seed (i64.const 0))
    (i64.store (i32.const 64) (i64.const 0))
    (drop (memory.grow (i32.const 4)))
    (i32.store (i32.add (local.get $end) (i32.const 196608)) (global.get $g32))
    (i64.store (i32.add (local.get $end) (i32.const 196616)) (global.get $g64))
    (f32.store (i32.add (local.get $end) (i32.const 196624)) (global.get $f32))
    (f64.store (i32.add (local.get $end) (i32.const 196632)) (global.get $f64))
    (drop (call $send (i32.const 200) (i32.const 0) (i32.add (local.get $end) (i32.const 196640)))))

  ;; seed answers with the random state that the request began with
  (func (export "seed")
    (i64.store (i32.const 64) (global.get $seed))
    (drop (call $send (i32.const 200) (i32.const 64) (i32.const 8))))

  ;; counted makes as many loop passes as the body's number says
  (func (export "counted") (local $n i32)
    (drop (call $body (i32.const 0) (i32.const 64) (i32.const 4)))
    (local.set $n (i32.load (i32.const 64)))
    (loop
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if 0 (local.get $n)))
    (call $answer))
  (func (export "hello") (call $answer))
  (func (export "loop") (loop (br 0)))
  ;; a loop whose one pass costs as much as the guest may ever fill
  (func (export "fill")
    (loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 262144)) (br 0)))

  ;; nap sleeps 5 s: a subscription to the clock 1 (monotonic) of 5e9 ns
  (func $nap
    (i32.store (i32.const 2064) (i32.const 1))
    (i64.store (i32.const 2072) (i64.const 5000000000))
    (drop (call $poll (i32.const 2048) (i32.const 2200) (i32.const 1) (i32.const 2300))))
  (func (export "sleep") (call $nap) (call $answer))
  (func (export "growAndSleep") (call $grow (i32.const 100)) (call $nap) (call $answer))
  ;; hostPanic makes the host fail, if it has no logger
  (func (export "hostPanic") (call $smear) (call $log (i32.const 1) (i32.const 1024) (i32.const 4))))
