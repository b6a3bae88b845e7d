;; The self-test of programs that wait for requests. It traps if its expectation does not hold.
;; wat2wasm makes selftest_program.wasm from it.
(module
  (import "runner" "request_next" (func $next (param i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "first\nsecond")
  (global $runs (mut i32) (i32.const 0))
  (table funcref (elem $wait))
  (type $waits (func (param i64 f64) (result i32)))

  (func $assert (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))

  ;; wait: values that live across the host call are there when it returns
  (func $wait (type $waits) (local $handler i32)
    (local.set $handler (call $next (i32.const 0) (i32.const 12)))
    (call $assert (i64.eq (local.get 0) (i64.const 0x123456789abcdef)))
    (call $assert (f64.eq (local.get 1) (f64.const 1.5)))
    (local.get $handler))

  (func $deep (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 0))))

  (func (export "_start") (local $handler i32)
    (i32.store (i32.const 4096) (i32.const 0x600d))
    (loop $next
      (local.set $handler
        (call_indirect (type $waits) (i64.const 0x123456789abcdef) (f64.const 1.5) (i32.const 0)))
      (call $assert (i32.eq (local.get $handler) (i32.const 1)))
      (call $assert (i32.eq (i32.load (i32.const 4096)) (i32.const 0x600d)))
      (call $assert (i32.eqz (global.get $runs)))
      ;; the stack moves
      (call $assert (i32.eq (call $deep (i32.const 5000)) (i32.const 5000)))
      (i32.store (i32.const 4096) (i32.const 0xbad))
      (global.set $runs (i32.add (global.get $runs) (i32.const 1)))
      (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0)))
      (br $next))))
