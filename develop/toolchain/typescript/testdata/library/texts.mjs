// Texts, arrays and objects of generated values: what replaces matches, joins, sorts, looks up and adds properties.

import { Random, number, outcome, text, value } from "./values.mjs";

const expressions = [
  /[&<>"']/g, /a/g, /a|b/, /(a)|(b)/g, /(?:)/g, /()/gu, /./gu, /[^]/g, /\d+/g, /(\w)(\d)?/g, /é|€/g, /(?<n>a)/g, /b/y, /a/gy, /A/gi, /^|$/g, /(.)\1/g, /x*/g,
];

/** Replaces matches by what a function returns. */
function replaced(random, log) {
  const expression = random.pick(expressions), subject = random.pick(["", "a&b", "<a href=\"b\">", "abba", "12 ab 3", "é€a", "😀a\ud83d", text(random) + text(random)]);
  const again = new RegExp(expression.source, expression.flags), stop = random.chance(4) ? random.below(3) : -1, kind = random.below(8);
  again.lastIndex = random.chance(4) ? random.below(4) : 0;
  let calls = 0;
  const by = (...all) => {
    if (calls++ === stop) throw new Error("stop");
    log.push(all.map((x) => (typeof x === "object" ? JSON.stringify(x) : x ?? "")).join("|"));
    switch (kind) {
      case 0: return all[0].length;
      case 1: return undefined;
      case 2: return "€";
      case 3: return "$&$1";
      case 4: return subject.replace(/[a-z]/g, (c) => c.toUpperCase());
      case 5: again.lastIndex = 7; return subject.replace(again, () => "-") + again.lastIndex;
      case 6: return value(random, log);
      default: return all[0] + "x".repeat(random.below(3) === 0 ? 9000 : 2);
    }
  };
  const made = subject.replace(again, by);
  return [made.length > 1000 ? made.length : made, again.lastIndex, calls];
}

/** Joins values by template literals and concat. */
function joined(random, log) {
  const part = () => (random.chance(3) ? number(random) : random.chance(4) ? value(random, log) : random.chance(30) ? "long ".repeat(2000) : text(random));
  const a = part(), b = part(), c = part();
  switch (random.below(4)) {
    case 0: return `${a}`;
    case 1: return text(random).concat(...Array.from({ length: random.below(40) }, part)).slice(0, 300);
    case 2: return String.prototype.concat.call(a, b, c).slice(-300);
    default: return `<${a}>${b} ${c}</${a}>`.slice(0, 300);
  }
}

function fixed(random, log) {
  const n = random.chance(9) ? value(random, log) : random.chance(3) ? (random.below(200001) - 100000) / random.pick([1, 2, 4, 8, 10, 100, 1000, 3]) : number(random);
  return Number.prototype.toFixed.call(n, random.chance(8) ? value(random, log) : random.pick([0, 1, 2, 3, 4, undefined, 10, 101, -1, 2.5]));
}

const sign = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Functions that compare without contradiction. */
const orders = [
  (a, b) => a.key - b.key, (a, b) => b.key - a.key, (a, b) => sign(a.name, b.name), (a, b) => sign(b.name, a.name) || a.key - b.key,
  (a, b) => (a.key - b.key) / 7, (a, b) => String(Math.sign(a.key - b.key)), (a, b) => ({ valueOf: () => a.key - b.key }), () => 0, () => NaN, () => undefined,
  (a, b) => (a.key < b.key ? -Infinity : a.key > b.key ? Infinity : -0),
];

class List extends Array {}

function sorted(random, log) {
  const length = random.chance(3) ? random.below(200) : random.below(12), keys = 1 + random.below(2 * length + 1);
  const all = Array.from({ length }, (_, i) => ({ key: random.below(keys), name: "n" + random.below(keys) + (random.chance(9) ? "€" : ""), i }));
  if (random.chance(4)) all.sort((a, b) => a.key - b.key);
  const seen = (list) => Array.from({ length: list.length }, (_, i) => (i in list ? (list[i] === undefined ? "u" : list[i].i ?? list[i]) : "-")).join();
  const order = random.pick(orders);
  let calls = 0;
  switch (random.below(12)) {
    case 0: return seen(all.toSorted(order)) + " " + seen(all);
    case 1: // texts and other values without a function
      return Array.from({ length }, () => (random.chance(20) ? undefined : text(random))).sort().join("|");
    case 2:
      return Array.from({ length: length % 20 }, () => (random.chance(2) ? number(random) : text(random))).toSorted(random.chance(9) ? null : undefined).join("|");
    case 3: // undefined and holes
      for (let n = random.below(4); n > 0 && length > 0; n--) all[random.below(length)] = undefined;
      if (random.chance(2) && length > 0) delete all[random.below(length)];
      return seen(all.sort(order)) + " " + seen(all);
    case 4: { // an exception
      const stop = random.below(length + 1);
      try {
        all.sort((a, b) => { if (a.i === stop || b.i === stop) throw new Error("stop"); return order(a, b); });
      } catch (error) {
        return error.message + seen(all);
      }
      return seen(all);
    }
    case 5: return seen(List.from(all).sort(order)) + (List.from(all).toSorted(order) instanceof List);
    case 6: return seen(new Proxy(all, {}).sort(order));
    case 7: return "~" + seen(Object.freeze(all).sort(order));
    case 8: return seen(Array.prototype.sort.call({ ...all, length }, order));
    case 9: // the engine leaves elements that have not moved: Node.js writes them
      all.sort((a, b) => { if (calls++ === 0) random.pick([() => all.push(all[0]), () => (all.length = length >> 1), () => (all[0] = undefined), () => all.fill(undefined), () => Object.freeze(all), () => Object.setPrototypeOf(all, null)])(); return order(a, b); });
      return "~" + Array.prototype.map.call(all, (x) => (x === undefined ? "u" : x.i)).join.call(all.map ? all.map((x) => x?.i) : [], ",");
    case 10: { // a setter
      let set = "";
      Object.defineProperty(all, length, { get: () => all[0], set: (v) => { set += v?.i; }, configurable: true, enumerable: true });
      return "~" + seen(all.sort(order)) + set;
    }
    default: return seen(all.sort(order)) + (all.sort(order) === all);
  }
}

const atStart = new Map(), named = {};
for (let i = 0; i < 300; i++) {
  atStart.set("key".repeat(i % 9) + i, i);
  named["name".repeat(i % 7) + i] = i;
}

/** Looks up texts that are made at different times, and elements by numbers of every form. */
function found(random, log) {
  const i = random.below(320), list = [1, 2, 3], at = random.pick([0, 1, 2, 3, -0, -1, 0.5, NaN, 1e10, 2147483648, 4294967295]) * random.pick([1, 0.5, 2]);
  const from = random.pick([list, "abc", new Uint8Array([4, 5, 6]), { 1: "x", "0.5": "y", NaN: "z", "-1": "w" }, null, undefined, 7, value(random, log)]);
  return [atStart.get("key".repeat(i % 9) + i), named["name".repeat(i % 7) + i], ("key".repeat(i % 9) + i).slice(0, 3) in named, outcome(() => from[at])];
}

const compared = (random) => {
  const a = text(random), b = random.chance(3) ? a + text(random) : text(random);
  return [a < b, a <= b, a > b, a >= b, a === b, a == b, a + "" === b + "", [a, b].toSorted()[0]];
};

/** Makes objects with few names in many orders. */
function properties(random, log) {
  const names = ["a", "b", "c", "d", "e", "f", "lastIndex", "7"], proto = random.pick([Object.prototype, Array.prototype, null, { a: 1 }, { set b(v) { log.push("set " + v); } }]);
  const objects = [];
  for (let n = 4; n > 0; n--) {
    const made = random.chance(3) ? Object.create(proto) : random.chance(3) ? [1, 2] : random.chance(5) ? () => 1 : {};
    for (let i = random.below(10); i > 0; i--) {
      const name = random.pick(names);
      switch (random.below(14)) {
        case 0: Reflect.deleteProperty(made, name); break;
        case 1: Object.defineProperty(made, name, { value: i, writable: random.chance(2), enumerable: random.chance(2), configurable: true }); break;
        case 2: Object.defineProperty(made, name, { get: () => i, configurable: true }); break;
        case 3: if (random.chance(9)) Object.freeze(made); break;
        default: try { made[name] = i; } catch { /* it cannot be written, and some code may write silently */ }
      }
    }
    objects.push(typeof made === "function" ? Object.assign({}, made) : made);
  }
  const kind = random.below(3);
  const literal = kind === 0 ? { a: 1, b: 2, c: objects[0] } : kind === 1 ? { a: 1, b: [], d: 3, e: 4, f: 5 } : { b: 1, a: 2, ...objects[1] };
  return [objects.map((o) => Reflect.ownKeys(o).map((k) => String(k) + JSON.stringify(Object.getOwnPropertyDescriptor(o, k))).join()), Reflect.ownKeys(literal).join()];
}

const kinds = [replaced, joined, fixed, sorted, sorted, found, compared, properties];

/** What a seed makes. With "~" at the start: engines differ. */
export function result(seed) {
  const random = new Random(seed), log = [], kind = kinds[seed % kinds.length];
  const made = outcome(() => kind(random, log), log);
  return (made.includes("~") ? "~" : "") + kind.name + " " + made.replaceAll("\n", " ");
}
