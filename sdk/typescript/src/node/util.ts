// node:util.

import { coded, needFunction, wrongType } from "./errors.ts";
import { equal } from "./equal.ts";
import { custom, format, formatWithOptions, inspect } from "./inspect.ts";
import types from "./types.ts";

const customPromisify = Symbol.for("nodejs.util.promisify.custom");

/** Makes of a function with a callback a function that returns a promise. */
function promisify(does: any): any {
  needFunction("original", does);
  const own = does[customPromisify];
  if (own !== undefined) {
    needFunction("util.promisify.custom", own);
    return Object.defineProperty(own, customPromisify, { value: own, configurable: true });
  }
  function made(this: unknown, ...values: unknown[]) {
    return new Promise((done, failed) => {
      does.call(this, ...values, (error: unknown, ...results: unknown[]) => (error ? failed(error) : done(results[0])));
    });
  }
  Object.setPrototypeOf(made, Object.getPrototypeOf(does));
  Object.defineProperty(made, customPromisify, { value: made, configurable: true });
  return Object.defineProperties(made, Object.getOwnPropertyDescriptors(does));
}
promisify.custom = customPromisify;

/** Makes of a function that returns a promise a function with a callback. */
function callbackify(does: any): any {
  needFunction("original", does);
  function made(this: unknown, ...values: any[]) {
    const back = values.pop();
    needFunction("last argument", back);
    does.apply(this, values).then(
      (result: unknown) => queueMicrotask(() => back.call(this, null, result)),
      (reason: any) => {
        const error = reason || Object.assign(coded(Error, "ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value"), { reason });
        queueMicrotask(() => back.call(this, error));
      },
    );
  }
  return Object.defineProperties(made, { ...Object.getOwnPropertyDescriptors(does), name: { value: `${does.name}Callbackified`, configurable: true }, length: { value: does.length + 1, configurable: true } });
}

function inherits(made: any, above: any): void {
  needFunction("ctor", made);
  needFunction("superCtor", above);
  if (above.prototype === undefined) throw wrongType("superCtor.prototype", "of type object", above.prototype);
  Object.defineProperty(made, "super_", { value: above, writable: true, configurable: true });
  Object.setPrototypeOf(made.prototype, above.prototype);
}

/** Returns a function that logs a warning when it is first called. */
function deprecate(does: any, message: string, code?: string): any {
  let warned = false;
  function made(this: any, ...values: unknown[]) {
    if (!warned) console.warn(`DeprecationWarning: ${message}${code ? ` (${code})` : ""}`);
    warned = true;
    return new.target ? Reflect.construct(does, values, new.target) : does.apply(this, values);
  }
  Object.setPrototypeOf(made, does);
  if (does.prototype) made.prototype = does.prototype;
  return made;
}

/** debuglog without NODE_DEBUG: it writes nothing. */
function debuglog(): any {
  return Object.assign(() => {}, { enabled: false });
}

const ansi = /[\u001b\u009b][[\]()#;?]*(?:(?:(?:;[-a-zA-Z\d/#&.:=?%@~_]+)*|[a-zA-Z\d]+(?:;[-a-zA-Z\d/#&.:=?%@~_]*)*)?\u0007|(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-ntqry=><~])/g;

const util: any = {
  inspect,
  format,
  formatWithOptions,
  promisify,
  callbackify,
  inherits,
  deprecate,
  debuglog,
  debug: debuglog,
  types,
  isDeepStrictEqual: (a: unknown, b: unknown) => equal(a, b, true),
  TextEncoder,
  TextDecoder,
  stripVTControlCharacters: (text: string) => text.replace(ansi, ""),
  styleText: (_style: unknown, text: string) => text,
  toUSVString: (text: unknown) => String(text).toWellFormed(),
  aborted: (signal: AbortSignal) => new Promise<void>((done) => (signal.aborted ? done() : signal.addEventListener("abort", () => done(), { once: true }))),
  getSystemErrorName: (n: number) => `Unknown system error ${n}`,
  isArray: Array.isArray,
  isBoolean: (value: unknown) => typeof value === "boolean",
  isNull: (value: unknown) => value === null,
  isNullOrUndefined: (value: unknown) => value === null || value === undefined,
  isNumber: (value: unknown) => typeof value === "number",
  isString: (value: unknown) => typeof value === "string",
  isSymbol: (value: unknown) => typeof value === "symbol",
  isUndefined: (value: unknown) => value === undefined,
  isRegExp: types.isRegExp,
  isObject: (value: unknown) => value !== null && typeof value === "object",
  isDate: types.isDate,
  isError: (value: unknown) => value instanceof Error,
  isFunction: (value: unknown) => typeof value === "function",
  isPrimitive: (value: unknown) => (typeof value !== "object" && typeof value !== "function") || value === null,
  isBuffer: (value: any) => value instanceof Uint8Array && value.constructor?.name === "Buffer",
  log: (...values: unknown[]) => console.log(format(...values)),
  _extend: (into: object, from: object) => (from !== null && typeof from === "object" ? Object.assign(into, from) : into),
};
util.inspect.custom = custom;

export default util;
