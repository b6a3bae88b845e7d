;; slow0 to slow39 and quick are the same function, each a handler of its own. The first byte of
;; the body says what it does before it answers; the rest are the arguments of an operation.
(module
  (import "runner" "request_body" (func $request_body (param i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $response_send (param i32 i32 i32) (result i32)))
  (import "runner" "call" (func $call (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "fetch")
  (data (i32.const 16) "sleep")

  (func (export "quick")
    (export "slow0") (export "slow1") (export "slow2") (export "slow3") (export "slow4") (export
    "slow5") (export "slow6") (export "slow7") (export "slow8") (export "slow9") (export "slow10")
    (export "slow11") (export "slow12") (export "slow13") (export "slow14") (export "slow15")
    (export "slow16") (export "slow17") (export "slow18") (export "slow19") (export "slow20")
    (export "slow21") (export "slow22") (export "slow23") (export "slow24") (export "slow25")
    (export "slow26") (export "slow27") (export "slow28") (export "slow29") (export "slow30")
    (export "slow31") (export "slow32") (export "slow33") (export "slow34") (export "slow35")
    (export "slow36") (export "slow37") (export "slow38") (export "slow39")
    (local $does i32) (local $length i32)
    (local.set $length (i32.sub (call $request_body (i32.const 0) (i32.const 1024) (i32.const 4096)) (i32.const 1)))
    (local.set $does (i32.load8_u (i32.const 1024)))
    ;; l: loops
    (if (i32.eq (local.get $does) (i32.const 0x6c)) (then (loop $again (br $again))))
    ;; g: takes 56 MiB more, and sleeps
    (if (i32.eq (local.get $does) (i32.const 0x67)) (then
      (drop (memory.grow (i32.const 896)))
      (drop (call $call (i32.const 16) (i32.const 5) (i32.const 1025) (local.get $length)))))
    ;; s: sleeps
    (if (i32.eq (local.get $does) (i32.const 0x73)) (then
      (drop (call $call (i32.const 16) (i32.const 5) (i32.const 1025) (local.get $length)))))
    ;; f: fetches
    (if (i32.eq (local.get $does) (i32.const 0x66)) (then
      (drop (call $call (i32.const 0) (i32.const 5) (i32.const 1025) (local.get $length)))))
    (drop (call $response_send (i32.const 200) (i32.const 0) (i32.const 0)))))
