// What is handed to the host is what JSON has a form for. JSON.stringify makes null of NaN, of an
// invalid date and of an undefined element, {} of a Map, and leaves functions out: a condition would
// find, and a change would write, what nobody has asked for.

/** What a value is that has no form in JSON, and what to do. */
type Odd = [is: string, remedy?: string];

/** Throws the error about the value at a path. */
type Fail = (path: readonly (string | number)[], odd: Odd) => never;

const mostLevels = 64; // as the host reads

const { getPrototypeOf, keys } = Object;
const { isArray } = Array;
const { isFinite } = Number;
const objects = Object.prototype;
const lists = Array.prototype;
const path: (string | number)[] = []; // of the value that is looked at
var fail: Fail;

/**
 * The value with lists, objects, texts, finite numbers, booleans and null alone. What is data
 * already is not copied.
 */
export function plain(value: unknown, failed: Fail): unknown {
  path.length = 0;
  fail = failed;
  return data(value, "");
}

// With var, as each use of let and const is checked. Most values are data, and a call takes long,
// so the loops below look at them first.
function data(value: any, key: string | number): unknown {
  switch (typeof value) {
    case "object":
      return value === null ? null : object(value, key);
    case "number":
      return isFinite(value) ? value : fail(path, [String(value)]);
    case "bigint":
      return typeof (value as any).toJSON === "function" ? converted(value, key) : fail(path, ["a BigInt", "Number(n) is a number, String(n) a text"]);
    case "function":
      return fail(path, ["a function", "call it"]);
    case "symbol":
      return fail(path, ["a symbol", "its description is a text"]);
  }
  return value;
}

function object(value: any, key: string | number): unknown {
  var prototype = getPrototypeOf(value);
  var known = prototype === objects || prototype === lists || prototype === null;
  if (!known && isThenable(value)) fail(path, ["a promise", "await it"]);
  if (typeof value.toJSON === "function") return converted(value, key);
  if (!known && (value instanceof Number || value instanceof String || value instanceof Boolean)) return data(value.valueOf(), key);
  return isArray(value) ? elements(value) : members(value, known);
}

/** What toJSON makes of it. */
function converted(given: any, key: string | number): unknown {
  var value = given.toJSON(String(key));
  if (value === null) fail(path, given instanceof Date ? ["an invalid date"] : ["an object whose toJSON gives null"]);
  if (typeof value !== "object") return data(value, key);
  if (value !== given) return object(value, key); // JSON.stringify would make {} of a date
  return isArray(value) ? elements(value) : members(value, getPrototypeOf(value) === objects);
}

function elements(value: any[]): unknown[] {
  enter();
  var made = value;
  for (var i = 0; i < value.length; i++) {
    var before = value[i];
    if (typeof before === "string" || typeof before === "boolean" || before === null || (typeof before === "number" && before - before === 0)) continue;
    path.push(i);
    var element = data(before, i);
    if (element === undefined) fail(path, ["undefined"]);
    if (element !== before) {
      if (made === value) made = [...value];
      made[i] = element;
    }
    path.pop();
  }
  return made;
}

function members(value: any, known: boolean): unknown {
  enter();
  var names = keys(value);
  if (!known) {
    var odd = noJSON(value);
    if (odd) fail(path, odd);
    if (ArrayBuffer.isView(value)) fail(path, ["binary data", "its text in base64 is a value"]);
    if (names.length === 0) fail(path, ["an object whose class has neither fields nor toJSON", "name the value that is meant"]);
  }
  var made = value;
  for (var i = 0; i < names.length; i++) {
    var name = names[i];
    var before = value[name];
    if (typeof before === "string" || typeof before === "boolean" || before === null || before === undefined || (typeof before === "number" && before - before === 0)) continue;
    path.push(name);
    var member = data(before, name);
    if (member !== before) {
      if (made === value) made = { __proto__: null, ...value }; // in which __proto__ is a name like others
      made[name] = member;
    }
    path.pop();
  }
  return made;
}

function enter(): void {
  if (path.length >= mostLevels) fail(path.slice(0, 4), ["nested too deeply", `at most ${mostLevels} levels, and nothing that contains itself`]);
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
  return `${op}: ${path.length > 0 ? shown(path) : "the arguments"} is ${is}: ${remedy ?? "check it first, or use null on purpose"}`;
}

const shown = (path: readonly (string | number)[]): string => {
  let text = "";
  for (const key of path) text += typeof key === "number" ? `[${key}]` : text === "" ? key : `.${key}`;
  return text;
};
