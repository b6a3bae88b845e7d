// expect: the part of Jest's that most tests use.

import { isThenable } from "../src/plain.ts";
import { diff } from "./diff.ts";
import { comparable, equal, type How } from "./equal.ts";
import { Failure, Lazy, scope } from "./host.ts";
import { Asymmetric, brief, print } from "./print.ts";
import { compareSnapshot } from "./snapshot.ts";

/** Whether the value is as expected, and what to say if that is wrong. */
interface Verdict {
  pass: boolean;
  say: string;
  diff?: string;
}
type Matcher = (received: any, ...given: any[]) => Verdict;

const mostShort = 100; // characters of a difference on one line

const received = (value: unknown) => `received ${brief(value)}`;

/** Compares with a value. The difference is by lines if one line does not have room for it. */
function compare(pass: boolean, value: unknown, expected: unknown, how: How): Verdict {
  if (pass) return { pass, say: received(value) };
  const [left, right] = comparable(value, expected, how);
  const [have, want] = [print(left), print(right)];
  if (have === want) return { pass, say: `the values differ, and print alike: ${brief(value)}` };
  const texts = typeof value === "string" && typeof expected === "string";
  const short = `expected ${brief(right)}, received ${brief(left)}`;
  if (short.length <= mostShort && !short.includes("…") && !(texts && `${value}${expected}`.includes("\n"))) return { pass, say: short };
  if (texts) return { pass, say: "the texts differ", diff: diff(expected, value) };
  return { pass, say: "the values differ", diff: diff(want, have) };
}

const is = (what: string, pass: (value: any) => boolean): Matcher => (value) => ({ pass: pass(value), say: `expected ${what}, ${received(value)}` });

const order = (sign: string, pass: (a: number | bigint, b: number | bigint) => boolean): Matcher => (value, than) => {
  for (const one of [value, than]) if (typeof one !== "number" && typeof one !== "bigint") throw new Failure(`it compares numbers, and ${brief(one)} is none`);
  return { pass: pass(value, than), say: `expected a number ${sign} ${brief(than)}, ${received(value)}` };
};

function list(value: any): unknown[] {
  if (value === null || value === undefined || typeof value[Symbol.iterator] !== "function") throw new Failure(`it takes a list or a text, and ${brief(value)} is neither`);
  return [...value];
}

function property(value: any, path: string | (string | number)[]): { there: boolean; value: unknown } {
  const keys = Array.isArray(path) ? path : String(path).replace(/\[(\d+)\]/g, ".$1").split(".").filter((key) => key !== "");
  for (const key of keys) {
    if (value === null || value === undefined || !(key in Object(value))) return { there: false, value: undefined };
    value = value[key];
  }
  return { there: true, value };
}

const close = (value: number, to: number, digits: number) => value === to || Math.abs(value - to) < 10 ** -digits / 2;

/** Compares what was thrown. */
function thrown(did: boolean, error: any, ...given: unknown[]): Verdict {
  if (!did) return { pass: false, say: "the function threw nothing" };
  const [expected] = given;
  const text = error instanceof Error ? error.message : String(error);
  const threw = `it threw ${error instanceof Error ? Error.prototype.toString.call(error) : brief(error)}`;
  if (given.length === 0) return { pass: true, say: threw };
  if (typeof expected === "string") return { pass: text.includes(expected), say: `expected a message with ${brief(expected)}, ${threw}` };
  if (expected instanceof RegExp) return { pass: text.search(expected) >= 0, say: `expected a message that matches ${expected}, ${threw}` };
  if (typeof expected === "function") return { pass: error instanceof expected, say: `expected a ${expected.name}, ${threw}` };
  if (expected instanceof Asymmetric) return { pass: expected.matches(error), say: `expected ${expected.text}, ${threw}` };
  if (expected instanceof Error) return { pass: text === expected.message, say: `expected the message ${brief(expected.message)}, ${threw}` };
  throw new Failure("it takes a text, a RegExp, a class or an error");
}

