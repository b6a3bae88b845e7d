;; Handlers that make the host work without end.
(module
  (import "runner" "response_header" (func $response_header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 400)

  ;; a header as long as memory
  (func (export "bigHeaders")
    (memory.fill (i32.const 0) (i32.const 65) (i32.const 24000000))
    (loop $again
      (drop (call $response_header (i32.const 0) (i32.const 12000000) (i32.const 12000000) (i32.const 12000000)))
      (br $again)))

  ;; a line for each byte
  (func (export "manyLines")
    (memory.fill (i32.const 65536) (i32.const 10) (i32.const 65536))
    (i32.store (i32.const 0) (i32.const 65536))
    (i32.store (i32.const 4) (i32.const 65536))
    (loop $again
      (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (br $again)))

  ;; an operation of megabytes
  (func (export "bigOperation")
    (loop $again
      (drop (call $call (i32.const 0) (i32.const 9000000) (i32.const 9000000) (i32.const 9000000)))
      (br $again)))
)
