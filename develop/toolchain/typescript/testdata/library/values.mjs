// Values of every kind, and texts that tell all of them apart. Node.js and handlers run the same code.

/** A generator of numbers: mulberry32. */
export class Random {
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

const numbers = [
  0, -0, 1, -1, 2, 3, 7, 10, 31, 32, 33, -31, -32, 255, 1000, 65535, 48271, 0.5, -0.5, 1.5, 1e-7, NaN, Infinity, -Infinity,
  2147483647, -2147483648, 2147483648, -2147483649, 4294967295, 4294967296, -4294967296, 4294967297.5, 4503599627370495.5,
  4503599627370496, -4503599627370497, 9007199254740991, 9007199254740992, -9007199254740992, 9007199254740994, 18014398509481984,
  9223372036854775808, 1.8446744073709552e19, 1e21, -1e21, 1e300, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
];

const scales = [1e-20, 1e-9, 1e-7, 1e-3, 1, 10, 1e3, 1e5, 1e10, 1e15, 1e19, 1e22]; // powers differ in the last bit

export function number(random) {
  switch (random.below(5)) {
    case 0: return random.below(100) - 50;
    case 1: return (random.below(2) ? -1 : 1) * random.below(4294967296) * random.pick([1, 1, 3, 65536, 0.25, 2097152, 1e9]);
    case 2: return random.below(4294967296) / 4294967296 * random.pick(scales);
    default: return random.pick(numbers);
  }
}

const texts = ["", "a", "b", "A", "12", " 7 ", "0x10", "-0", "1e3", "NaN", "ä", "€", "😀", "\ud83d", "constructor", "customer-12", "customer-3"];

export function text(random) {
  if (!random.chance(3)) return random.pick(texts);
  let made = random.pick(texts);
  for (let i = random.below(6); i > 0; i--) made += random.pick(texts);
  return made;
}

/** log receives the calls of what calls the program's code. */
export function value(random, log) {
  switch (random.below(12)) {
    case 0: return undefined;
    case 1: return null;
    case 2: return random.chance(2);
    case 3: return text(random);
    case 4: return BigInt(random.below(200) - 100); // larger ones would shift others for long
    case 5: return random.chance(3) ? Symbol("s") : [random.below(100)];
    case 6: {
      const of = number(random), fails = random.chance(5), name = log.length;
      return { valueOf() { log.push("valueOf " + name); if (fails) throw new RangeError("no number"); return of; } };
    }
    default: return number(random);
  }
}

/** What a value is, as a text. */
export function show(v, depth = 0) {
  switch (typeof v) {
    case "number": return Object.is(v, -0) ? "-0" : String(v);
    case "string": return JSON.stringify(v);
    case "bigint": return v + "n";
    case "symbol": return v.toString();
    case "function": return "function";
    case "object": {
      if (v === null) return "null";
      if (v instanceof Error) return v.name;
      if (depth > 3) return "…";
      if (ArrayBuffer.isView(v)) return v.constructor.name + "(" + Array.from(v, (x) => show(x)).join() + ")";
      if (v instanceof Map) return "Map" + show([...v], depth + 1);
      if (v instanceof Set) return "Set" + show([...v], depth + 1);
      if (Array.isArray(v)) return "[" + Array.from({ length: v.length }, (_, i) => (i in v ? show(v[i], depth + 1) : "")).join() + "]";
      return "{" + Reflect.ownKeys(v).map((k) => String(k) + ":" + show(v[k], depth + 1)).join() + "}";
    }
  }
  return String(v);
}

/** The result of a function, or the name of what it throws, and the calls that it made. */
export function outcome(make, log = []) {
  let result;
  try {
    result = show(make());
  } catch (error) {
    result = "throws " + (error instanceof Error ? error.name : show(error));
  }
  return result + (log.length > 0 ? " after " + log.join() : "");
}
