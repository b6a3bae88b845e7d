;; A command: it answers with its first variable and the body of the request, as CGI scripts do. A body that begins with
;; x is an error, one that begins with e ends the run with status 0 after the answer, and with l it writes for ever.
(module
  (import "wasi:cli/environment@0.2.12" "get-environment" (func $environment (param i32)))
  (import "wasi:cli/stdin@0.2.12" "get-stdin" (func $stdin (result i32)))
  (import "wasi:cli/stdout@0.2.12" "get-stdout" (func $stdout (result i32)))
  (import "wasi:cli/exit@0.2.12" "exit" (func $exit (param i32)))
  (import "wasi:io/streams@0.2.12" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
  (import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))
  (memory (export "memory") 2)
  (global $heap (mut i32) (i32.const 4096))
  (global $uses (mut i32) (i32.const 0))
  (data (i32.const 1024) "Content-Type: text/plain\n\n=\n")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.sub (local.get 2) (i32.const 1))) (i32.sub (i32.const 0) (local.get 2))))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "wasi:cli/run@0.2.12#run") (result i32)
    (local $out i32) (local $pair i32)
    (if (global.get $uses) (then unreachable)) ;; nothing has used this memory
    (global.set $uses (i32.const 1))
    (local.set $out (call $stdout))
    (call $read (call $stdin) (i64.const 4000) (i32.const 64)) ;; result<list<u8>, _> at 64
    (if (i32.load8_u (i32.const 64)) (then (return (i32.const 1))))
    (if (i32.eq (i32.load8_u (i32.load (i32.const 68))) (i32.const 120)) (then (return (i32.const 1)))) ;; x
    (call $write (local.get $out) (i32.const 1024) (i32.const 26) (i32.const 96))
    (call $environment (i32.const 80)) ;; list<tuple<string, string>> at 80
    (local.set $pair (i32.load (i32.const 80)))
    (call $write (local.get $out) (i32.load (local.get $pair)) (i32.load offset=4 (local.get $pair)) (i32.const 96))
    (call $write (local.get $out) (i32.const 1050) (i32.const 1) (i32.const 96))
    (call $write (local.get $out) (i32.load offset=8 (local.get $pair)) (i32.load offset=12 (local.get $pair)) (i32.const 96))
    (call $write (local.get $out) (i32.const 1051) (i32.const 1) (i32.const 96))
    (if (i32.eq (i32.load8_u (i32.load (i32.const 68))) (i32.const 108)) (then ;; l: until a write fails
      (loop $again
        (call $write (local.get $out) (i32.const 0) (i32.const 4096) (i32.const 96))
        (br_if $again (i32.eqz (i32.load8_u (i32.const 96)))))))
    (call $write (local.get $out) (i32.load (i32.const 68)) (i32.load (i32.const 72)) (i32.const 96))
    (if (i32.eq (i32.load8_u (i32.load (i32.const 68))) (i32.const 101)) (then (call $exit (i32.const 0)))) ;; e
    (i32.const 0)))
