;; A small handler as a compiler would make it: 6 host calls, 8 pages of memory
;; written to, one global.
(module
  (import "runner" "request_method" (func $method (param i32 i32) (result i32)))
  (import "runner" "request_path" (func $path (param i32 i32) (result i32)))
  (import "runner" "request_header" (func $header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
  (import "runner" "response_header" (func $set (param i32 i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 3)
  (global $top (mut i32) (i32.const 65536))
  (data (i32.const 0) "content-type")
  (data (i32.const 16) "{\"message\":\"hello\"}")
  (data (i32.const 48) "application/json")

  (func (export "handle") (local $i i32)
    (global.set $top (i32.sub (global.get $top) (i32.const 64)))
    (drop (call $method (i32.const 8192) (i32.const 4096)))
    (drop (call $path (i32.const 12288) (i32.const 4096)))
    (drop (call $header (i32.const 0) (i32.const 12) (i32.const 16384) (i32.const 4096)))
    (drop (call $body (i32.const 0) (i32.const 20480) (i32.const 4096)))
    (local.set $i (i32.const 65536))
    (loop
      (i32.store (local.get $i) (local.get $i))
      (local.set $i (i32.add (local.get $i) (i32.const 4096)))
      (br_if 0 (i32.lt_u (local.get $i) (i32.const 81920))))
    (drop (call $set (i32.const 0) (i32.const 12) (i32.const 48) (i32.const 16)))
    (drop (call $send (i32.const 200) (i32.const 16) (i32.const 19)))))
