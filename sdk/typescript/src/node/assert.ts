// node:assert.

import { coded, needFunction, wrongType } from "./errors.ts";
import { equal } from "./equal.ts";
import { inspect } from "./inspect.ts";

interface Details {
  message?: string;
  actual?: unknown;
  expected?: unknown;
  operator?: string;
}

class AssertionError extends Error {
  code: string;
  actual: unknown;
  expected: unknown;
  operator: string | undefined;
  generatedMessage: boolean;
  constructor({ message, actual, expected, operator }: Details) {
    super(message ?? text(operator, actual, expected));
    Object.defineProperty(this, "name", { value: "AssertionError", writable: true, configurable: true, enumerable: false });
    this.generatedMessage = message === undefined;
    this.code = "ERR_ASSERTION";
    this.actual = actual;
    this.expected = expected;
    this.operator = operator;
  }
}

const words: Record<string, string> = {
  deepStrictEqual: "Expected values to be strictly deep-equal:",
  deepEqual: "Expected values to be loosely deep-equal:",
  strictEqual: "Expected values to be strictly equal:",
  notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
  notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
  notStrictEqual: 'Expected "actual" to be strictly unequal to:',
};

function text(operator = "fail", actual: unknown, expected: unknown): string {
  const shown = (value: unknown) => inspect(value, { sorted: true, depth: 1000, maxArrayLength: null });
  const begin = words[operator];
  if (operator === "throws" || operator === "rejects") {
    const { name } = expected as { name?: string };
    return `The error is expected to be an instance of "${name}". Received "${(actual as any)?.name}"\n\nError message:\n\n${(actual as any)?.message}`;
  }
  if (begin === undefined) return operator === "fail" ? "Failed" : `${shown(actual)} ${operator} ${shown(expected)}`;
  return operator.startsWith("not") ? `${begin} ${shown(expected)}` : `${begin}\n\n${shown(actual)} !== ${shown(expected)}\n`;
}

/** Throws unless it holds. usual is the text without a message, if it is not that of the operator. */
function check(holds: unknown, message: unknown, actual: unknown, expected: unknown, operator: string, usual?: string): void {
  if (holds) return;
  if (message instanceof Error) throw message;
  const own = message !== undefined && message !== null;
  const error = new AssertionError({ message: own ? String(message) : usual, actual, expected, operator });
  error.generatedMessage = !own;
  throw error;
}

const loosely = (a: any, b: any): boolean => a == b || (a !== a && b !== b);

/** Whether an error matches what is expected: a class, a regular expression, members, or a function that accepts it. */
function matches(error: any, expected: any, message: unknown, operator: string): void {
  if (expected == null) return;
  if (expected instanceof RegExp) return check(expected.test(String(error)), message, error, expected, operator, `The input did not match the regular expression ${expected}. Input:\n\n${inspect(String(error))}\n`);
  if (typeof expected === "object") {
    if (!(expected instanceof Error) && Object.keys(expected).length === 0) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'error' may not be an empty object. Received {}");
    for (const key of [...Object.keys(expected), ...(expected instanceof Error ? ["name", "message"] : [])]) {
      const [have, want] = [error?.[key], expected[key]];
      if (want instanceof RegExp && typeof have === "string" ? want.test(have) : equal(have, want, true)) continue;
      check(false, message, error, expected, operator);
    }
    return;
  }
  if (expected.prototype !== undefined && error instanceof expected) return;
  if (expected === Error || Error.isPrototypeOf(expected)) {
    return check(false, message, error, expected, operator);
  }
  const result = expected.call({}, error);
  check(result === true, message, error, expected, operator, `The ${expected.name ? `"${expected.name}" ` : ""}validation function is expected to return "true". Received ${inspect(result)}\n\nCaught error:\n\n${error}`);
}

const nothing = Symbol("nothing");

function caught(does: any): any {
  needFunction("fn", does);
  try {
    does();
  } catch (error) {
    return error;
  }
  return nothing;
}

async function rejected(does: any): Promise<any> {
  const promise = typeof does === "function" ? does() : does;
  if (typeof promise?.then !== "function" && typeof does !== "function") throw wrongType("promiseFn", "of type function or an instance of Promise", does);
  if (typeof promise?.then !== "function") throw coded(TypeError, "ERR_INVALID_RETURN_VALUE", 'Expected instance of Promise to be returned from the "promiseFn" function');
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return nothing;
}

function thrown(error: any, expected: any, message: any, operator: string, given: number): void {
  if (typeof expected === "string") {
    if (given > 2) throw wrongType("error", "of type function or an instance of Error, RegExp, or Object", expected);
    if (error !== nothing && (error?.message ?? error) === expected) {
      throw coded(TypeError, "ERR_AMBIGUOUS_ARGUMENT", `The "error/message" argument is ambiguous. The error message "${expected}" is identical to the message.`);
    }
    [expected, message] = [undefined, expected];
  } else if (expected != null && typeof expected !== "object" && typeof expected !== "function") {
    throw wrongType("error", "of type function or an instance of Error, RegExp, or Object", expected);
  }
  if (error === nothing) {
    const kind = operator === "rejects" ? "rejection" : "exception";
    check(false, message instanceof Error ? message : `Missing expected ${kind}${expected?.name ? ` (${expected.name})` : ""}${message ? `: ${message}` : "."}`, undefined, expected, operator);
  }
  matches(error, expected, message, operator);
}

