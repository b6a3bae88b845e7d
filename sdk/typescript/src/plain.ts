// What is handed to the host is what JSON has a form for. JSON.stringify makes null of NaN, of an
// invalid date and of an undefined element, {} of a Map, and leaves functions out: a condition would
// find, and a change would write, what nobody has asked for.

/** What a value is that has no form in JSON, and what to do. */
type Odd = [is: string, remedy?: string];

/** Throws the error about the value at a path. */
type Fail = (path: readonly (string | number)[], odd: Odd) => never;

const mostLevels = 64; // as the host reads

/** A copy of a value with lists, objects, texts, finite numbers, booleans and null alone. */
export function plain(value: unknown, fail: Fail): unknown {
  const path: (string | number)[] = [];

  const copy = (given: any, key: string | number): unknown => {
    let value = given;
    if (isThenable(given)) fail(path, ["a promise", "await it"]);
    const type = typeof given;
    if ((type === "object" || type === "function" || type === "bigint") && typeof given?.toJSON === "function") {
      value = given.toJSON(String(key));
      if (value === null) fail(path, given instanceof Date ? ["an invalid date"] : ["an object whose toJSON gives null"]);
    }
    if (value instanceof Number || value instanceof String || value instanceof Boolean) value = value.valueOf();
    if (value === null) return null;
    switch (typeof value) {
      case "number":
        return Number.isFinite(value) ? value : fail(path, [String(value)]);
      case "string":
        return value.isWellFormed() ? value : fail(path, ["a text with half of a surrogate pair", "it is not valid Unicode"]);
      case "object":
        return parts(value);
      case "bigint":
        return fail(path, ["a BigInt", "Number(n) is a number, String(n) a text"]);
      case "function":
        return fail(path, ["a function", "call it"]);
      case "symbol":
        return fail(path, ["a symbol", "its description is a text"]);
    }
    return value;
  };

  const parts = (value: any): unknown => {
    if (path.length >= mostLevels) fail(path.slice(0, 4), ["nested too deeply", `at most ${mostLevels} levels, and nothing that contains itself`]);
    if (Array.isArray(value)) {
      const list: unknown[] = [];
      for (let i = 0; i < value.length; i++) {
        path.push(i);
        const element = copy(value[i], i);
        if (element === undefined) fail(path, ["undefined"]);
        list.push(element);
        path.pop();
      }
      return list;
    }
    const names = Object.keys(value);
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
      const odd = noJSON(value);
      if (odd) fail(path, odd);
      if (ArrayBuffer.isView(value)) fail(path, ["binary data", "its text in base64 is a value"]);
      if (names.length === 0) fail(path, ["an object whose class has neither fields nor toJSON", "name the value that is meant"]);
    }
    const object = Object.create(null); // in which __proto__ is a name like others
    for (const name of names) {
      path.push(name);
      const member = copy(value[name], name);
      if (member !== undefined) object[name] = member;
      path.pop();
    }
    return object;
  };

  return copy(value, "");
}

/** What has no form in JSON, and what to do; undefined of what has one. */
export function noJSON(value: object): [is: string, remedy: string] | undefined {
  if (value instanceof Map) return ["a Map", "Object.fromEntries(map) is an object, [...map] a list"];
  if (value instanceof Set) return ["a Set", "[...set] is a list"];
  if (value instanceof Error) return ["an Error", "tell its message, or throw it"];
  if (value instanceof RegExp) return ["a RegExp", "its source is a text"];
  if (value instanceof ArrayBuffer || value instanceof DataView) return ["binary data", "it is a body by itself, or text in base64"];
  if (value instanceof Response) return ["a Response", "return it as it is, or its text() or json()"];
  if (value instanceof Blob) return ["a Blob", "await its bytes() or text()"];
  if (value instanceof FormData) return ["FormData", "Object.fromEntries(form) is an object"];
  if (isThenable(value)) return ["a promise", "await it"];
  if (typeof (value as any).next === "function" && Symbol.iterator in value) return ["an iterator", "[...iterator] is a list"];
  if (Symbol.asyncIterator in value) return ["an iterator", "collect with for await what it gives"];
  if (value instanceof WeakMap || value instanceof WeakSet) return [`a ${value.constructor.name}`, "its content cannot be read"];
  return undefined;
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/**
 * Names the place of a value in an operation's arguments, and what is wrong with it. Of a
 * condition it is the field and the operator.
 */
export function misplaced(op: string, args: unknown, path: readonly (string | number)[], [is, remedy]: Odd): string {
  const at = path.indexOf("where");
  if (at === 0 || (at > 0 && path[0] === "include")) {
    let node: any = args;
    for (let i = 0; i < path.length; i++) {
      if (i > at && path[i] === 2 && Array.isArray(node) && typeof node[0] === "string" && typeof node[1] === "string") {
        const inside = path.slice(i + 1);
        const place = `${at > 0 ? `${shown(path.slice(0, at))}: ` : ""}${node[0]}: the value of ${node[1]}`;
        return `${place} ${inside.length > 0 ? `has ${is} at ${shown(inside)}` : `is ${is}`}: ${remedy ?? "check it before the query, or compare with null on purpose"}`;
      }
      node = node?.[path[i]];
    }
  }
  return `${op}: ${path.length > 0 ? shown(path) : "the arguments"} is ${is}: ${remedy ?? "check it before, or use null on purpose"}`;
}

const shown = (path: readonly (string | number)[]): string => {
  let text = "";
  for (const key of path) text += typeof key === "number" ? `[${key}]` : text === "" ? key : `.${key}`;
  return text;
};
