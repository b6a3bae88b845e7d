;; A handler that sleeps and then inserts a row.
(module
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (import "runner" "log" (func $log (param i32 i32 i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "begun")
  (data (i32.const 16) "insert")
  (data (i32.const 32) "{\"into\":\"Thing\",\"values\":{\"name\":\"late\"}}")

  ;; insertSlowly: logs that it has begun, sleeps 4 s and inserts
  (func (export "insertSlowly")
    (call $log (i32.const 1) (i32.const 0) (i32.const 5))
    (i32.store (i32.const 2064) (i32.const 1))
    (i64.store (i32.const 2072) (i64.const 4000000000))
    (drop (call $poll (i32.const 2048) (i32.const 2200) (i32.const 1) (i32.const 2300)))
    (drop (call $call (i32.const 16) (i32.const 6) (i32.const 32) (i32.const 41)))
    (drop (call $send (i32.const 200) (i32.const 0) (i32.const 0)))))
