// util.isDeepStrictEqual and assert.deepEqual (Node.js, "assert", "Comparison details").

const { hasOwn, is, keys, getPrototypeOf, getOwnPropertySymbols } = Object;
const tag = (value: unknown): string => Object.prototype.toString.call(value);
const enumerable = (value: object) => getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));

/** Whether two values are equal; strictly: with the same types and prototypes. */
export function equal(a: any, b: any, strict: boolean, above: Map<unknown, unknown> = new Map()): boolean {
  if (a === b) return a !== 0 || !strict || is(a, b);
  const objects = typeof a === "object" && a !== null && typeof b === "object" && b !== null;
  if (!objects) {
    if (strict) return is(a, b);
    return (typeof a !== "object" || a === null) && (typeof b !== "object" || b === null) ? a == b || (a !== a && b !== b) : false;
  }
  if (strict && getPrototypeOf(a) !== getPrototypeOf(b)) return false;
  if (tag(a) !== tag(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  if (a instanceof Date && !(b instanceof Date && is(a.getTime(), b.getTime()))) return false;
  if (a instanceof RegExp && !(b instanceof RegExp && a.source === b.source && a.flags === b.flags && a.lastIndex === b.lastIndex)) return false;
  if (a instanceof Error) {
    if (!(b instanceof Error) || a.name !== b.name || a.message !== b.message) return false;
    if (!equal(a.cause, b.cause, strict, above) || hasOwn(a, "cause") !== hasOwn(b, "cause")) return false;
  }
  if (a instanceof URL && !(b instanceof URL && a.href === b.href)) return false;
  for (const kind of [String, Number, Boolean, BigInt, Symbol] as any[]) {
    if (a instanceof kind && !(b instanceof kind && is(a.valueOf(), b.valueOf()))) return false;
  }
  if (above.get(a) === b) return true;
  above.set(a, b);
  try {
    return members(a, b, strict, above);
  } finally {
    above.delete(a);
  }
}

function members(a: any, b: any, strict: boolean, above: Map<unknown, unknown>): boolean {
  const same = (x: unknown, y: unknown) => equal(x, y, strict, above);
  let names = keys(a);
  if (ArrayBuffer.isView(a) && !(a instanceof DataView)) {
    const [x, y] = [a as unknown as number[], b as number[]];
    if (x.length !== y.length) return false;
    for (let i = 0; i < x.length; i++) if (strict ? !is(x[i], y[i]) : x[i] !== y[i]) return false;
    names = names.slice(x.length);
    if (keys(b).length - y.length !== names.length) return false;
  } else {
    if (a instanceof ArrayBuffer && !same(new Uint8Array(a), new Uint8Array(b))) return false;
    if (Array.isArray(a) && a.length !== b.length) return false;
    if (keys(b).length !== names.length) return false;
  }
  for (const name of names) if (!hasOwn(b, name) || !same(a[name], b[name])) return false;
  if (strict) {
    const symbols = enumerable(a);
    if (symbols.length !== enumerable(b).length) return false;
    for (const name of symbols) if (!hasOwn(b, name) || !same(a[name], b[name])) return false;
  }
  if (a instanceof Set) return a.size === b.size && sets([...a], b, same);
  if (a instanceof Map) return a.size === b.size && maps(a, b, same);
  return true;
}

/** Whether the items can be paired so that those of each pair are equal. */
function sets(items: unknown[], b: Set<unknown>, same: (x: unknown, y: unknown) => boolean): boolean {
  const rest = new Set(b);
  for (const item of items) {
    if (rest.delete(item)) continue;
    const found = [...rest].find((other) => same(item, other));
    if (found === undefined || !rest.delete(found)) return false;
  }
  return true;
}

function maps(a: Map<unknown, unknown>, b: Map<unknown, unknown>, same: (x: unknown, y: unknown) => boolean): boolean {
  const rest = new Map(b);
  for (const [key, value] of a) {
    if (rest.has(key) && same(value, rest.get(key))) {
      rest.delete(key);
      continue;
    }
    const found = [...rest].find(([k, v]) => same(key, k) && same(value, v));
    if (!found) return false;
    rest.delete(found[0]);
  }
  return true;
}
