;; Every function of the host, called with pointers and lengths that lie. The
;; answer is 200 when each of them was called invalid and nothing else happened.
(module
  (import "runner" "request_method" (func $request_method (param i32 i32) (result i32)))
  (import "runner" "request_path" (func $request_path (param i32 i32) (result i32)))
  (import "runner" "request_param" (func $request_param (param i32 i32 i32 i32) (result i32)))
  (import "runner" "request_query" (func $request_query (param i32 i32 i32 i32) (result i32)))
  (import "runner" "request_header" (func $request_header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "request_pairs" (func $request_pairs (param i32 i32 i32) (result i32)))
  (import "runner" "request_body" (func $request_body (param i32 i32 i32) (result i32)))
  (import "runner" "context" (func $context (param i32 i32) (result i32)))
  (import "runner" "response_header" (func $response_header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $response_send (param i32 i32 i32) (result i32)))
  (import "runner" "response_error" (func $response_error (param i32 i32 i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "call_result" (func $call_result (param i32 i32 i32) (result i32)))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)

  (func $lie (param $at i32) (param $len i32)
    (local $bad i32)
    (local.set $bad (i32.const -2))
    (if (i32.ne (call $request_method (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_path (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_param (local.get $at) (local.get $len) (i32.const 0) (i32.const 0)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_param (i32.const 0) (i32.const 1) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_query (local.get $at) (local.get $len) (i32.const 0) (i32.const 0)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_query (i32.const 0) (i32.const 1) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_header (local.get $at) (local.get $len) (i32.const 0) (i32.const 0)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_header (i32.const 0) (i32.const 1) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_pairs (i32.const 0) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $request_body (i32.const 0) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $context (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $response_header (local.get $at) (local.get $len) (i32.const 0) (i32.const 0)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $response_header (i32.const 0) (i32.const 1) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $response_send (i32.const 200) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $response_error (i32.const 400) (local.get $at) (local.get $len) (i32.const 0) (i32.const 0)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $response_error (i32.const 400) (i32.const 0) (i32.const 0) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $call (local.get $at) (local.get $len) (i32.const 0) (i32.const 0)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $call (i32.const 0) (i32.const 1) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (if (i32.ne (call $call_result (i32.const 0) (local.get $at) (local.get $len)) (local.get $bad)) (then unreachable))
    (call $log (i32.const 1) (local.get $at) (local.get $len)))

  (func (export "lies")
    (call $lie (i32.const 65536) (i32.const 1))     ;; just past the end
    (call $lie (i32.const 65535) (i32.const 2))     ;; over the end
    (call $lie (i32.const 0) (i32.const 65537))     ;; longer than all of it
    (call $lie (i32.const -1) (i32.const 1))
    (call $lie (i32.const 16) (i32.const -1))       ;; a negative length
    (call $lie (i32.const 0) (i32.const 0x80000000))
    (call $lie (i32.const -1) (i32.const -1))       ;; the sum of both is no number
    (drop (call $response_send (i32.const 200) (i32.const 0) (i32.const 0)))))
