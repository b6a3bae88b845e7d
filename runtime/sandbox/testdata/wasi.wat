;; What is left of WASI. The answer is a row of 32-bit words: what each call
;; returned, and what it wrote.
(module
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "etc/passwd")
  ;; an iovec at 400: 16 bytes at 416
  (data (i32.const 400) "\a0\01\00\00\10\00\00\00")


  (func (export "look")
    (i32.store (i32.const 0) (call $args (i32.const 100) (i32.const 104)))
    (i32.store (i32.const 4) (i32.add (i32.load (i32.const 100)) (i32.load (i32.const 104))))
    (i32.store (i32.const 8) (call $environ (i32.const 108) (i32.const 112)))
    (i32.store (i32.const 12) (i32.add (i32.load (i32.const 108)) (i32.load (i32.const 112))))
    (i32.store (i32.const 16) (call $prestat (i32.const 3) (i32.const 116)))
    (i32.store (i32.const 20) (call $open (i32.const 3) (i32.const 0) (i32.const 512) (i32.const 10)
      (i32.const 0) (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 124)))
    (i32.store (i32.const 24) (call $accept (i32.const 3) (i32.const 0) (i32.const 128)))
    (i32.store (i32.const 28) (call $read (i32.const 0) (i32.const 400) (i32.const 1) (i32.const 132)))
    (i32.store (i32.const 32) (i32.load (i32.const 132)))
    (i32.store (i32.const 36) (call $clock (i32.const 0) (i64.const 1) (i32.const 40)))
    (i32.store (i32.const 48) (call $random (i32.const 52) (i32.const 8)))
    (drop (call $send (i32.const 200) (i32.const 0) (i32.const 64)))))
