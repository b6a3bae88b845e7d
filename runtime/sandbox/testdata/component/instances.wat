;; A component of several instances, one of which defines a resource. The handler does what the first letter of the
;; request's path says. It traps if anything is not as in its first request.
(component
  (import "wasi:http/types@0.2.12" (instance $types
    (export "incoming-request" (type $request (sub resource)))
    (export "response-outparam" (type (sub resource)))
    (export "[method]incoming-request.path-with-query" (func (param "self" (borrow $request)) (result (option string))))))
  (alias export $types "incoming-request" (type $request))
  (alias export $types "response-outparam" (type $outparam))

  (component $things
    (core module $destroy
      (table (export "t") 1 funcref)
      (func (export "f") (param i32) (call_indirect (param i32) (local.get 0) (i32.const 0))))
    (core instance $destroy (instantiate $destroy))
    (type $thing' (resource (rep i32) (dtor (core func $destroy "f"))))
    (export $thing "thing" (type $thing'))
    (core func $new (canon resource.new $thing'))
    (core module $m
      (import "d" "t" (table 1 funcref))
      (import "" "new" (func $new (param i32) (result i32)))
      (global $live (mut i32) (i32.const 0))
      (func $destroyed (param i32)
        (if (i32.eq (local.get 0) (i32.const 666)) (then unreachable))
        (global.set $live (i32.sub (global.get $live) (i32.const 1))))
      (elem (i32.const 0) $destroyed)
      (func $start (drop (call $new (i32.const 1))))
      (start $start)
      (func (export "first") (result i32) (i32.const 1))
      (func (export "make") (param i32) (result i32)
        (global.set $live (i32.add (global.get $live) (i32.const 1)))
        (call $new (local.get 0)))
      (func (export "live") (result i32) (global.get $live))
      (func (export "spin") (loop $again (br $again)))
      (func (export "post") (drop (call $new (i32.const 1)))))
    (core instance $i (instantiate $m (with "d" (instance $destroy)) (with "" (instance (export "new" (func $new))))))
    (func (export "first") (result (own $thing)) (canon lift (core func $i "first")))
    (func (export "make") (param "n" u32) (result (own $thing)) (canon lift (core func $i "make")))
    (func (export "live") (result u32) (canon lift (core func $i "live")))
    (func (export "spin") (canon lift (core func $i "spin")))
    (core module $late-module (import "" "post" (func $post)) (func (export "f") (param i32) (call $post)))
    (core instance $late (instantiate $late-module (with "" (instance $i))))
    (func (export "late") (result u32) (canon lift (core func $i "live") (post-return (core func $late "f")))))

  (component $handler
    (import "types" (instance $types
      (export "incoming-request" (type $request (sub resource)))
      (export "response-outparam" (type (sub resource)))
      (export "[method]incoming-request.path-with-query" (func (param "self" (borrow $request)) (result (option string))))))
    (alias export $types "incoming-request" (type $request))
    (alias export $types "response-outparam" (type $outparam))
    (import "things" (instance $things
      (export "thing" (type $thing (sub resource)))
      (export "first" (func (result (own $thing))))
      (export "make" (func (param "n" u32) (result (own $thing))))
      (export "live" (func (result u32)))
      (export "spin" (func))
      (export "late" (func (result u32)))))
    (alias export $things "thing" (type $thing))
    (core module $lib
      (memory (export "memory") 1)
      (table (export "t") 1 funcref)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
      (func (export "deeper") (param i32) (result i32)
        (i32.add (i32.const 1) (call_indirect (param i32) (result i32) (local.get 0) (i32.const 0)))))
    (core instance $lib (instantiate $lib))
    ;; an instance that calls its parent
    (component $child
      (import "deeper" (func $deeper (param "n" u32) (result u32)))
      (core func $deeper' (canon lower (func $deeper)))
      (core module $m
        (import "" "deeper" (func $deeper (param i32) (result i32)))
        (func (export "down") (param i32) (result i32) (call $deeper (local.get 0))))
      (core instance $i (instantiate $m (with "" (instance (export "deeper" (func $deeper'))))))
      (func (export "down") (param "n" u32) (result u32) (canon lift (core func $i "down"))))
    (func $deeper (param "n" u32) (result u32) (canon lift (core func $lib "deeper")))
    (instance $child (instantiate $child (with "deeper" (func $deeper))))
    (core func $down (canon lower (func $child "down")))
    (core func $path (canon lower (func $types "[method]incoming-request.path-with-query") (memory (core memory $lib "memory")) (realloc (core func $lib "realloc"))))
    (core func $drop-request (canon resource.drop $request))
    (core func $first (canon lower (func $things "first")))
    (core func $make (canon lower (func $things "make")))
    (core func $live (canon lower (func $things "live")))
    (core func $spin (canon lower (func $things "spin")))
    (core func $late (canon lower (func $things "late")))
    (core func $drop (canon resource.drop $thing))
    (core module $m
      (import "lib" "memory" (memory 1))
      (import "lib" "t" (table 1 funcref))
      (import "" "down" (func $down (param i32) (result i32)))
      (import "" "path" (func $path (param i32 i32)))
      (import "" "drop-request" (func $drop-request (param i32)))
      (import "" "first" (func $first (result i32)))
      (import "" "make" (func $make (param i32) (result i32)))
      (import "" "live" (func $live (result i32)))
      (import "" "spin" (func $spin))
      (import "" "late" (func $late (result i32)))
      (import "" "drop" (func $drop (param i32)))
      (elem (i32.const 0) func $down)
      (global $used (mut i32) (i32.const 0))
      (func (export "handle") (param $request i32) (param $out i32)
        (local $letter i32)
        (call $path (local.get $request) (i32.const 64))
        (local.set $letter (i32.load8_u offset=1 (i32.load (i32.const 68))))
        (if (i32.or (i32.ne (local.get $request) (i32.const 1)) (i32.ne (local.get $out) (i32.const 2))) (then unreachable))
        (if (global.get $used) (then unreachable))
        (global.set $used (i32.const 1))
        (if (call $live) (then unreachable))
        (if (i32.ne (call $first) (i32.const 3)) (then unreachable))
        (if (i32.ne (call $make (i32.const 10)) (i32.const 4)) (then unreachable))
        (call $drop-request (local.get $request))
        (if (i32.ne (call $make (i32.const 10)) (i32.const 1)) (then unreachable))
        (call $drop (i32.const 4))
        (if (i32.ne (call $live) (i32.const 1)) (then unreachable))
        (if (i32.eq (local.get $letter) (i32.const 100)) (then (call $drop (call $make (i32.const 666)))))            ;; d: a destructor traps
        (if (i32.eq (local.get $letter) (i32.const 102)) (then (call $drop (i32.const 9))))                           ;; f: a forged handle
        (if (i32.eq (local.get $letter) (i32.const 116)) (then (call $drop (i32.const 1)) (call $drop (i32.const 1)))) ;; t: twice
        (if (i32.eq (local.get $letter) (i32.const 112)) (then (drop (call $late))))                                  ;; p: post-return
        (if (i32.eq (local.get $letter) (i32.const 115)) (then (call $spin)))                                         ;; s
        (if (i32.eq (local.get $letter) (i32.const 114)) (then (drop (call $down (i32.const 0)))))                    ;; r: recursion
        (if (i32.eq (local.get $letter) (i32.const 109)) (then (loop $more (drop (call $make (i32.const 10))) (br $more)))))) ;; m: many
    (core instance $i (instantiate $m (with "lib" (instance $lib)) (with "" (instance
      (export "down" (func $down)) (export "path" (func $path)) (export "drop-request" (func $drop-request)) (export "first" (func $first))
      (export "make" (func $make)) (export "live" (func $live)) (export "spin" (func $spin)) (export "late" (func $late)) (export "drop" (func $drop))))))
    (func (export "handle") (param "request" (own $request)) (param "response-out" (own $outparam)) (canon lift (core func $i "handle"))))

  (instance $things (instantiate $things))
  (instance $handler (instantiate $handler (with "types" (instance $types)) (with "things" (instance $things))))
  (instance $exported (export "handle" (func $handler "handle")))
  (export "wasi:http/incoming-handler@0.2.12" (instance $exported)))
