;; A module without an SDK that draws from random_get, before its first request too.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "{\"random_get\":\"................\"}")
  (func $draw (if (call $random (i32.const 0) (i32.const 8)) (then unreachable)))
  (func (export "_initialize") (call $draw))
  ;; answers 8 bytes as 16 letters
  (func (export "drawWASI") (local $i i32) (local $byte i32)
    (call $draw)
    (loop $next
      (local.set $byte (i32.load8_u (local.get $i)))
      (i32.store8 offset=79 (i32.mul (local.get $i) (i32.const 2))
        (i32.add (i32.const 97) (i32.and (local.get $byte) (i32.const 15))))
      (i32.store8 offset=80 (i32.mul (local.get $i) (i32.const 2))
        (i32.add (i32.const 97) (i32.shr_u (local.get $byte) (i32.const 4))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 8))))
    (drop (call $send (i32.const 200) (i32.const 64) (i32.const 33)))))
