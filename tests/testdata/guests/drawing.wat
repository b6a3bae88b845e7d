;; draw answers what the module drew when it was initialized.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_initialize")
    (drop (call $random (i32.const 0) (i32.const 8))))
  (func (export "draw")
    (drop (call $send (i32.const 200) (i32.const 0) (i32.const 8)))))
