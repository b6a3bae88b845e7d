// Expressions and texts from a seed, and what the methods of the language make of them. Node.js and
// handlers run the same code.

/** A generator of numbers: mulberry32. */
class Random {
  constructor(seed) {
    this.state = seed >>> 0;
  }
  below(n) {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % n;
  }
  chance(of) {
    return this.below(of) === 0;
  }
  pick(list) {
    return list[this.below(list.length)];
  }
}

const plain = ["a", "a", "a", "b", "b", "c", "A", "B", "x", "0", "1", "-", "_", " "];
const rare = ["\n", "\r", "k", "K", "s", "S", "ü", "Ü", "ß", "\u00a0", "ÿ"];
const wide = ["€", "\u017f", "\u212a", "Ā", "ā", "\u2028", "\u3000", "ω", "Ω", "\uffff"];
const pairs = ["😀", "\ud83d", "\ude00", "𐐀", "𐐨"];

/** What texts and expressions of one case are made of. */
function alphabet(random) {
  const letters = plain.slice(0, 3 + random.below(plain.length - 2));
  if (random.chance(2)) letters.push(random.pick(rare), random.pick(rare));
  if (random.chance(3)) letters.push(random.pick(wide), random.pick(wide));
  if (random.chance(6)) letters.push(...pairs);
  return letters;
}

const special = /[\\^$.*+?()[\]{}|/-]/;
const literal = (c, unicode) => (c === "\n" ? "\\n" : c === "\r" ? "\\r" : c === "-" && !unicode ? "-" : special.test(c) && c !== "-" ? "\\" + c : c);

/** Writes one expression. */
class Writer {
  constructor(random, letters, unicode) {
    Object.assign(this, { random, letters, unicode, groups: 0, names: 0, loops: 0 });
  }

  alternatives(depth) {
    const list = [this.sequence(depth)];
    while (this.random.chance(4)) list.push(this.random.chance(8) ? "" : this.sequence(depth));
    return list.join("|");
  }

  sequence(depth) {
    let out = "";
    for (let n = 1 + this.random.below(4); n > 0; n--) out += this.term(depth);
    return out;
  }

  term(depth) {
    const { random } = this;
    if (random.chance(14)) return random.pick(["^", "$", "\\b", "\\B"]);
    if (depth > 0 && random.chance(16)) return random.pick(["(?=", "(?!", "(?<=", "(?<!"]) + this.alternatives(depth - 1) + ")";
    if (this.groups > 0 && random.chance(16)) return "\\" + (1 + random.below(this.groups)) + this.quantifier(3);
    if (this.names > 0 && random.chance(20)) return "\\k<n" + (1 + random.below(this.names)) + ">";
    if (depth > 0 && random.chance(4)) {
      const saved = this.loops;
      let open = "(?:";
      if (random.chance(2)) {
        this.groups++;
        open = random.chance(4) ? `(?<n${++this.names}>` : "(";
      }
      this.loops++;
      const inside = this.alternatives(depth - 1);
      this.loops = saved;
      return open + inside + ")" + this.quantifier(2);
    }
    return this.character() + this.quantifier(2);
  }

  character() {
    const { random, letters, unicode } = this;
    if (random.chance(6)) return random.pick([".", "\\w", "\\W", "\\d", "\\D", "\\s", "\\S", "."]);
    if (random.chance(4)) return this.set();
    if (unicode && random.chance(80)) return random.pick(["\\p{L}", "\\P{Lu}", "\\p{Ll}", "\\u{1F600}", "\\p{Script=Greek}"]);
    return literal(random.pick(letters), unicode);
  }

  set() {
    const { random, letters } = this;
    let out = random.chance(3) ? "[^" : "[";
    for (let n = 1 + random.below(4); n > 0; n--) {
      if (random.chance(6)) out += random.pick(["\\w", "\\d", "\\s", "\\S", "\\W"]);
      else if (random.chance(3)) out += random.pick(["a-c", "0-9", "A-Z", "a-z", "\\u0080-\\u00ff", "ā-ω", "!-~", "x-\\uffff"]);
      else out += random.pick(letters).replace(/[\\\]^-]/, "\\$&").replace("\n", "\\n").replace("\r", "\\r");
    }
    return out + "]";
  }

  quantifier(of) {
    const { random } = this;
    if (!random.chance(of)) return "";
    const one = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{4}", "{1}", "*", "+", "?", "{0,}", "{3}"];
    const made = this.loops > 1 ? random.pick(["?", "{2}", "{1,2}"]) : random.pick(one);
    return made + (random.chance(4) ? "?" : "");
  }
}

