// Loops over arrays and patterns of arrays, of generated values, while the handler changes what they use.

import { Random, outcome } from "./values.mjs";

const arrayIterator = Object.getPrototypeOf([][Symbol.iterator]()), iterator = Object.getPrototypeOf(arrayIterator);

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

/** Something to iterate over. */
function iterable(random, kind, log) {
  const list = Array.from({ length: random.below(5) }, () => random.pick([1, "a", null, undefined, 0.5, [2, 3], { b: 1 }, "€"]));
  switch (kind) {
    case 0: return (class extends Array {}).from(list);
    case 1: return Object.assign(list, { [Symbol.iterator]: () => (log.push("own"), ["own"][Symbol.iterator]()) });
    case 2: delete list[0]; list.length += 1; return list;
    case 3: return new Uint8Array([1, 2, 300]);
    case 4: return "a€😀".slice(0, random.below(5));
    case 5: return new Map(list.map((x, i) => [i, x]));
    case 6: return (function* () { try { yield* list; } finally { log.push("ended"); } })();
    case 7: return new Proxy(list, { get: (of, name) => (log.push(String(name)), Reflect.get(of, name)) });
    case 8: return list.entries();
    case 9: return Object.defineProperty(list, 1, { configurable: true, get: () => (log.push("get"), 5) });
    case 10: return Object.setPrototypeOf(list, random.pick([null, Object.create(Array.prototype), { *[Symbol.iterator]() { yield "other"; } }]));
    case 11: return random.pick([undefined, null, 5, {}, { length: 1, 0: 2 }]);
    case 12: return Object.freeze(list);
    case 13: return /(.)(.)?(.)/.exec("abc");
    case 14: return Object.assign(list, { more: 1 });
    default: return list;
  }
}

const uses = [
  (of, log) => { const [a, b] = of; return [a, b]; },
  (of, log) => { const [, a = (log.push("default"), 9), ...b] = of; return [a, b]; },
  (of, log) => { const [[a], b] = of; return [a, b]; },
  (of, log) => { const [] = of; return 0; },
  (of, log) => { const out = []; for (const x of of) { out.push(x); if (out.length > 20) break; } return out; },
  (of, log) => { const out = []; for (const x of of) { if (out.push(x) === 2) break; } return out; },
  (of, log) => { for (const x of of) throw new Error("body"); return 1; },
  (of, log) => { const out = []; for (const x of of) { out.push(x); if (out.length === 1 && Array.isArray(of)) of.push("more"); if (out.length === 9) return out; } return out; },
  (of, log) => { const out = []; for (const x of of) { out.push(x); if (Array.isArray(of)) of.length = 1; } return out; },
  (of, log) => { const out = []; for (const x of of) { out.push(x); if (Array.isArray(of)) of[5] = 1; if (out.length === 9) break; } return out; },
  (of, log) => [...of],
  (of, log) => { let a, b = {}; [a, b[(log.push("key"), "k")]] = of; return [a, b]; },
  (of, log) => { const out = []; for (const x of of) for (const y of [1, 2]) out.push([x, y]); return out; },
  (of, log) => Math.max(...of),
  (of, log) => { const i = of[Symbol.iterator](); return [i.next(), i.next(), [...i], i.next()]; },
];

const next = arrayIterator.next;

const changes = [
  ...Array.from({ length: 4 }, () => (log, run) => run()),
  (log, run) => changing(arrayIterator, "next", { value() { log.push("next"); return next.call(this); } }, run),
  (log, run) => changing(arrayIterator, "next", { get() { log.push("get next"); return next; } }, run),
  (log, run) => changing(arrayIterator, "next", { value: () => ({ done: true }) }, run),
  (log, run) => changing(arrayIterator, "next", { value: undefined }, run),
  (log, run) => changing(arrayIterator, "return", { value() { log.push("return"); return {}; } }, run),
  (log, run) => changing(arrayIterator, "return", { value() { throw new Error("return"); } }, run),
  (log, run) => changing(iterator, "return", { value() { log.push("return"); return 1; } }, run),
  (log, run) => changing(Object.prototype, "return", { get() { log.push("get return"); return null; } }, run),
  (log, run) => changing(Array.prototype, Symbol.iterator, { value: Array.prototype.keys }, run),
  (log, run) => changing(Array.prototype, Symbol.iterator, { value: () => ({ next: () => ({ done: log.push("own next") > 3, value: 1 }) }) }, run),
  (log, run) => changing(Array.prototype, Symbol.iterator, { get() { log.push("get iterator"); return Array.prototype.values; } }, run),
  (log, run) => changing(Array.prototype, Symbol.iterator, { value: undefined }, run),
  (log, run) => changing(arrayIterator, Symbol.iterator, { value: () => [8][Symbol.iterator]() }, run),
  (log, run) => { const before = Object.getPrototypeOf(arrayIterator); try { Object.setPrototypeOf(arrayIterator, new Proxy({}, { get: (of, name) => void log.push("proxy " + String(name)) })); return run(); } finally { Object.setPrototypeOf(arrayIterator, before); } },
];

const letters = ["a", "b", ",", ", ", "\n", "ab", "é", "€", "😀", "\ud83d", "", "aab"];

/** What a seed begins with. */
function draw(seed) {
  const random = new Random(seed);
  return { random, use: random.pick(uses), change: random.pick(changes), kind: random.below(16) };
}

/**
 * Whether the engine means to do the same as Node.js. For ...of it reads the iterator twice. It ignores a method
 * return that is not a function, the length of a frozen array, and prototypes of arrays in some cases.
 */
export function comparable(seed) {
  const { change, kind } = draw(seed);
  return changes.indexOf(change) < 4 && ![7, 10, 12].includes(kind);
}

/** What becomes of something iterated in some way, and which code of the program it calls. */
export function result(seed) {
  const { random, use, change, kind } = draw(seed), log = [];
  let text = "";
  for (let n = random.below(30); n > 0; n--) text += random.pick(letters);
  const of = iterable(random, kind, log);
  return outcome(() => change(log, () => use(of, log)), log) + JSON.stringify([text.split(random.pick(letters)), text.split(random.pick(letters), random.below(4))]);
}
