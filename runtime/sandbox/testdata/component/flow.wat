;; A handler of WASI 0.3. The first letter of the path says what it does:
;;   e  answers with the body of the request, without reading it
;;   w  waits for two pauses side by side, and answers with the text "waited" that it writes then
;;   c  is as e, but reads the body of the request and writes it, up to 500 bytes at once
;;   n  ends without an answer      f  answers with an error
;;   t  traps after it has waited   s  waits for something that cannot happen
(module
  (import "wasi:http/types@0.3.0" "[method]request.get-path-with-query" (func $path (param i32 i32)))
  (import "wasi:http/types@0.3.0" "[static]request.consume-body" (func $consume (param i32 i32 i32)))
  (import "wasi:http/types@0.3.0" "[static]response.new" (func $response (param i32 i32 i32 i32 i32)))
  (import "wasi:http/types@0.3.0" "[constructor]fields" (func $fields (result i32)))
  (import "wasi:http/types@0.3.0" "[stream-new-0][static]response.new" (func $stream (result i64)))
  (import "wasi:http/types@0.3.0" "[async-lower][stream-write-0][static]response.new" (func $write (param i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.3.0" "[stream-drop-writable-0][static]response.new" (func $close (param i32)))
  (import "wasi:http/types@0.3.0" "[async-lower][stream-read-1][static]request.consume-body" (func $read (param i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.3.0" "[future-new-1][static]response.new" (func $trailers (result i64)))
  (import "wasi:http/types@0.3.0" "[async-lower][future-write-1][static]response.new" (func $write_trailers (param i32 i32) (result i32)))
  (import "wasi:http/types@0.3.0" "[future-drop-writable-1][static]response.new" (func $close_trailers (param i32)))
  (import "wasi:http/types@0.3.0" "[future-new-0][static]request.consume-body" (func $outcome (result i64)))
  (import "wasi:http/types@0.3.0" "[async-lower][future-write-0][static]request.consume-body" (func $write_outcome (param i32 i32) (result i32)))
  (import "wasi:clocks/monotonic-clock@0.3.0" "[async-lower]wait-for" (func $pause (param i64) (result i32)))
  (import "[export]wasi:http/handler@0.3.0" "[task-return]handle" (func $return (param i32 i32 i32 i64 i32 i32 i32 i32)))
  (import "$root" "[waitable-set-new]" (func $set (result i32)))
  (import "$root" "[waitable-join]" (func $join (param i32 i32)))
  (import "$root" "[subtask-drop]" (func $drop (param i32)))
  (import "$root" "[context-set-0]" (func $keep (param i32)))
  (import "$root" "[context-get-0]" (func $kept (result i32)))
  (memory (export "memory") 1)
  (global $heap (mut i32) (i32.const 8192))
  (global $uses (mut i32) (i32.const 0))
  (global $left (mut i32) (i32.const 0))
  (global $wait (mut i32) (i32.const 0)) ;; the code that waits
  (data (i32.const 1024) "waited")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.sub (local.get 2) (i32.const 1))) (i32.sub (i32.const 0) (local.get 2))))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (local.get $at))

  ;; answer returns a response whose body is a stream. Its trailers are none.
  (func $answer (param $stream i32)
    (local $future i64)
    (local.set $future (call $trailers))
    (call $response (call $fields) (i32.const 1) (local.get $stream) (i32.wrap_i64 (local.get $future)) (i32.const 128))
    (call $return (i32.const 0) (i32.load (i32.const 128)) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
    (i64.store (i32.const 256) (i64.const 0)) (i64.store (i32.const 264) (i64.const 0)) ;; ok(none)
    (if (call $write_trailers (i32.wrap_i64 (i64.shr_u (local.get $future) (i64.const 32))) (i32.const 256)) (then unreachable))
    (call $close_trailers (i32.wrap_i64 (i64.shr_u (local.get $future) (i64.const 32)))))

  ;; body returns the stream of the request's body.
  (func $body (param $request i32) (result i32)
    (local $future i64)
    (local.set $future (call $outcome))
    (call $consume (local.get $request) (i32.wrap_i64 (local.get $future)) (i32.const 136))
    (i64.store (i32.const 256) (i64.const 0)) ;; ok
    (if (call $write_outcome (i32.wrap_i64 (i64.shr_u (local.get $future) (i64.const 32))) (i32.const 256)) (then unreachable))
    (i32.load (i32.const 136)))

  ;; copy writes the body of the request as that of the answer.
  (func $copy (param $request i32)
    (local $pipe i64) (local $in i32) (local $out i32) (local $result i32)
    (local.set $in (call $body (local.get $request)))
    (local.set $pipe (call $stream))
    (local.set $out (i32.wrap_i64 (i64.shr_u (local.get $pipe) (i64.const 32))))
    (call $answer (i32.wrap_i64 (local.get $pipe)))
    (loop $more
      (local.set $result (call $read (local.get $in) (i32.const 512) (i32.const 500)))
      (if (i32.shr_u (local.get $result) (i32.const 4)) (then
        (if (i32.ne (call $write (local.get $out) (i32.const 512) (i32.shr_u (local.get $result) (i32.const 4))) (local.get $result)) (then unreachable))
        (br $more))))
    (call $close (local.get $out)))

  (func (export "[async-lift]wasi:http/handler@0.3.0#handle") (param $request i32) (result i32)
    (local $what i32) (local $set i32)
    (if (global.get $uses) (then unreachable)) ;; nothing has used this memory
    (global.set $uses (i32.const 1))
    (call $path (local.get $request) (i32.const 64)) ;; option<string> at 64
    (local.set $what (i32.load8_u offset=1 (i32.load (i32.const 68))))
    (if (i32.eq (local.get $what) (i32.const 101)) (then (call $answer (call $body (local.get $request))) (return (i32.const 0)))) ;; e
    (if (i32.eq (local.get $what) (i32.const 99)) (then (call $copy (local.get $request)) (return (i32.const 0))))                 ;; c
    (if (i32.eq (local.get $what) (i32.const 110)) (then (return (i32.const 0))))                                                  ;; n
    (if (i32.eq (local.get $what) (i32.const 102)) (then ;; f: HTTP-response-timeout
      (call $return (i32.const 1) (i32.const 33) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
      (return (i32.const 0))))
    (local.set $set (call $set))
    (call $keep (local.get $what))
    (if (i32.ne (local.get $what) (i32.const 115)) (then
      (call $join (i32.shr_u (call $pause (i64.const 30000000)) (i32.const 4)) (local.get $set))
      (call $join (i32.shr_u (call $pause (i64.const 20000000)) (i32.const 4)) (local.get $set))))
    (global.set $left (i32.const 2))
    (global.set $wait (i32.or (i32.shl (local.get $set) (i32.const 4)) (i32.const 2)))
    (global.get $wait))

  (func (export "[callback][async-lift]wasi:http/handler@0.3.0#handle") (param $event i32) (param $subtask i32) (param $state i32) (result i32)
    (local $pipe i64) (local $out i32)
    (if (i32.eq (call $kept) (i32.const 116)) (then unreachable)) ;; t
    (if (i32.or (i32.ne (local.get $event) (i32.const 1)) (i32.ne (local.get $state) (i32.const 2))) (then unreachable))
    (call $drop (local.get $subtask))
    (global.set $left (i32.sub (global.get $left) (i32.const 1)))
    (if (global.get $left) (then (return (global.get $wait)))) ;; wait again
    (local.set $pipe (call $stream))
    (local.set $out (i32.wrap_i64 (i64.shr_u (local.get $pipe) (i64.const 32))))
    (call $answer (i32.wrap_i64 (local.get $pipe)))
    (if (i32.ne (call $write (local.get $out) (i32.const 1024) (i32.const 6)) (i32.const 96)) (then unreachable))
    (call $close (local.get $out))
    (i32.const 0)))
