;; What may happen before there is a request.
(module
  (import "runner" "request_method" (func $request_method (param i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "starting")
  (global $denied (mut i32) (i32.const 0))

  (func $try
    (if (i32.eq (call $request_method (i32.const 0) (i32.const 0)) (i32.const -3))
      (then (global.set $denied (i32.add (global.get $denied) (i32.const 1)))))
    (if (i32.eq (call $send (i32.const 200) (i32.const 0) (i32.const 0)) (i32.const -3))
      (then (global.set $denied (i32.add (global.get $denied) (i32.const 1)))))
    (if (i32.eq (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const -3))
      (then (global.set $denied (i32.add (global.get $denied) (i32.const 1)))))
    (call $log (i32.const 1) (i32.const 0) (i32.const 8)))
  (start $try)
  (func (export "_initialize") (call $try))

  ;; answers with the number of refusals: "6"
  (func (export "denied")
    (i32.store8 (i32.const 64) (i32.add (global.get $denied) (i32.const 48)))
    (drop (call $send (i32.const 200) (i32.const 64) (i32.const 1)))))