function notThrown(error: any, expected: any, message: any, operator: string): void {
  if (error === nothing) return;
  if (typeof expected === "string") [expected, message] = [undefined, expected];
  if (expected != null) {
    if (!(expected instanceof RegExp) && typeof expected !== "function") throw wrongType("expected", "of type function or an instance of RegExp", expected);
    if (!fits(error, expected)) throw error;
  }
  const kind = operator === "doesNotReject" ? "rejection" : "exception";
  check(false, `Got unwanted ${kind}${message ? `: ${message}` : "."}\nActual message: "${error?.message}"`, error, expected, operator);
}

/** Whether an error is one of a class, has a text, or is accepted by a function. */
function fits(error: any, expected: any): boolean {
  if (expected instanceof RegExp) return expected.test(String(error));
  if (expected.prototype !== undefined && error instanceof expected) return true;
  return !Error.isPrototypeOf(expected) && expected !== Error && expected.call({}, error) === true;
}

/** Throws if there are less than two values. */
function needTwo(given: number): void {
  if (given < 2) throw coded(TypeError, "ERR_MISSING_ARGS", 'The "actual" and "expected" arguments must be specified');
}

const truthy = (value: unknown, message: unknown, given: number): void =>
  check(value, message, value, true, "==", given === 0 ? "No value argument passed to `assert.ok()`" : "The expression evaluated to a falsy value");

/** Makes an assertion about two values. */
const compare = (operator: string, holds: (a: any, b: any) => boolean) =>
  function (a: unknown, b: unknown, message?: unknown): void {
    needTwo(arguments.length);
    check(holds(a, b), message, a, b, operator);
  };

/** Makes an assertion about a text and a pattern. */
const compareText = (operator: string, wanted: boolean, usual: string) => (value: string, pattern: RegExp, message?: unknown) => {
  if (!(pattern instanceof RegExp)) throw wrongType("regexp", "an instance of RegExp", pattern);
  const holds = typeof value === "string" && pattern.test(value) === wanted;
  check(holds, message, value, pattern, operator, typeof value === "string" ? `${usual} ${pattern}. Input:\n\n${inspect(value)}\n` : `The "string" argument must be of type string. Received ${inspect(value)}`);
};

function assert(...given: unknown[]): void {
  truthy(given[0], given[1], given.length);
}

const common: Record<string, unknown> = {
  AssertionError,
  ok: (...given: unknown[]) => truthy(given[0], given[1], given.length),
  fail(message?: unknown) {
    if (message instanceof Error) throw message;
    throw new AssertionError({ message: message === undefined ? undefined : String(message), operator: "fail" });
  },
  equal: compare("==", loosely),
  notEqual: compare("!=", (a, b) => !loosely(a, b)),
  strictEqual: compare("strictEqual", Object.is),
  notStrictEqual: compare("notStrictEqual", (a, b) => !Object.is(a, b)),
  deepEqual: compare("deepEqual", (a, b) => equal(a, b, false)),
  notDeepEqual: compare("notDeepEqual", (a, b) => !equal(a, b, false)),
  deepStrictEqual: compare("deepStrictEqual", (a, b) => equal(a, b, true)),
  notDeepStrictEqual: compare("notDeepStrictEqual", (a, b) => !equal(a, b, true)),
  match: compareText("match", true, "The input did not match the regular expression"),
  doesNotMatch: compareText("doesNotMatch", false, "The input was expected to not match the regular expression"),
  throws: (does: unknown, ...wanted: any[]) => thrown(caught(does), wanted[0], wanted[1], "throws", wanted.length + 1),
  doesNotThrow: (does: unknown, expected?: any, message?: any) => notThrown(caught(does), expected, message, "doesNotThrow"),
  rejects: async (does: unknown, ...wanted: any[]) => thrown(await rejected(does), wanted[0], wanted[1], "rejects", wanted.length + 1),
  doesNotReject: async (does: unknown, expected?: any, message?: any) => notThrown(await rejected(does), expected, message, "doesNotReject"),
  ifError(value: any) {
    if (value === null || value === undefined) return;
    throw new AssertionError({ message: `ifError got unwanted exception: ${value?.message ?? inspect(value)}`, actual: value, expected: null, operator: "ifError" });
  },
};

const strict = Object.assign((...given: unknown[]) => truthy(given[0], given[1], given.length), common, {
  equal: common.strictEqual,
  notEqual: common.notStrictEqual,
  deepEqual: common.deepStrictEqual,
  notDeepEqual: common.notDeepStrictEqual,
}) as any;
strict.strict = strict;

export default Object.assign(assert, common, { strict }) as any;
