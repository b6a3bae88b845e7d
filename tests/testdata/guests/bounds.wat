;; Handlers that use a certain amount of each resource that has a limit. They answer 200,
;; and trap when the resource is refused.
(module
  (import "runner" "request_method" (func $request_method (param i32 i32) (result i32)))
  (import "runner" "request_body" (func $request_body (param i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $response_send (param i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "apiKeys.list{}0123456789abcdef0123456789abcdef")
  (data (i32.const 64) "begun")

  (func $must (param i32) (if (i32.lt_s (local.get 0) (i32.const 0)) (then unreachable)))
  (func $ok (call $must (call $response_send (i32.const 200) (i32.const 0) (i32.const 0))))

  ;; pages: 24 more of memory
  (func $grow (call $must (memory.grow (i32.const 24))))
  (func (export "pages") (call $grow) (call $ok))

  ;; growAndNap: the same, and then a sleep of 1 s, which begins with a line in the log
  (func $sleep
    (call $log (i32.const 1) (i32.const 64) (i32.const 5))
    (i32.store (i32.const 2064) (i32.const 1))
    (i64.store (i32.const 2072) (i64.const 1000000000))
    (drop (call $poll (i32.const 2048) (i32.const 2200) (i32.const 1) (i32.const 2300))))
  (func (export "growAndNap") (call $grow) (call $sleep) (call $ok))
  (func (export "nap") (call $sleep) (call $ok))

  ;; fillAndNap: all memory that it can get, with each page written, and then the same sleep
  (func (export "fillAndNap")
    (loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))
    (memory.fill (i32.const 65536) (i32.const 7) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 65536)))
    (call $sleep)
    (call $ok))

  ;; work: a hundred million passes through a loop
  (func $loop (param $n i32)
    (loop
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if 0 (local.get $n))))
  (func (export "work") (call $loop (i32.const 100000000)) (call $ok))

  ;; shortWork: a tenth as many passes
  (func (export "shortWork") (call $loop (i32.const 10000000)) (call $ok))

  ;; longWork: a line in the log, and ten times as many passes
  (func (export "longWork")
    (call $log (i32.const 1) (i32.const 64) (i32.const 5))
    (call $loop (i32.const 1000000000))
    (call $ok))

  ;; calls: ten host calls
  (func (export "calls") (local $n i32)
    (local.set $n (i32.const 10))
    (loop
      (call $must (call $request_method (i32.const 1024) (i32.const 100)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if 0 (local.get $n)))
    (call $ok))

  ;; bytes: the body, four times
  (func (export "bytes") (local $n i32)
    (local.set $n (i32.const 4))
    (loop
      (call $must (call $request_body (i32.const 0) (i32.const 4096) (i32.const 32768)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if 0 (local.get $n)))
    (call $ok))

  ;; operations: three of the store
  (func (export "operations") (local $n i32)
    (local.set $n (i32.const 3))
    (loop
      (call $must (call $call (i32.const 0) (i32.const 12) (i32.const 12) (i32.const 2)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if 0 (local.get $n)))
    (call $ok))

  ;; answer: two thousand bytes
  (func (export "answer")
    (call $must (call $response_send (i32.const 200) (i32.const 0) (i32.const 2000))))

  ;; large: eight MiB; largeAndNap: the same, and then a sleep
  (func $large
    (drop (memory.grow (i32.const 128)))
    (call $must (call $response_send (i32.const 200) (i32.const 0) (i32.const 8388608))))
  (func (export "large") (call $large))
  (func (export "largeAndNap") (call $large) (call $sleep))

  ;; lines: twenty of 32 bytes
  (func (export "lines") (local $n i32)
    (local.set $n (i32.const 20))
    (loop
      (call $log (i32.const 1) (i32.const 14) (i32.const 32))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if 0 (local.get $n)))
    (call $ok))
)
