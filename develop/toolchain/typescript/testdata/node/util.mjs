import util, { inspect, format, promisify, callbackify, isDeepStrictEqual as same, types, deprecate, inherits } from "node:util";

class Point {
  constructor() {
    this.x = 1;
    this.y = { z: [1, 2, { a: 1 }] };
  }
}
class Sub extends Map {}
const circular = { name: "c", list: [] };
circular.self = circular;
circular.list.push(circular.list);

const values = {
  plain: [1, -0, "a'b", 'a"b\'c', "line\n\t\u0001", true, null, undefined, 10n, Symbol("s"), NaN],
  nested: { a: { b: { c: { d: 1 } } }, "odd key": 1, [Symbol("k")]: 2 },
  empty: [{}, [], new Map(), new Set(), "", () => {}, Object.create(null)],
  sparse: [1, , , 2, undefined],
  extra: Object.assign([1, 2], { more: true }),
  map: new Map([["a", { b: 1 }], [{ k: 1 }, [1]]]),
  set: new Set([1, "a", { x: 1 }]),
  classes: [new Point(), Point, Sub, new Sub([[1, 2]]), class {}],
  functions: [function named() {}, () => {}, async () => {}, function* gen() {}, Object.assign(function f() {}, { a: 1 })],
  dates: [new Date(0), new Date(NaN)],
  regexp: /a\/b/gi,
  boxed: [Object("s"), Object(1), Object(false), Object(2n)],
  typed: [new Uint8Array([1, 2, 3]), new Float64Array(2), new ArrayBuffer(3), Buffer.from("abc")],
  getters: { get a() { return 1; }, set b(v) {}, get c() { return 1; }, set c(v) {} },
  long: Array.from({ length: 120 }, (_, i) => i * 7),
  ones: Array.from({ length: 7 }, (_, i) => i),
  mixed: Array.from({ length: 26 }, (_, i) => "x".repeat((i * 7) % 20)),
  floats: Array.from({ length: 40 }, (_, i) => i / 7),
  shorts: Array.from({ length: 20 }, (_, i) => "ab".slice(i % 2)),
  objects: Array.from({ length: 8 }, (_, i) => ({ i })),
  words: Array.from({ length: 30 }, (_, i) => "word" + "x".repeat(i % 5)),
  wide: { alpha: "a".repeat(40), beta: "b".repeat(40), gamma: [1, 2, 3] },
  deepWide: { one: { two: { text: "some longer text in here", other: "and another text that is long" }, list: ["aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccc"] } },
  circular,
  tagged: Object.assign(Object.create({ get [Symbol.toStringTag]() { return "Tag"; } }), { a: 1 }),
  nullProto: Object.assign(Object.create(null), { a: 1 }),
  custom: { [inspect.custom]: (depth, options) => `custom ${depth} ${typeof options.stylize}` },
  nestedCustom: { a: { [inspect.custom]: () => ({ replaced: 1 }) } },
  args: (function () { return arguments; })(1, "b"),
  manyKeys: Object.fromEntries(Array.from({ length: 30 }, (_, i) => ["key" + i, i])),
  mapNested: new Map([["k", new Map([["l", new Set([1])]])]]),
};