/** Expressions as programs have them. */
const known = [
  [/^(\S+) (\S+) (\S+) \[([^\]]+)\] "(\w+) ([^"]*?) (HTTP\/[\d.]+)" (\d{3}) (\d+|-)/, '1.2.3.4 - bob [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326'],
  [/^(?<year>\d{4})-(?<month>\d{2})-(?<day>\d{2})(?:T(\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?(Z|[+-]\d\d:?\d\d)?)?$/, "2024-02-29T12:30:45.5Z"],
  [/^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i, "ada.lovelace@example.co.uk"],
  [/https?:\/\/([^\s/?#]+)([^\s?#]*)(\?[^\s#]*)?(#\S*)?/g, "see http://example.com/a/b?c=d#e and https://x.org."],
  [/\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|\b)){4}/g, "10.0.0.255 and 300.1.1.1, 8.8.8.8"],
  [/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, `say "a \\"b\\" c" and 'd' or "e`],
  [/\/\*[\s\S]*?\*\/|\/\/[^\n]*|[a-z_$][\w$]*|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[-+*/=<>!&|]+|\S/gi, "let x = a1 + 2.5e3; // note\n/* more */ y"],
  [/<(\w+)((?:\s+[\w-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+))?)*)\s*(\/?)>/g, `<a href="x" b=c d><br/><i>`],
  [/^\s+|\s+$/g, "  trim me \t\n"],
  [/([A-Z]+)([A-Z][a-z])|([a-z\d])([A-Z])/g, "parseHTTPResponse2Xml"],
  [/(?<=\$)\d+(?:,\d{3})*(?:\.\d\d)?(?!\d)/g, "pay $1,234.56 or $99 of 100"],
  [/\B(?=(\d{3})+(?!\d))/g, "1234567 12"],
  [/^(?:#{1,6})[ \t]+(.+?)[ \t]*#*$/gm, "# One\ntext\n## Two ##\n###no"],
  [/(\*\*|__)(?=\S)([\s\S]*?\S)\1|(\*|_)(?=\S)([\s\S]*?\S)\3/g, "a **bold** and _it_ and __x__ *"],
  [/^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(px|em|%)?$/, "-12.5e3px"],
  [/(.)\1+/gs, "aabbbc\n\nd"],
  [/^(?!.*(?:password|123))(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$/, "Passw0rdx"],
  [/(^|[^\\])\$\{(\w+)(?::-([^}]*))?\}/g, "a ${b} \\${c} ${d:-e f}"],
  [/[\u4e00-\u9fff]+|\p{L}+/gu, "abc 汉字 déjà ωΩ"],
  [/[a-zäöüß]+/gi, "Größe ÄPFEL und Straße"],
];

/** The more groups are repeated, the shorter is the text: an engine may need exponential time. */
function text(random, letters, source) {
  const repeated = source.match(/\)[*+{]/g)?.length ?? 0;
  const n = random.below(repeated > 1 ? 7 : repeated === 1 || !random.chance(4) ? 12 : 80);
  let out = "";
  for (let i = 0; i < n; i++) out += random.chance(5) && out !== "" ? out.slice(-1) : random.pick(letters);
  return out;
}

/** Changes a text at some places. */
function changed(random, text) {
  for (let n = random.below(4); n > 0; n--) {
    const at = random.below(text.length + 1);
    text = text.slice(0, at) + (random.chance(2) ? "" : random.pick(["a", " ", "1", '"', "\n", "é", "€", "."])) + text.slice(at + random.below(2));
  }
  return text;
}

/** One expression and a text; undefined: the expression is not valid. */
export function make(seed) {
  const random = new Random(seed);
  if (random.chance(8)) {
    const [expression, sample] = random.pick(known);
    return [new RegExp(expression.source, expression.flags), changed(random, sample)];
  }
  const letters = alphabet(random);
  let flags = "";
  for (const flag of "gimsy") if (random.chance(3)) flags += flag;
  const unicode = random.chance(4);
  if (unicode) flags += "u";
  if (random.chance(12)) flags += "d";
  const source = new Writer(random, letters, unicode).alternatives(2);
  try {
    return [new RegExp(source, flags), text(random, letters, source)];
  } catch {
    return undefined;
  }
}

/** Whether the engine means to do the same as Node.js: they differ for halves of characters and the flag u. */
export function comparable(seed) {
  const made = make(seed);
  return made === undefined || !made[0].unicode || !/[\ud800-\udfff]/.test(made[1]);
}

const shown = (m) => m && { list: [...m], index: m.index, groups: m.groups && { ...m.groups }, indices: m.indices && [...m.indices] };

/** What the methods make of an expression and a text, as JSON. */
export function result(seed) {
  const made = make(seed);
  if (made === undefined) return "not valid";
  const [expression, text] = made, out = [];
  const random = new Random(~seed);
  expression.lastIndex = random.chance(3) ? random.below(text.length + 2) : 0;
  for (let n = 0; n < 4; n++) {
    const m = expression.exec(text);
    out.push(shown(m), expression.lastIndex);
    if (!m || !(expression.global || expression.sticky)) break;
    if (m[0] === "") expression.lastIndex++;
  }
  expression.lastIndex = 0;
  out.push(text.replace(expression, random.pick(["", "-", "<é>", "€"])), expression.lastIndex, text.match(expression), text.split(expression), expression.lastIndex);
  switch (random.below(6)) {
    case 0:
      out.push(text.replace(expression, "<$1$&$<n1>>"));
      break;
    case 1:
      // Node.js gives a function "" for some captures that are undefined, as its matchAll says.
      out.push(text.replace(expression, (...all) => JSON.stringify(all.map((x) => x ?? ""))));
      break;
    case 2:
      out.push(text.split(expression, 20));
      break;
    case 3:
      out.push(expression.global ? [...text.matchAll(expression)].map(shown) : text.match(expression)?.length);
      break;
    case 4:
      out.push(text.match(expression), expression.test(text), expression.lastIndex);
      break;
    default:
      out.push(text.search(expression), expression.lastIndex);
  }
  if (random.chance(2)) { // what is known of an expression is kept after some uses
    const found = [];
    for (let n = 0; n < 40; n++) {
      if (n % 10 === 0) expression.lastIndex = 0;
      const m = expression.exec(text);
      if (n > 12) found.push(n === 39 ? shown(m) : m?.index, expression.lastIndex);
      if (m?.[0] === "") expression.lastIndex++;
    }
    expression.lastIndex = random.chance(3) ? random.below(text.length + 2) : 0;
    out.push(found, text.search(expression), expression.lastIndex, expression.test(text), expression.lastIndex, expression.flags);
    if (expression.global) out.push([...text.matchAll(expression)].map(shown), expression.lastIndex);
  }
  return JSON.stringify(out);
}

/** Changes an object's property while a function runs. */
function changing(object, name, descriptor, run) {
  const before = Object.getOwnPropertyDescriptor(object, name);
  try {
    Object.defineProperty(object, name, { configurable: true, ...descriptor });
    return run();
  } finally {
    if (before) Object.defineProperty(object, name, before);
    else delete object[name];
  }
}

/** The first values of an iterator, which may have no end. */
function* take(iterator) {
  let n = 0;
  for (const m of iterator) {
    yield m && typeof m === "object" ? [Array.isArray(m) ? [...m] : m, m.index, m.input, m.groups] : m;
    if (++n === 9) return;
  }
}

const matchesPrototype = Object.getPrototypeOf("".matchAll(/./g)), iteratorPrototype = Object.getPrototypeOf(matchesPrototype);

/** What all methods make of an expression, and which functions of the handler they call. */
function methods(expression, calls) {
  const out = [];
  for (const run of [
    (e) => "a1b22".replace(e, "-"), (e) => "a1b22".replace(e, (...all) => (calls.push("by"), all.length + "$&")), (e) => "a1b22".match(e), (e) => "a1b22".split(e), (e) => e.exec("a1b22"), (e) => e.test("a1b22"),
    (e) => "a1b22".search(e), (e) => e.flags, (e) => [...take("a1b22".matchAll(e))], (e) => [...take(e[Symbol.matchAll]("a1b22"))],
    (e) => { const m = e.exec("a1b22"); return [m && Object.getOwnPropertyNames(m), m && Object.keys(m), Array.isArray(m), m && m.push("x"), m]; },
  ]) {
    try {
      out.push(run(expression), typeof expression.lastIndex === "object" ? "object" : expression.lastIndex);
    } catch (error) {
      out.push(error.name);
    }
    out.push(calls.splice(0).join());
  }
  return out;
}

/** Expressions whose class or properties are not those of the language. */
const changes = [
  (made, calls) => methods(Object.assign(made(), { exec: () => (calls.push("exec"), null) }), calls),
  (made, calls) => methods(Object.assign(made(), { more: 1 }), calls),
  (made, calls) => methods(Object.assign(made(), { lastIndex: { valueOf: () => (calls.push("valueOf"), 1) } }), calls),
  (made, calls) => methods(Object.assign(made(), { lastIndex: 2.5 }), calls),
  (made, calls) => methods(Object.assign(made(), { lastIndex: -1 }), calls),
  (made, calls) => methods(Object.freeze(made()), calls),
  (made, calls) => methods(Object.defineProperty(made(), "lastIndex", { writable: false, value: 0 }), calls),
  (made, calls) => methods(Object.defineProperty(made(), "flags", { value: "" }), calls),
  (made, calls) => methods(new (class extends RegExp {})(made()), calls),
  (made, calls) => methods(Object.setPrototypeOf(made(), Object.create(RegExp.prototype, { exec: { value: () => (calls.push("exec"), null) } })), calls),
  (made, calls) => changing(RegExp.prototype, "exec", { value(text) { calls.push("exec"); return text.length > 99 ? [] : null; } }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, "flags", { get() { calls.push("flags"); return ""; } }, () => methods(made(), calls)),
  ...["global", "ignoreCase", "multiline", "dotAll", "unicode", "sticky", "hasIndices"].map((name) => (made, calls) => changing(RegExp.prototype, name, { get() { calls.push(name); return name !== "global" && name !== "sticky"; } }, () => methods(made(), calls))),
  (made, calls) => changing(RegExp.prototype, "constructor", { value: Object }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp, Symbol.species, { get() { calls.push("species"); return RegExp; } }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.replace, { value: () => (calls.push("replace"), "x") }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.split, { value: () => (calls.push("split"), []) }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.match, { value: false }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.match, { get() { calls.push("match"); return undefined; } }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.match, { value: () => (calls.push("match"), ["m"]) }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.matchAll, { value: () => (calls.push("matchAll"), ["m"]) }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.matchAll, { value: undefined }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, Symbol.search, { value: () => (calls.push("search"), 7) }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp.prototype, "test", { value: () => (calls.push("test"), 7) }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp, Symbol.species, { value: class extends RegExp { exec(text) { calls.push("exec"); return super.exec(text); } } }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp, Symbol.species, { value: function (e, flags) { calls.push("new"); return new RegExp(e, flags.replace("g", "")); } }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp, Symbol.species, { value: function (e) { calls.push("new"); return new RegExp(e, "gu"); } }, () => methods(made(), calls)),
  (made, calls) => changing(RegExp, Symbol.species, { value: function () { calls.push("new"); return { exec: () => ({ 0: "" }), get lastIndex() { calls.push("get"); return 1; }, set lastIndex(n) { calls.push("set " + n); } }; } }, () => methods(made(), calls)),
  (made, calls) => changing(matchesPrototype, "next", { value: () => (calls.push("next"), { done: true }) }, () => methods(made(), calls)),
  (made, calls) => changing(matchesPrototype, Symbol.iterator, { value: () => (calls.push("iterator"), [1, 2][Symbol.iterator]()) }, () => methods(made(), calls)),
  (made, calls) => changing(iteratorPrototype, Symbol.iterator, { value: () => (calls.push("iterator"), [1, 2][Symbol.iterator]()) }, () => methods(made(), calls)),
  (made, calls) => changing(matchesPrototype, "return", { value: () => (calls.push("return"), {}) }, () => methods(made(), calls).concat([...take("aaaaaaaaaaaaaaaa".matchAll(/a/g))].length, calls.splice(0))),
  (made, calls) => changing(Object.prototype, "return", { get() { calls.push("return"); return undefined; } }, () => methods(made(), calls).concat([...take("aaaaaaaaaaaaaaaa".matchAll(/a/g))].length, calls.splice(0))),
  (made) => { const i = "a1b22".matchAll(made().global ? made() : /\d/g); i.next = () => ({ done: true }); return [[...i], [...take(matchesPrototype.next.call("a1b22".matchAll(/\d/g)).value)]]; },
  (made) => { const i = "a1b22".matchAll(made().global ? made() : /\d/g); i[Symbol.iterator] = () => [7][Symbol.iterator](); return [...i]; },
  (made) => ["next" in matchesPrototype, ...[{}, [], made(), undefined].map((x) => { try { return matchesPrototype.next.call(x); } catch (error) { return error.name; } })],
  (made) => { const e = made(), i = "a1b22c333".matchAll(e.global ? e : /\d/g); i.next(); e.lastIndex = 4; return [i.next().value.index, e.lastIndex, i.next().done, i.next(), i.next()]; },
  (made) => { const e = made(); e.lastIndex = 2; const all = e.global ? [..."a1b22".matchAll(e)].map((m) => m.index) : 0; return [all, e.lastIndex]; },
  (made) => [..."12"].map(() => /^(?<a>\d)(?<b>x)?(?<__proto__>1)?/.exec("12")).map((m) => [Object.keys(m.groups), Object.getPrototypeOf(m.groups), delete m.groups.a, m.groups.a = 5, JSON.stringify(m.groups), m.groups]),
  (made) => { // Node.js 20 refuses it
    const e = new RegExp("(?:(?<a>\\d)|(?<a>x))(?<b>.)");
    return Array.from({ length: 40 }, () => e.exec("xy")).map((m) => [Object.entries(m.groups), m.groups.c = 1, Object.freeze(m.groups), Object.isFrozen(m.groups)]).at(-1);
  },
  (made) => { const e = /(?<first>\w)(?<second>\d)?/g, all = []; for (let n = 0; n < 40; n++) { const m = e.exec("a1b22"); all.push(m && Object.entries(m.groups)); if (m) { m.groups.more = n; delete m.groups.first; } } return all; },
  (made) => ["a1b22", new String("a1"), { toString: () => "b2" }, 12].map((text) => [made().exec(text)?.index, made().test(text), made()[Symbol.search](text), RegExp.prototype.exec.call(made(), text)?.input]),
  (made) => [undefined, null, 1, "a", { source: "a" }, /a/].map((self) => ["exec", "test", Symbol.search, Symbol.matchAll].map((name) => { try { return String(RegExp.prototype[name].call(self, "a1")); } catch (error) { return error.name; } })),
  (made) => [undefined, null, "1", { [Symbol.search]: () => 3, [Symbol.matchAll]: () => 4, [Symbol.match]: () => 5 }].map((x) => ["search", "match", "matchAll"].map((name) => { try { return JSON.stringify("a1"[name](x)); } catch (error) { return error.name; } })),
  (made, calls) => changing(Array.prototype, "0", { set() { throw new Error("set"); } }, () => methods(made(), { splice: () => calls })),
  (made) => ["a1b22".replace(made(), "$&$&"), "a1b22".replace(made(), () => "$1"), "a1b22".replace(made(), 1), "a1b22".replace(made(), undefined), "a1b22".split(made(), 1), "a1b22".split(made(), undefined)],
  (made) => [RegExp.prototype[Symbol.replace].call(made(), 12, "x"), RegExp.prototype[Symbol.split].call(made(), "a" + 1), RegExp.prototype[Symbol.match].call(made())],
];

/** What a change makes of some expressions, as JSON. */
export function resultOfChange(i) {
  return JSON.stringify([/\d/, /\d+/g, /\d/y, /(?:)/g, /()/gu, /(\w)(x)?/g].map((e) => {
    const have = [];
    try {
      have.push(changes[i](() => new RegExp(e.source, e.flags), []));
    } catch (error) {
      have.push(error.name);
    }
    return have;
  }));
}
export const changeCount = changes.length;
