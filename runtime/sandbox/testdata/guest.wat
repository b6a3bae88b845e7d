;; Handlers that end in every way a handler can end.
(module
  (import "runner" "request_body" (func $request_body (param i32 i32 i32) (result i32)))
  (import "runner" "request_method" (func $request_method (param i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))

  (memory (export "memory") 2)
  (global $runs (mut i32) (i32.const 0))
  (data (i32.const 16) "hello")
  (data (i32.const 32) "line one\nline\1b[2Jtwo\nno end")
  (data (i32.const 64) "\20\00\00\00\1b\00\00\00") ;; one iovec: 32, 27 bytes

  (func $hello (drop (call $send (i32.const 200) (i32.const 16) (i32.const 5))))
  (func (export "hello") (call $hello))

  (func (export "loop") (loop (br 0)))
  (func (export "loopCalling") (loop (drop (call $request_method (i32.const 0) (i32.const 0))) (br 0)))
  (func (export "answerAndLoop") (call $hello) (loop (br 0)))

  (func (export "trap") unreachable)
  (func (export "answerAndTrap") (call $hello) unreachable)
  (func (export "silent"))

  (func $deep (param i32) (result i32)
    (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func (export "recurse") (drop (call $deep (i32.const 0))))

  ;; the memory, page by page, until there is no more
  (func $grow (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))))
  (func (export "growAndTrap") (call $grow) unreachable)
  (func (export "growAndExit") (call $grow) (call $exit (i32.const 2)))
  (func (export "growAndAnswer") (call $grow) (call $hello))
  (func (export "growToLimit") (drop (memory.grow (i32.const 30))) (i32.store8 (i32.const 2097151) (i32.const 1)) (call $hello))

  (func (export "exit0") (call $exit (i32.const 0)))
  (func (export "exit1") (call $exit (i32.const 1)))
  (func (export "exitAsIfLate") (call $hello) (call $exit (i32.const 0xefffffff)))
  (func (export "answerAndExit0") (call $hello) (call $exit (i32.const 0)))
  (func (export "answerAndExit1") (call $hello) (call $exit (i32.const 1)))

  ;; a second answer is refused and the first one stays
  (func (export "twice")
    (call $hello)
    (if (i32.ne (call $send (i32.const 201) (i32.const 0) (i32.const 1)) (i32.const -2)) (then unreachable)))

  ;; how often this instance ran: always "1"
  (func (export "count")
    (global.set $runs (i32.add (global.get $runs) (i32.const 1)))
    (i32.store8 (i32.const 256) (i32.add (global.get $runs) (i32.const 48)))
    (drop (call $send (i32.const 200) (i32.const 256) (i32.const 1))))

  ;; leaves the request's body all over its memory, old and new
  (func (export "smear") (local $at i32)
    (drop (memory.grow (i32.const 14)))
    (local.set $at (i32.const 4096))
    (loop
      (drop (call $request_body (i32.const 0) (local.get $at) (i32.const 4096)))
      (local.set $at (i32.add (local.get $at) (i32.const 4096)))
      (br_if 0 (i32.lt_u (local.get $at) (i32.const 1048576))))
    (call $hello))
  ;; answers with all the memory it has
  (func (export "dump")
    (drop (memory.grow (i32.const 14)))
    (drop (call $send (i32.const 200) (i32.const 0) (i32.const 1048576))))

  (func (export "speak")
    (call $log (i32.const 3) (i32.const 16) (i32.const 5))
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 512)))
    (drop (call $write (i32.const 2) (i32.const 64) (i32.const 1) (i32.const 512)))
    (call $hello))

  ;; sleeps 5 s: a subscription to the clock 1 (monotonic) of 5e9 ns
  (func (export "sleep")
    (i32.store (i32.const 1040) (i32.const 1))
    (i64.store (i32.const 1048) (i64.const 5000000000))
    (drop (call $poll (i32.const 1024) (i32.const 1104) (i32.const 1) (i32.const 1200)))
    (loop (call $hello) (br_if 0 (i32.const 0))))

  ;; no handlers: reserved names, parameters, results
  (func (export "_hidden"))
  (func (export ""))
  (func (export "runner_warm"))
  (func (export "runner_prepare"))
  (func (export "takes") (param i32))
  (func (export "gives") (result i32) (i32.const 0)))