export const cases = {
  ...Object.fromEntries(Object.entries(values).map(([name, value]) => [`inspect ${name}`, () => inspect(value)])),
  options: () => [
    inspect(values.nested, { depth: 0 }), inspect(values.nested, { depth: null }), inspect(values.nested, { compact: false }), inspect(values.long, { maxArrayLength: 3 }),
    inspect("x".repeat(50), { maxStringLength: 5 }), inspect({ b: 1, a: 2 }, { sorted: true }), inspect(values.wide, { breakLength: Infinity }), inspect(values.getters, { getters: true }), inspect({ a: [1] }, false, 0),
  ],
  format: () => [
    format("%s %d %i %f %j %o %O %%", "a", "12.5", "12.5", "1.5", { a: 1 }, [1], { b: { c: 1 } }), format("%s", null, { a: 1 }), format("a", "b", 1), format("%s"), format(1, "%s", 2), format("%s %s", Symbol("x"), -0), format("%d", 5n),
    format("%c styled", "css"), format("100%"), format("%x", 1), format("%s", { toString: () => "own" }), format("%s", [1, [2]]), format(), format("%s", new Date(0)), format("%j", circular),
  ],
  promisify: async () => {
    const ok = promisify((a, b, back) => back(null, a + b));
    const bad = promisify((back) => back(new TypeError("no")));
    return [await ok(1, 2), await bad().catch((e) => e.message), promisify(ok) !== undefined];
  },
  callbackify: () => new Promise((done) => callbackify(async (x) => x * 2)(4, (error, value) => done([error, value]))),
  callbackifyFails: () => new Promise((done) => callbackify(async () => { throw new Error("no"); })((error) => done(error.message))),
  same: () => [
    same({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }), same([1], ["1"]), same(new Map([[{ a: 1 }, 1]]), new Map([[{ a: 1 }, 1]])), same(new Set([[1], [2]]), new Set([[2], [1]])), same(new Date(1), new Date(1)), same(NaN, NaN), same(0, -0),
    same(/a/g, /a/i), same({}, []), same(new Uint8Array([1]), new Uint8Array([1])), same(Buffer.from("a"), new Uint8Array([97])), same({ a: undefined }, {}), same(new Error("a"), new Error("b")), same(Object("a"), Object("b")), same(new Point(), { ...new Point() }), same([1, , 2], [1, undefined, 2]), same(circular, circular),
  ],
  types: () => Object.keys(types).filter((name) => !/External|Proxy|KeyObject|CryptoKey|EventTarget|Float16|ModuleNamespace/.test(name)).sort().map((name) => [name, [new Date(), /a/, new Map(), new Set(), Promise.resolve(), new Error("x"), new Uint8Array(1), new ArrayBuffer(1), async () => {}, function* () {}, new DataView(new ArrayBuffer(1)), Object("a"), Object(1), (function* () {})(), new Map().keys(), {}, 5, null].map((v) => types[name](v)).map(Number).join("")]),
  inherits: () => {
    function A() {}
    function B() {}
    A.prototype.hi = () => "hi";
    inherits(B, A);
    return [new B().hi(), B.super_ === A];
  },
  deprecate: () => deprecate((a) => a + 1, "old")(1),
  small: () => [util.stripVTControlCharacters("\u001b[31mred\u001b[0m"), util.toUSVString("a\ud800"), util.isArray([]), util.types.isDate(new Date()), typeof util.TextEncoder, util.inspect.custom.toString(), util.promisify.custom.toString()],
  badPromisify: () => promisify(5),
  badInherits: () => inherits(null, Point),
  errorsWithoutStack: () => {
    class Own extends Error {}
    const bare = (error) => Object.defineProperty(error, "stack", { value: `${error.name}: ${error.message}` });
    const errors = [bare(new Error("a")), bare(new TypeError("b")), bare(new Own("c")), bare(Object.assign(new Error("d"), { code: "E_D" })), bare(new Error("e", { cause: bare(new Error("f")) }))];
    return [errors.map((error) => inspect(error)), inspect(errors), format("%s", errors[0])];
  },
  deep: () => inspect([[[new Map(), new Set(), [], [1], new Map([[1, 2]])]]]),
  webClasses: () => [inspect(new URL("http://u@a.b:1/c?d=1#e")), inspect(new URLSearchParams("a=1&b=2")), inspect({ p: new URLSearchParams() })],
  tags: () => [inspect({ [Symbol.toStringTag]: "Own", a: 1 }), inspect(new (class { get [Symbol.toStringTag]() { return "Other"; } })())],
  withoutPrototype: () => [inspect(Object.setPrototypeOf(new Map([[1, 2]]), null)), inspect(Object.setPrototypeOf(() => {}, null)), inspect(Object.setPrototypeOf(new Date(0), null))],
  boxed: () => format("%s %s %s", Object("a"), Object(1), [1, [2, [3]]]),
  oldCompact: () => inspect({ first: "x".repeat(30), second: "y".repeat(30), third: [1, 2] }, { compact: true }),
};
