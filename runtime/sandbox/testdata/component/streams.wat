;; Sends its answer in parts. The first letter of the path says which:
;;   p  three parts                      w  a part, and waits for 50 s
;;   e  parts for ever, 1 ms apart, until a write fails; then it logs that
;;   h  the head, and waits for 50 s     t  a part, and traps
(module
  (import "wasi:http/types@0.2.12" "[method]incoming-request.path-with-query" (func $path (param i32 i32)))
  (import "wasi:http/types@0.2.12" "[constructor]fields" (func $fields (result i32)))
  (import "wasi:http/types@0.2.12" "[constructor]outgoing-response" (func $response (param i32) (result i32)))
  (import "wasi:http/types@0.2.12" "[method]outgoing-response.body" (func $body (param i32 i32)))
  (import "wasi:http/types@0.2.12" "[method]outgoing-body.write" (func $stream (param i32 i32)))
  (import "wasi:http/types@0.2.12" "[static]outgoing-body.finish" (func $finish (param i32 i32 i32 i32)))
  (import "wasi:http/types@0.2.12" "[static]response-outparam.set" (func $set (param i32 i32 i32 i32 i64 i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.12" "[resource-drop]output-stream" (func $drop_stream (param i32)))
  (import "wasi:clocks/monotonic-clock@0.2.12" "subscribe-duration" (func $after (param i64) (result i32)))
  (import "wasi:io/poll@0.2.12" "[method]pollable.block" (func $block (param i32)))
  (import "wasi:io/poll@0.2.12" "[resource-drop]pollable" (func $drop_pollable (param i32)))
  (import "wasi:cli/stderr@0.2.12" "get-stderr" (func $stderr (result i32)))
  (memory (export "memory") 1)
  (global $heap (mut i32) (i32.const 4096))
  (global $out (mut i32) (i32.const 0)) ;; the stream of the answer
  (data (i32.const 1024) "part\n")
  (data (i32.const 1032) "the component was left by its client\n")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.sub (local.get 2) (i32.const 1))) (i32.sub (i32.const 0) (local.get 2))))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (local.get $at))

  ;; part writes a part, and returns 0, or 1 after an error.
  (func $part (result i32)
    (call $write (global.get $out) (i32.const 1024) (i32.const 5) (i32.const 112))
    (i32.load8_u (i32.const 112)))

  (func $pause (param $nanoseconds i64)
    (local $pollable i32)
    (local.set $pollable (call $after (local.get $nanoseconds)))
    (call $block (local.get $pollable))
    (call $drop_pollable (local.get $pollable)))

  (func (export "wasi:http/incoming-handler@0.2.12#handle") (param $request i32) (param $outparam i32)
    (local $response i32) (local $body i32) (local $what i32)
    (call $path (local.get $request) (i32.const 64)) ;; option<string> at 64
    (local.set $what (i32.load8_u offset=1 (i32.load (i32.const 68))))
    (local.set $response (call $response (call $fields)))
    (call $body (local.get $response) (i32.const 80))
    (local.set $body (i32.load (i32.const 84)))
    (call $stream (local.get $body) (i32.const 96))
    (global.set $out (i32.load (i32.const 100)))
    (call $set (local.get $outparam) (i32.const 0) (local.get $response) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
    (if (i32.eq (local.get $what) (i32.const 104)) (then (call $pause (i64.const 50000000000)))) ;; h
    (drop (call $part))
    (if (i32.eq (local.get $what) (i32.const 116)) (then unreachable))                           ;; t
    (if (i32.eq (local.get $what) (i32.const 119)) (then (call $pause (i64.const 50000000000)))) ;; w
    (if (i32.eq (local.get $what) (i32.const 101)) (then                                         ;; e
      (loop $more
        (call $pause (i64.const 1000000))
        (br_if $more (i32.eqz (call $part))))
      (call $write (call $stderr) (i32.const 1032) (i32.const 37) (i32.const 112))))
    (drop (call $part))
    (drop (call $part))
    (call $drop_stream (global.get $out))
    (call $finish (local.get $body) (i32.const 0) (i32.const 0) (i32.const 128))))
