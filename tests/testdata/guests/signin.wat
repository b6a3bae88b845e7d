;; Handlers that open sessions in unusual ways.
(module
  (import "runner" "response_header" (func $response_header (param i32 i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $response_send (param i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "sessions.create")
  (data (i32.const 32) "{\"userId\":\"ann\"}")
  (data (i32.const 64) "Cache-Control")
  (data (i32.const 80) "public, max-age=60")
  (data (i32.const 112) "CDN-Cache-Control")

  (func $create
    (if (i32.lt_s (call $call (i32.const 0) (i32.const 15) (i32.const 32) (i32.const 16)) (i32.const 0)) (then unreachable)))
  (func $answer
    (drop (call $response_send (i32.const 200) (i32.const 0) (i32.const 0))))

  ;; cached allows caches to store the response that signs in
  (func (export "cached")
    (drop (call $response_header (i32.const 64) (i32.const 13) (i32.const 80) (i32.const 18)))
    (drop (call $response_header (i32.const 112) (i32.const 17) (i32.const 80) (i32.const 18)))
    (call $create)
    (call $answer))

  ;; twice signs in twice
  (func (export "twice")
    (call $create)
    (call $create)
    (call $answer))
)
