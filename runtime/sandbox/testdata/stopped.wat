;; A module that says where it was stopped: the number of intr that sched_yield returned, as
;; a digit, and the errno of a host call in runner_stopped, negated.
(module
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (import "runner" "request_method" (func $method (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (memory (export "memory") 1)
  (func $digit (param $at i32) (param $n i32)
    (i32.store8 (local.get $at) (i32.add (i32.const 48) (local.get $n))))
  ;; computes until sched_yield returns intr, and goes on
  (func (export "computes")
    (local $seen i32)
    (loop $again
      (if (i32.eq (call $yield) (i32.const 27))
        (then (call $digit (i32.const 0) (local.tee $seen (i32.const 1)))))
      (br $again)))
  ;; answers nothing, but returns when it is told to end
  (func (export "returns")
    (loop $again
      (br_if $again (i32.eqz (call $yield))))
    (call $digit (i32.const 0) (i32.const 2)))
  (func (export "grows")
    (loop $again
      (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (call $digit (i32.const 0) (i32.const 3))
    unreachable)
  ;; never ends, in runner_stopped either
  (func (export "stays") (i32.store8 (i32.const 0) (i32.const 33)) (loop (br 0)))
  (func (export "runner_stopped")
    (call $digit (i32.const 1) (i32.sub (i32.const 0) (call $method (i32.const 16) (i32.const 8))))
    (call $log (i32.const 3) (i32.const 0) (i32.const 2))
    (if (i32.eq (i32.load8_u (i32.const 0)) (i32.const 33)) (then (loop (br 0))))))
