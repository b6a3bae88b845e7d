;; The self-test of the engine's optimizations. Each export traps if its expectation
;; does not hold. wat2wasm makes selftest.wasm from it.
(module
  (memory (export "memory") 1)
  (global $state (mut i32) (i32.const 0))
  (global $wide (mut i64) (i64.const -2))
  (global $real (mut f64) (f64.const 1.5))

  (func (export "_initialize")
    (i32.store (i32.const 4096) (i32.const 0x600d))
    (global.set $state (i32.const 7)))

  (func $assert (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))

  ;; pristine: memory and globals are as _initialize left them, and the memory
  ;; has its first size
  (func (export "pristine")
    (call $assert (i32.eq (memory.size) (i32.const 1)))
    (call $assert (i32.eq (i32.load (i32.const 4096)) (i32.const 0x600d)))
    (call $assert (i32.eqz (i32.load (i32.const 8192))))
    (call $assert (i32.eqz (i32.load (i32.const 65532))))
    (call $assert (i32.eq (global.get $state) (i32.const 7)))
    (call $assert (i64.eq (global.get $wide) (i64.const -2)))
    (call $assert (f64.eq (global.get $real) (f64.const 1.5))))

  ;; dirty: writes to three pages and all globals
  (func (export "dirty")
    (i32.store (i32.const 4096) (i32.const 0xbad))
    (i32.store (i32.const 8192) (i32.const 0xbad))
    (i32.store (i32.const 65532) (i32.const 0xbad))
    (global.set $state (i32.const 1))
    (global.set $wide (i64.const 1))
    (global.set $real (f64.const 0)))

  ;; grow: a page more, written to from end to end
  (func (export "grow")
    (call $assert (i32.eq (memory.grow (i32.const 1)) (i32.const 1)))
    (call $assert (i32.eqz (i32.load (i32.const 65536))))
    (call $assert (i32.eqz (i32.load (i32.const 131068))))
    (i32.store (i32.const 65536) (i32.const 0xbad))
    (i32.store (i32.const 131068) (i32.const 0xbad)))

  ;; beyond: reads memory that only grow adds, and so must trap
  (func (export "beyond") (drop (i32.load (i32.const 65536))))

  ;; far beyond: reads behind all memory that an index can name
  (func (export "far beyond") (drop (i64.load offset=2147483640 (i32.const -1))))

  (func (export "trap") (global.set $state (i32.const 1)) unreachable)
  (func (export "spin") (loop (br 0)))

  (func $deep (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 0))))
  (func (export "deep") (call $assert (i32.eq (call $deep (i32.const 2000)) (i32.const 2000))))
  ;; deeper: more calls than the static bound of the stack allows; their real stack is smaller
  (func (export "deeper") (call $assert (i32.eq (call $deep (i32.const 20000)) (i32.const 20000))))
  (func (export "endless") (drop (call $deep (i32.const -1)))))
