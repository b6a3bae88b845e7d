;; Answers with marks of the release that the handler belongs to: a JSON array of the mark in the
;; code, the mark in the data, the context, and the body or the result of an insert. A test
;; replaces both marks, which are "0000" here.
(module
  (import "runner" "context" (func $context (param i32 i32) (result i32)))
  (import "runner" "request_body" (func $request_body (param i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "call_result" (func $call_result (param i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $response_send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 4)
  (data (i32.const 0) "[\"....\",\"0000\",")
  (data (i32.const 131056) "insert")

  ;; begin writes the marks and the context, and returns where the rest begins
  (func $begin (result i32)
    (local $at i32)
    (i32.store (i32.const 2) (i32.const 0x30303030))
    (local.set $at (i32.add (i32.const 15) (call $context (i32.const 15) (i32.const 8192))))
    (i32.store8 (local.get $at) (i32.const 44))
    (i32.add (local.get $at) (i32.const 1)))
  (func $end (param $status i32) (param $at i32)
    (i32.store8 (local.get $at) (i32.const 93))
    (drop (call $response_send (local.get $status) (i32.const 0) (i32.add (local.get $at) (i32.const 1)))))

  (func (export "release")
    (local $at i32)
    (local.set $at (call $begin))
    (call $end (i32.const 200) (i32.add (local.get $at) (call $request_body (i32.const 0) (local.get $at) (i32.const 65536)))))

  ;; note inserts a row, with the body as arguments
  (func (export "note")
    (local $status i32) (local $at i32)
    (local.set $status (i32.const 200))
    (if (i32.lt_s
          (call $call (i32.const 131056) (i32.const 6) (i32.const 131072)
            (call $request_body (i32.const 0) (i32.const 131072) (i32.const 65536)))
          (i32.const 0))
      (then (local.set $status (i32.const 299))))
    (local.set $at (call $begin))
    (call $end (local.get $status) (i32.add (local.get $at) (call $call_result (i32.const 0) (local.get $at) (i32.const 65536)))))
)