const matchers: Record<string, Matcher> = {
  toBe(value, expected) {
    const verdict = compare(Object.is(value, expected), value, expected, "strict");
    if (!verdict.pass && equal(value, expected, "strict")) verdict.say = `these are two objects with equal content, ${brief(value)}: use toEqual`;
    return verdict;
  },
  toEqual: (value, expected) => compare(equal(value, expected), value, expected, "loose"),
  toStrictEqual: (value, expected) => compare(equal(value, expected, "strict"), value, expected, "strict"),
  toMatchObject(value, expected) {
    if (typeof expected !== "object" || expected === null) throw new Failure("it takes an object or a list");
    return compare(equal(value, expected, "subset"), value, expected, "subset");
  },
  toBeNull: is("null", (value) => value === null),
  toBeUndefined: is("undefined", (value) => value === undefined),
  toBeDefined: is("a value", (value) => value !== undefined),
  toBeTruthy: is("a value that is true as a condition", Boolean),
  toBeFalsy: is("a value that is false as a condition", (value) => !value),
  toBeNaN: is("NaN", Number.isNaN),
  toBeGreaterThan: order(">", (a, b) => a > b),
  toBeGreaterThanOrEqual: order(">=", (a, b) => a >= b),
  toBeLessThan: order("<", (a, b) => a < b),
  toBeLessThanOrEqual: order("<=", (a, b) => a <= b),
  toBeCloseTo: (value, to, digits = 2) => ({ pass: close(value, to, digits), say: `expected ${brief(to)} to ${digits} digits, ${received(value)}` }),
  toBeInstanceOf(value, made) {
    if (typeof made !== "function") throw new Failure("it takes a class");
    return { pass: value instanceof made, say: `expected a ${made.name}, ${received(value)}` };
  },
  toContain(value, item) {
    const pass = typeof value === "string" ? value.includes(item) : list(value).includes(item);
    return { pass, say: `expected ${brief(item)} in it, ${received(value)}` };
  },
  toContainEqual: (value, item) => ({ pass: list(value).some((one) => equal(one, item)), say: `expected ${brief(item)} in it, ${received(value)}` }),
  toHaveLength(value, length) {
    const have = value?.length;
    if (typeof have !== "number") throw new Failure(`it takes a value with a length, and ${brief(value)} has none`);
    return { pass: have === length, say: `expected the length ${brief(length)}, received ${have}: ${brief(value)}` };
  },
  toHaveProperty(value, path, ...expected) {
    const found = property(value, path);
    const at = brief(path);
    if (!found.there || expected.length === 0) return { pass: found.there, say: `expected ${at} in it, ${received(value)}` };
    const verdict = compare(equal(found.value, expected[0]), found.value, expected[0], "loose");
    return { ...verdict, say: `${at}: ${verdict.say}` };
  },
  toMatch(value, expected) {
    if (typeof value !== "string") throw new Failure(`it takes a text, and ${brief(value)} is none`);
    const pass = expected instanceof RegExp ? value.search(expected) >= 0 : value.includes(expected);
    return { pass, say: `expected ${expected instanceof RegExp ? expected : brief(expected)} in it, ${received(value)}` };
  },
  toThrow(value, ...expected) {
    if (typeof value !== "function") throw new Failure("it takes a function that throws: expect(() => …); for a promise write await expect(promise).rejects.toThrow()");
    let promise: unknown;
    try {
      promise = value();
    } catch (error) {
      return thrown(true, error, ...expected);
    }
    if (isThenable(promise)) {
      promise.then(null, () => {});
      throw new Failure("the function returns a promise: write await expect(promise).rejects.toThrow()");
    }
    return thrown(false, undefined, ...expected);
  },
  toMatchSnapshot(value, hint) {
    const test = scope("toMatchSnapshot");
    const { name, counts } = test;
    if (name === "") throw new Error("snapshots belong to a test, not to a hook of several");
    const title = hint === undefined ? name : `${name}: ${hint}`;
    const n = (counts.get(title) ?? 0) + 1;
    counts.set(title, n);
    const text = print(value);
    const before = compareSnapshot(test, `${title} ${n}`, text);
    return before === undefined ? { pass: true, say: "" } : { pass: false, say: `the snapshot ${brief(`${title} ${n}`)} differs`, diff: diff(before, text) };
  },
};

// What a promise can be without its value.
const ofPromises = ["toBe", "toBeInstanceOf"];

function judge(name: string, negated: boolean, value: unknown, given: unknown[], matcher = matchers[name]): void {
  const of = `${negated ? "not." : ""}${name}`;
  scope(`expect(…).${of}`).asserted++;
  if (isThenable(value) && !ofPromises.includes(name)) throw new Failure(`${of}: the value is a promise: await it, or write await expect(…).resolves.${of}(…)`);
  if (negated && name === "toMatchSnapshot") throw new Failure("toMatchSnapshot has no opposite: leave out not");
  let verdict: Verdict;
  try {
    verdict = matcher(value, ...given);
  } catch (error) {
    if (error instanceof Failure) throw new Failure(`${of}: ${error.message}`);
    throw error;
  }
  if (verdict.pass !== negated) return;
  throw new Failure(`${of}: ${verdict.say}`, negated ? "" : verdict.diff);
}

