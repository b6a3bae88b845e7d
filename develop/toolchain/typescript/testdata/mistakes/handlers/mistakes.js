// Common mistakes. v8.json has what Node.js says to each: make.mjs writes it. What begins with exact
// must say the same here; others may have the text of the engine.
export function exact1() {
  const o = {}; o.get();
}
export function exact2() {
  const o = { a: {} }; o.a.b();
}
export function exact3() {
  let x; x();
}
export function exact4() {
  let x = 5; x(1, 2);
}
export function exact5() {
  undefined.x;
}
export function exact6() {
  let o; o.name;
}
export function exact7() {
  let o = null; return o.length;
}
export function exact8() {
  let o; return o[1];
}
export function exact9() {
  let o, k = "y"; return o[k];
}
export function exact10() {
  let o; o.x = 1;
}
export function exact11() {
  let o = null; o[3] = 1;
}
export function exact12() {
  let a; return a.b.c;
}
export function exact13() {
  const a = {}; return a.b.c;
}
export function exact14() {
  const a = {}; return a.b.c();
}
export function exact15() {
  const a = { b: [] }; return a.b[0].c;
}
export function exact16() {
  undefined.foo();
}
export function exact17() {
  const s = "x"; s.foo();
}
export function exact18() {
  const f = () => 1; f().foo();
}
export function exact19() {
  const o = {}, k = "z"; o[k]();
}
export function exact20() {
  const o = {}; o.f?.(); o.g();
}
export function exact21() {
  const o = {}; o.a`x`;
}
export function exact22() {
  let f = 5; f`x`;
}
export function exact23() {
  this_(); function this_() { ({}).x.y.z; }
}
export function exact24() {
  const o = {}; o.a++; o.b.c++;
}
export function exact25() {
  const o = {}; o.b.c += 1;
}
export function exact26() {
  const a = {}; a.b.c = 1;
}
export function exact27() {
  const o = {}; ({ x: o.y.z } = { x: 1 });
}
export function exact28() {
  const m = new Map(); return m.get("x").y;
}
export function other29() {
  const o = {}; o.x(1)(2);
}
export function exact30() {
  class A { constructor() { this.q(); } } new A();
}
export function exact31() {
  const q = { query: {} }; return q.query.get("a");
}
export function exact32() {
  const q = { query: { get() {} } }; return q.query.get("a").trim();
}
export function exact33() {
  const q = { headers: { get: () => "x" } }; return q.headers.get("a").foo(1, "b");
}
export function other34() {
  const q = { items: 1 }; for (const x of q.items.all()) console.log(x);
}
export function exact35() {
  const list = {}; for (const x of list) console.log(x);
}
export function other36() {
  const list = 5; return [...list];
}
export function exact37() {
  let list; for (const x of list) console.log(x);
}
export function exact38() {
  const Thing = 5; return new Thing();
}
export function exact39() {
  let Thing; return new Thing(1);
}
export function exact40() {
  const arrow = () => 1; return new arrow();
}
export function exact41() {
  q; let q = 1;
}
export function exact42() {
  nope;
}
export function exact43() {
  nope();
}
export function exact44() {
  nope.x();
}
export function exact45() {
  const x = {}; return x?.a.b;
}
export function exact46() {
  const o = {}; return o?.a();
}
export function exact47() {
  const a = {}; return `${a.b.c}`;
}
export function other48() {
  const o = {}; return [1].map((x) => o.f(x));
}
export function exact49() {
  const o = {}; return o.a.b(() => { return 1; });
}
export function exact50() {
  const o = {}; o.then((x) => { console.log(x); }, (y) => y);
}
export function exact51() {
  const o = { f() { return 1; } }; const x = o.f(); return x.g();
}
export function exact52() {
  const o = {}; return JSON.stringify(o.f(1)) + o.g;
}
export function other53() {
  const o = {}, p = { q: 1 }; return o.f(p.q, { a: [1, 2] }, "(");
}
export function other54() {
  const fs = { a: {} }; return fs.a.run(fs, (z) => z / 2);
}
export function exact55() {
  class A extends Object { constructor() { this.x = 1; } } new A();
}
export function other56() {
  const o = {}; o["a-b"]();
}
export function other57() {
  const a = []; a[0]();
}
export function other58() {
  (function () { return 1; })()();
}
export function other59() {
  const m = new Map(); m.get("x")();
}
export function other60() {
  const m = new Map(), k = () => "x"; m.get(k())();
}
export function other61() {
  const f = () => 1, g = () => 2; return f(g())();
}
export function other62() {
  const f = (x) => x, g = () => 2; f(1); return "abc"["x"]();
}
export function other63() {
  const o = { f() {} }; o.f(); (void 0)();
}
export function other64() {
  const o = { f() { return {}; } }; return o.f()["a"]();
}
export function other65() {
  const o = { f: (x) => x }; return o.f(() => { o.f(1); })(1)(2);
}
export function other66() {
  const o = {}; (o.a || o.b)();
}
export function other67() {
  const o = {}; new o.x();
}
export function other68() {
  const it = { items: () => ({ [Symbol.iterator]: () => ({}) }) }; for (const x of it.items()) console.log(x);
}
export function other69() {
  const it = { items: () => ({ [Symbol.iterator]: () => ({}) }) }; const [a] = it.items(); return a;
}
export function other70() {
  const it = { items: () => ({ [Symbol.iterator]: () => ({}) }) }; return [...it.items()];
}
export function other71() {
  const { a } = undefined;
}
export function other72() {
  const [a] = undefined;
}
export function other73() {
  const [a] = {};
}
export function other74() {
  return [...5];
}
export function other75() {
  Math.max(...5);
}
export function other77() {
  1 instanceof 2;
}
export function other78() {
  "a" in "b";
}
export function other79() {
  class A {} A();
}
export function other80() {
  Symbol() + "";
}
export function other81() {
  1n + 1;
}
export function other82() {
  let list; return [...list];
}
export function other83() {
  const list = null; return [1, ...list];
}
export function other84() {
  [].reduce((a, b) => a);
}
export function other85() {
  [1].map(5);
}
export function other86() {
  [1].map();
}
export function other87() {
  new Promise();
}
export function other88() {
  Promise.resolve.call(1);
}
export function other89() {
  const p = new Proxy({}, { get: 5 }); p.x();
}
export function other90() {
  const o = { [Symbol.toPrimitive]: 1 }; const f = () => 1; return f() + o;
}
export function other91() {
  throw new TypeError("not a function");
}
export function other92() {
  const fail = (m) => new TypeError(m); throw fail("not a function");
}
export function other93() {
  null[Symbol.iterator];
}
export function other94() {
  class A { #x; static t(o) { return o.#x; } } A.t({});
}
