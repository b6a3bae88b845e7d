;; Handlers that misbehave, each in one way.
(module
  (import "runner" "request_method" (func $request_method (param i32 i32) (result i32)))
  (import "runner" "request_pairs" (func $request_pairs (param i32 i32 i32) (result i32)))
  (import "runner" "request_body" (func $request_body (param i32 i32 i32) (result i32)))
  (import "runner" "context" (func $context (param i32 i32) (result i32)))
  (import "runner" "response_header" (func $response_header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $response_send (param i32 i32 i32) (result i32)))
  (import "runner" "response_error" (func $response_error (param i32 i32 i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "call_result" (func $call_result (param i32 i32 i32) (result i32)))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "still here, line forged?\n{\"level\":\"error\"}")
  (data (i32.const 64) "apiKeys.list{}")

  (global $touched (mut i32) (i32.const 0))
  (func $send (param $status i32)
    (drop (call $response_send (local.get $status) (i32.const 0) (i32.const 0))))

  (func (export "loop") (loop $again (br $again)))

  (func (export "loopAfterAnswer")
    (call $send (i32.const 200))
    (loop $again (br $again)))

  ;; loopInCalls spends its time in host calls
  (func (export "loopInCalls")
    (loop $again (drop (call $context (i32.const 1024) (i32.const 60000))) (br $again)))

  (func $deep (param i32) (result i32)
    (i32.add (i32.const 1) (call $deep (i32.add (local.get 0) (i32.const 1)))))
  (func (export "recurse") (drop (call $deep (i32.const 0))))

  ;; tree never ends, without a loop: each call makes two calls
  (func $branch (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0))
      (then (i32.const 1))
      (else (i32.add
        (call $branch (i32.sub (local.get 0) (i32.const 1)))
        (call $branch (i32.sub (local.get 0) (i32.const 1)))))))
  (func (export "tree") (drop (call $branch (i32.const 60))))

  (func (export "trap") unreachable)

  (func (export "trapAfterAnswer") (call $send (i32.const 200)) unreachable)

  (func (export "divide") (drop (i32.div_s (i32.const 1) (i32.const 0))))

  (func (export "nothing"))

  (func (export "exit0") (call $proc_exit (i32.const 0)))
  (func (export "exit1") (call $proc_exit (i32.const 1)))
  (func (export "exitAfterAnswer") (call $send (i32.const 200)) (call $proc_exit (i32.const 0)))

  ;; grow allocates memory until it is refused, then traps like an allocator
  (func (export "grow")
    (loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0))))
    unreachable)

  ;; growAndAnswer allocates all available memory and then answers
  (func (export "growAndAnswer")
    (loop $again (br_if $again (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0))))
    (call $send (i32.const 200)))

  (func (export "outOfBounds") (drop (i32.load (i32.const 0x7ffffff0))))

  ;; pointers passes invalid pointers to the host; each must be refused (a
  ;; negative number), else it answers 500 by itself
  (func $refused (param i32)
    (if (i32.ge_s (local.get 0) (i32.const 0)) (then unreachable)))
  (func (export "pointers")
    (call $refused (call $request_method (i32.const -1) (i32.const 65536)))
    (call $refused (call $request_method (i32.const 65535) (i32.const 1000)))
    (call $refused (call $request_pairs (i32.const 2) (i32.const -1) (i32.const -1)))
    (call $refused (call $request_pairs (i32.const 9) (i32.const 0) (i32.const 100)))
    (call $refused (call $request_body (i32.const 0) (i32.const 65530) (i32.const 0x7fffffff)))
    (call $refused (call $context (i32.const 65000) (i32.const 0x7fffffff)))
    (call $refused (call $response_header (i32.const -4) (i32.const 8) (i32.const 0) (i32.const 1)))
    (call $refused (call $response_header (i32.const 0) (i32.const 1) (i32.const 65536) (i32.const 1)))
    (call $refused (call $response_send (i32.const 200) (i32.const 65535) (i32.const 2)))
    (call $refused (call $response_send (i32.const 200) (i32.const 0) (i32.const -1)))
    (call $refused (call $response_send (i32.const 199) (i32.const 0) (i32.const 0)))
    (call $refused (call $response_send (i32.const 600) (i32.const 0) (i32.const 0)))
    (call $refused (call $response_send (i32.const 204) (i32.const 0) (i32.const 1)))
    (call $refused (call $response_error (i32.const 399) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
    (call $refused (call $response_error (i32.const 400) (i32.const 0) (i32.const 0) (i32.const -9) (i32.const 10)))
    (call $refused (call $call (i32.const 70000) (i32.const 4) (i32.const 0) (i32.const 0)))
    (call $refused (call $call (i32.const 64) (i32.const 12) (i32.const 65536) (i32.const 4)))
    (call $refused (call $call (i32.const 64) (i32.const 3) (i32.const 76) (i32.const 2)))
    (call $log (i32.const 1) (i32.const -1) (i32.const 100))
    (call $log (i32.const 77) (i32.const 0) (i32.const 4))
    (call $send (i32.const 200))
    ;; a second response is refused, and the first one is sent
    (call $refused (call $response_send (i32.const 201) (i32.const 0) (i32.const 0)))
    (call $refused (call $response_error (i32.const 404) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))))

  ;; flood logs far more than a request may
  (func (export "flood")
    (local $i i32)
    (loop $again
      (call $log (i32.const 1) (i32.const 0) (i32.const 43))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 500))))
    (call $send (i32.const 200)))

  ;; calls makes more host calls than a request may, then answers
  (func (export "calls")
    (local $i i32)
    (loop $again
      (drop (call $request_method (i32.const 1024) (i32.const 100)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 5000))))
    (call $refused (call $request_method (i32.const 1024) (i32.const 100)))
    (call $send (i32.const 200)))

  ;; clean answers 200 when memory and globals have their initial values, and
  ;; leaves marks in both: a second request in the same sandbox would see them
  (func (export "clean")
    (local $i i32)
    (if (global.get $touched) (then (call $send (i32.const 500)) (return)))
    (if (i32.ne (memory.size) (i32.const 1)) (then (call $send (i32.const 500)) (return)))
    (local.set $i (i32.const 128))
    (loop $again
      (if (i32.load (local.get $i)) (then (call $send (i32.const 500)) (return)))
      (i32.store (local.get $i) (i32.const 0x5eed5eed))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 65536))))
    (global.set $touched (i32.const 1))
    (drop (memory.grow (i32.const 1)))
    (call $send (i32.const 200)))
)