type Awaits = "resolves" | "rejects" | undefined;

/** Awaits what a promise gives or is rejected with, and judges that. */
async function judgeAwaited(awaits: Awaits, name: string, negated: boolean, value: unknown, given: unknown[]): Promise<void> {
  const promise = typeof value === "function" ? value() : value;
  if (!isThenable(promise)) throw new Failure(`${awaits}: the value is not a promise: ${brief(promise)}`);
  const outcome = await promise.then((value) => ({ value, kept: true }), (value) => ({ value, kept: false }));
  if (outcome.kept && awaits === "rejects") throw new Failure(`rejects: the promise was not rejected, it gave ${brief(outcome.value)}`);
  if (!outcome.kept && awaits === "resolves") throw new Failure(`resolves: the promise was rejected with ${brief(outcome.value)}`);
  judge(name, negated, outcome.value, given, awaits === "rejects" && name === "toThrow" ? (error, ...expected) => thrown(true, error, ...expected) : undefined);
}

/** A value with its matchers. */
class Expectation {
  readonly #value: unknown;
  readonly #negated: boolean;
  readonly #awaits: Awaits;
  constructor(value: unknown, negated = false, awaits?: Awaits) {
    this.#value = value;
    this.#negated = negated;
    this.#awaits = awaits;
  }
  get not(): Expectation {
    return new Expectation(this.#value, !this.#negated, this.#awaits);
  }
  get resolves(): Expectation {
    return new Expectation(this.#value, this.#negated, "resolves");
  }
  get rejects(): Expectation {
    return new Expectation(this.#value, this.#negated, "rejects");
  }
  judge(name: string, given: unknown[]): unknown {
    const awaits = this.#awaits;
    if (awaits === undefined) return judge(name, this.#negated, this.#value, given);
    return new Lazy<void>(`expect(…).${awaits}.${name}`, () => judgeAwaited(awaits, name, this.#negated, this.#value, given));
  }
}

for (const name of Object.keys(matchers)) {
  Object.defineProperty(Expectation.prototype, name, {
    value: function (this: Expectation, ...given: unknown[]) {
      return this.judge(name, given);
    },
  });
}

export const expect = (value: unknown) => new Expectation(value);

class Like extends Asymmetric {
  readonly text: string;
  readonly matches: (value: any) => boolean;
  constructor(name: string, negated: boolean, given: unknown[], matches: (value: any) => boolean) {
    super();
    this.text = `${negated ? "not." : ""}${name}(${given.map((one) => (typeof one === "function" ? one.name : brief(one))).join(", ")})`;
    this.matches = (value) => matches(value) !== negated;
  }
}

const primitives = new Map<unknown, string>([[Number, "number"], [String, "string"], [Boolean, "boolean"], [BigInt, "bigint"], [Symbol, "symbol"], [Function, "function"]]);

const likes = (negated: boolean) => ({
  objectContaining: (members: object) => new Like("objectContaining", negated, [members], (value) => typeof value === "object" && value !== null && equal(value, members, "subset")),
  arrayContaining: (items: unknown[]) => new Like("arrayContaining", negated, [items], (value) => Array.isArray(value) && items.every((item) => value.some((one) => equal(one, item)))),
  stringContaining: (part: string) => new Like("stringContaining", negated, [part], (value) => typeof value === "string" && value.includes(part)),
  stringMatching: (expression: RegExp | string) => new Like("stringMatching", negated, [expression], (value) => typeof value === "string" && value.search(expression) >= 0),
  closeTo: (to: number, digits = 2) => new Like("closeTo", negated, [to, digits], (value) => typeof value === "number" && close(value, to, digits)),
});

Object.assign(expect, likes(false), {
  not: likes(true),
  anything: () => new Like("anything", false, [], (value) => value !== null && value !== undefined),
  any(made: Function) {
    if (typeof made !== "function") throw new TypeError("expect.any takes a class: expect.any(String)");
    const kind = primitives.get(made);
    return new Like("any", false, [made], (value) => value instanceof made || (kind !== undefined && typeof value === kind) || (made === Object && typeof value === "object" && value !== null));
  },
  assertions(n: number) {
    scope("expect.assertions").expected = n;
  },
  hasAssertions() {
    scope("expect.hasAssertions").expected = -1;
  },
});
