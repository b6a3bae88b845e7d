;; dump returns the request unchanged; the other handlers are small. dump's body is a
;; sequence of sections, each a little-endian length and that many bytes: method, path,
;; params, query, headers (in the form of request_pairs), body, context.
(module
  (import "runner" "request_method" (func $request_method (param i32 i32) (result i32)))
  (import "runner" "request_path" (func $request_path (param i32 i32) (result i32)))
  (import "runner" "request_pairs" (func $request_pairs (param i32 i32 i32) (result i32)))
  (import "runner" "request_body" (func $request_body (param i32 i32 i32) (result i32)))
  (import "runner" "request_header" (func $request_header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "context" (func $context (param i32 i32) (result i32)))
  (import "runner" "response_header" (func $response_header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $response_send (param i32 i32 i32) (result i32)))
  (import "runner" "response_error" (func $response_error (param i32 i32 i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "call_result" (func $call_result (param i32 i32 i32) (result i32)))
  (import "runner" "keep_writes" (func $keep_writes))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 80)
  (data (i32.const 0) "{\"message\":\"hello\"}")
  (data (i32.const 32) "x-op")
  (data (i32.const 48) "location")
  (data (i32.const 64) "x-location")
  (data (i32.const 80) "x-name")
  (data (i32.const 96) "x-value")
  (data (i32.const 112) "nothing here")
  (data (i32.const 144) "x-log")

  (global $pos (mut i32) (i32.const 0))

  ;; section ends a section: it writes the length before its $n bytes
  (func $section (param $n i32)
    (i32.store (global.get $pos) (local.get $n))
    (global.set $pos (i32.add (global.get $pos) (i32.add (local.get $n) (i32.const 4)))))
  (func $at (result i32) (i32.add (global.get $pos) (i32.const 4)))

  (func (export "dump")
    (local $body i32)
    (global.set $pos (i32.const 4096))
    (call $section (call $request_method (call $at) (i32.const 65536)))
    (call $section (call $request_path (call $at) (i32.const 65536)))
    (call $section (call $request_pairs (i32.const 0) (call $at) (i32.const 65536)))
    (call $section (call $request_pairs (i32.const 1) (call $at) (i32.const 65536)))
    (call $section (call $request_pairs (i32.const 2) (call $at) (i32.const 65536)))
    (local.set $body (call $request_body (i32.const 0) (i32.const 0) (i32.const 0)))
    (drop (call $request_body (i32.const 0) (call $at) (local.get $body)))
    (call $section (local.get $body))
    (call $section (call $context (call $at) (i32.const 65536)))
    (drop (call $response_send (i32.const 200) (i32.const 4096) (i32.sub (global.get $pos) (i32.const 4096)))))

  (func (export "hello")
    (drop (call $response_send (i32.const 200) (i32.const 0) (i32.const 19))))

  (func (export "empty")
    (drop (call $response_send (i32.const 204) (i32.const 0) (i32.const 0))))

  (func (export "missing")
    (drop (call $response_error (i32.const 404) (i32.const 0) (i32.const 0) (i32.const 112) (i32.const 12))))

  (func (export "unauthorized")
    (drop (call $response_error (i32.const 401) (i32.const 0) (i32.const 0) (i32.const 112) (i32.const 12))))

  ;; do runs the operation named in the header x-op with the body as arguments
  (func $do (result i32)
    (call $call
      (i32.const 1024) (call $request_header (i32.const 32) (i32.const 4) (i32.const 1024) (i32.const 1024))
      (i32.const 4096) (call $request_body (i32.const 0) (i32.const 4096) (i32.const 1048576))))

  ;; opFail, opKeep and opTrap run it and then fail
  (func (export "opFail")
    (drop (call $do))
    (drop (call $response_send (i32.const 400) (i32.const 0) (i32.const 0))))
  (func (export "opKeep")
    (drop (call $do))
    (call $keep_writes)
    (drop (call $response_send (i32.const 400) (i32.const 0) (i32.const 0))))
  (func (export "opTrap")
    (drop (call $do))
    (drop (call $response_send (i32.const 200) (i32.const 0) (i32.const 0)))
    unreachable)

  ;; op runs it and returns its result: 200, or 299 with the {code,message} of
  ;; a failure
  (func (export "op")
    (local $status i32) (local $n i32)
    (local.set $status (i32.const 200))
    (if (i32.lt_s (call $do) (i32.const 0))
      (then (local.set $status (i32.const 299))))
    (local.set $n (call $call_result (i32.const 0) (i32.const 2097152) (i32.const 1048576)))
    (drop (call $response_send (local.get $status) (i32.const 2097152) (local.get $n))))

  ;; setHeader sets the header named by x-name to x-value, answering 200 when
  ;; the host accepts it and 299 when it refuses it
  (func (export "setHeader")
    (local $name i32) (local $value i32) (local $status i32)
    (local.set $name (call $request_header (i32.const 80) (i32.const 6) (i32.const 1024) (i32.const 1024)))
    (local.set $value (call $request_header (i32.const 96) (i32.const 7) (i32.const 4096) (i32.const 4096)))
    (local.set $status (i32.const 200))
    (if (i32.lt_s (call $response_header (i32.const 1024) (local.get $name) (i32.const 4096) (local.get $value)) (i32.const 0))
      (then (local.set $status (i32.const 299))))
    (drop (call $response_send (local.get $status) (i32.const 0) (i32.const 0))))

  ;; redirect answers 302 to the header x-location, or 299 when the host refuses it
  (func (export "redirect")
    (local $n i32) (local $status i32)
    (local.set $n (call $request_header (i32.const 64) (i32.const 10) (i32.const 4096) (i32.const 8192)))
    (local.set $status (i32.const 302))
    (if (i32.lt_s (call $response_header (i32.const 48) (i32.const 8) (i32.const 4096) (local.get $n)) (i32.const 0))
      (then (local.set $status (i32.const 299))))
    (drop (call $response_send (local.get $status) (i32.const 0) (i32.const 0))))

  ;; say logs the header x-log and the body, a line each
  (func (export "say")
    (local $n i32)
    (local.set $n (call $request_header (i32.const 144) (i32.const 5) (i32.const 4096) (i32.const 65536)))
    (call $log (i32.const 1) (i32.const 4096) (local.get $n))
    (drop (call $request_body (i32.const 0) (i32.const 4096) (i32.const 65536)))
    (call $log (i32.const 2) (i32.const 4096) (call $request_body (i32.const 0) (i32.const 0) (i32.const 0)))
    (drop (call $response_send (i32.const 204) (i32.const 0) (i32.const 0))))
)
