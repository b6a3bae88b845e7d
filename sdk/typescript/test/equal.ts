// When values are equal.

import { Asymmetric, keysOf } from "./print.ts";

/**
 * loose: members that are undefined count as absent, and classes do not count, as for toEqual.
 * strict: they count, as for toStrictEqual. subset: only the members that are expected count, as for toMatchObject.
 */
export type How = "loose" | "strict" | "subset";

export function equal(received: any, expected: any, how: How = "loose", seen: [unknown, unknown][] = []): boolean {
  if (expected instanceof Asymmetric) return expected.matches(received);
  if (received instanceof Asymmetric) return received.matches(expected);
  if (Object.is(received, expected)) return true;
  if (typeof received !== "object" || typeof expected !== "object" || received === null || expected === null) return false;
  if (seen.some(([a, b]) => a === received && b === expected)) return true; // what is compared further up
  const special = equalSpecial(received, expected, how, seen);
  if (special !== undefined) return special;
  if (Array.isArray(received) !== Array.isArray(expected)) return false;
  if (how === "strict" && Object.getPrototypeOf(received) !== Object.getPrototypeOf(expected)) return false;
  const inside: typeof seen = [...seen, [received, expected]];
  if (Array.isArray(received)) {
    if (received.length !== expected.length) return false;
    for (let i = 0; i < received.length; i++) {
      if (how === "strict" && i in received !== i in expected) return false;
      if (!equal(received[i], expected[i], how, inside)) return false;
    }
    return true;
  }
  for (const key of keysOf(expected)) {
    const there = how === "subset" ? key in received : Object.hasOwn(received, key);
    if (!there && (how !== "loose" || expected[key] !== undefined)) return false;
    if (!equal(received[key], expected[key], how, inside)) return false;
  }
  if (how === "subset") return true;
  return keysOf(received).every((key) => Object.hasOwn(expected, key) || (how === "loose" && received[key] === undefined));
}

const textual = [Date, RegExp, URL, URLSearchParams, Number, String, Boolean];
// Their content cannot be compared: they are equal to themselves alone.
const opaque = [Promise, WeakMap, WeakSet, WeakRef, Request, Response, Blob, FormData, AbortSignal];

/** Compares objects whose content is not their members; undefined: these are others. */
function equalSpecial(received: any, expected: any, how: How, seen: [unknown, unknown][]): boolean | undefined {
  const both = (made: Function) => received instanceof made && expected instanceof made;
  const one = (made: Function) => received instanceof made || expected instanceof made;
  for (const made of textual) {
    if (both(made)) return made === Date ? Object.is(received.getTime(), expected.getTime()) : Object.is(String(received), String(expected));
    if (one(made)) return false;
  }
  if (opaque.some(one)) return false;
  if (both(Headers)) return equal([...received], [...expected]);
  if (both(Error)) {
    if (received.name !== expected.name || received.message !== expected.message) return false;
    return equal(received.cause, expected.cause, how, seen) && equal({ ...received }, { ...expected }, how, [...seen, [received, expected]]);
  }
  if (both(Map)) {
    if (received.size !== expected.size) return false;
    const others = new Map<unknown, unknown>(received);
    for (const [key, value] of expected) {
      const same = (other: unknown) => equal(other, key, how, seen) && equal(others.get(other), value, how, seen);
      const at = others.has(key) ? [key].filter(same) : [...others.keys()].filter(same);
      if (at.length === 0) return false;
      others.delete(at[0]);
    }
    return true;
  }
  if (both(Set)) {
    if (received.size !== expected.size) return false;
    const others = new Set<unknown>(received);
    for (const value of expected) {
      const at = others.has(value) ? [value] : [...others].filter((other) => equal(other, value, how, seen));
      if (at.length === 0) return false;
      others.delete(at[0]);
    }
    return true;
  }
  if (both(ArrayBuffer)) return equal(new Uint8Array(received), new Uint8Array(expected));
  if (ArrayBuffer.isView(received) && ArrayBuffer.isView(expected)) {
    if (received.constructor !== expected.constructor || received.byteLength !== expected.byteLength) return false;
    const a = new Uint8Array(received.buffer, received.byteOffset, received.byteLength);
    const b = new Uint8Array(expected.buffer, expected.byteOffset, expected.byteLength);
    return a.every((byte, i) => byte === b[i]);
  }
  if ([Headers, Error, Map, Set, ArrayBuffer].some(one) || ArrayBuffer.isView(received) || ArrayBuffer.isView(expected)) return false;
  return undefined;
}

const isPlain = (value: unknown): value is Record<string | symbol, unknown> =>
  typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value));

/** The pair for a difference: without what differs in form alone, as expect.any(…) that matches, or members that do not count. */
export function comparable(received: unknown, expected: unknown, how: How, depth = 0): [received: unknown, expected: unknown] {
  if (depth > 64) return [received, expected];
  if (expected instanceof Asymmetric) return expected.matches(received) ? [received, received] : [received, expected];
  if (Array.isArray(received) && Array.isArray(expected)) {
    const parts = expected.map((value, i) => (i < received.length ? comparable(received[i], value, how, depth + 1) : [undefined, value]));
    return [received.map((value, i) => (i < parts.length ? parts[i][0] : value)), parts.map(([, value]) => value)];
  }
  if (!isPlain(received) || !isPlain(expected)) return [received, expected];
  const left: Record<string | symbol, unknown> = {};
  const right: Record<string | symbol, unknown> = {};
  const counts = (value: unknown) => how !== "loose" || value !== undefined;
  for (const key of keysOf(expected)) {
    if (!(key in received) && counts(expected[key])) right[key] = expected[key];
    else if (key in received) [left[key], right[key]] = comparable(received[key], expected[key], how, depth + 1);
  }
  if (how !== "subset") for (const key of keysOf(received)) if (!Object.hasOwn(expected, key) && counts(received[key])) left[key] = received[key];
  return [left, right];
}
