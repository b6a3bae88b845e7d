// structuredClone (HTML, 2.7). The copy stays in the same program, so objects are copied in one pass, and not serialized
// and deserialized.

import { define } from "./define.ts";
import { cloneException, DOMException } from "./exception.ts";
import { type Runner, unplaced } from "../host.ts";
import { dictionary, isObject, takes } from "./idl.ts";
import { transferStream } from "./streams/transfer.ts";

const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, hasOwn, keys } = Object;

/** Copies a value. Objects that were copied before, and those that are transferred, are in seen. */
type Clone = (value: any) => any;

/** Blob and File must be there. */
export function installClone(runner: Runner): void {
  runner.clones = [cloneException, blobCloner()];
  runner.transfers = [transferBuffer, transferStream];

  runner.clone = (value, transfer) => {
    const seen = new Map<object, object>();
    const moves: (() => void)[] = [];
    const received: object[] = [];
    for (const object of transfer) {
      if (!isObject(object)) throw new TypeError("structuredClone: each member of transfer must be an object");
      if (seen.has(object)) fail("an object is in transfer twice");
      let found;
      for (const transferable of runner.transfers) if ((found = transferable(object))) break;
      if (!found) fail(`${described(object)} cannot be transferred`);
      seen.set(object, found.receiver);
      received.push(found.receiver);
      moves.push(found.move);
    }
    const clone = cloner(runner, seen);
    const copy = clone(value);
    for (const move of moves) move(); // last: if the cloning fails, nothing is transferred
    return [copy, received];
  };

  define("structuredClone", (...given: [unknown, { transfer?: Iterable<object> }?]) => {
    takes(1, given, "structuredClone");
    const { transfer } = dictionary(given[1], "structuredClone");
    try {
      return runner.clone(given[0], transfer === undefined ? [] : [...transfer])[0];
    } catch (error) {
      throw unplaced(error); // all frames may be those of the copying
    }
  });
}

function fail(why: string): never {
  throw new DOMException(`structuredClone: ${why}`, "DataCloneError");
}

const described = (value: any): string => (typeof value === "object" ? `a ${typeof value.constructor === "function" ? value.constructor.name : "platform object"}` : `a ${typeof value}`);

/** Whether the object has the internal slots that a method of its class needs. */
function has(value: object, method: (this: any) => unknown): boolean {
  try {
    method.call(value);
    return true;
  } catch {
    return false;
  }
}

const getter = (of: object, key: string) => getOwnPropertyDescriptor(of, key)!.get!;
const sizeOfMap = getter(Map.prototype, "size");
const sizeOfSet = getter(Set.prototype, "size");
const sizeOfBuffer = getter(ArrayBuffer.prototype, "byteLength");
const byteLength = getter(DataView.prototype, "byteLength");
const isDate = (value: object): value is Date => value instanceof Date && has(value, Date.prototype.getTime);
const isMap = (value: object): value is Map<any, any> => value instanceof Map && has(value, sizeOfMap);
const isSet = (value: object): value is Set<any> => value instanceof Set && has(value, sizeOfSet);
const isBuffer = (value: object): value is ArrayBuffer => value instanceof ArrayBuffer && has(value, sizeOfBuffer);
const isError = (Error as unknown as { isError(value: object): value is Error }).isError;

const wrappers = [Boolean, Number, String, BigInt] as { prototype: { valueOf(): unknown } }[];
const opaque = [Promise, WeakMap, WeakSet, WeakRef, FinalizationRegistry, Symbol, SharedArrayBuffer, (globalThis as any).Iterator] as Function[];

function cloner(runner: Runner, seen: Map<object, object>): Clone {
  function keep<T extends object>(value: object, copy: T): T {
    seen.set(value, copy);
    return copy;
  }

  // With var, as each use of let and const is checked.
  function fill(value: any, copy: any): object {
    for (var names = keys(value), i = 0; i < names.length; i++) {
      var key = names[i];
      var member = value[key];
      if (member === undefined && !hasOwn(value, key)) continue; // a getter has removed it
      if (typeof member === "object" ? member !== null : typeof member === "function" || typeof member === "symbol") member = clone(member);
      if (key in copy) defineProperty(copy, key, { value: member, writable: true, enumerable: true, configurable: true });
      else copy[key] = member;
    }
    return copy;
  }

  function clone(value: any): any {
    if (typeof value === "symbol" || typeof value === "function") fail(`a ${typeof value} cannot be cloned`);
    if (typeof value !== "object" || value === null) return value;
    var known = seen.get(value);
    if (known) return known;
    if (Array.isArray(value)) return fill(value, keep(value, new Array(value.length)));
    var prototype = getPrototypeOf(value);
    if (prototype !== Object.prototype) {
      var copy = ofLanguage(value) ?? ofPlatform(value, prototype);
      if (copy) return copy;
    }
    return fill(value, keep(value, {}));
  }

  /** Copies an object with internal slots of the language; undefined for others. */
  function ofLanguage(value: any): object | undefined {
    if (isDate(value)) return keep(value, new Date(Date.prototype.getTime.call(value)));
    if (ArrayBuffer.isView(value)) return cloneView(value);
    if (isBuffer(value)) return keep(value, copied(value));
    if (isMap(value)) {
      const copy = keep(value, new Map());
      for (const [k, v] of [...value]) copy.set(clone(k), clone(v));
      return copy;
    }
    if (isSet(value)) {
      const copy = keep(value, new Set());
      for (const v of [...value]) copy.add(clone(v));
      return copy;
    }
    if (value instanceof RegExp && hasOwn(value, "lastIndex")) return keep(value, new RegExp(value.source, value.flags));
    for (const { prototype } of wrappers) {
      if (value instanceof (prototype.constructor as any) && has(value, prototype.valueOf)) return keep(value, Object(prototype.valueOf.call(value)));
    }
    return undefined;
  }

  /** Copies an object of an interface, or an error; undefined for one that is only its members. */
  function ofPlatform(value: any, prototype: object | null): object | undefined {
    for (const copy of runner.clones) {
      const made = copy(value, clone);
      if (made) return keep(value, made);
    }
    if (isError(value)) return cloneError(value);
    for (let at = prototype; at !== null; at = getPrototypeOf(at)) if (runner.interfaces.has(at)) fail(`${described(value)} cannot be cloned`);
    for (const made of opaque) if (value instanceof made) fail(`${described(value)} cannot be cloned`);
    return undefined;
  }

  function cloneView(value: any): object {
    const isData = value instanceof DataView;
    if (isData ? !has(value, byteLength) : value.length === 0 && !has(value, Uint8Array.prototype.keys)) fail("a view is out of bounds of its buffer");
    const { buffer } = value;
    const made = globalThis[(isData ? "DataView" : value[Symbol.toStringTag]) as "DataView"];
    return keep(value, new made(clone(buffer), value.byteOffset, tracks(value) ? undefined : isData ? value.byteLength : value.length));
  }

  function cloneError(value: any): object {
    const name = String(value.name);
    const made = (/^(Eval|Range|Reference|Syntax|Type|URI)Error$/.test(name) ? globalThis[name as "TypeError"] : Error) as new () => object;
    const copy = keep(value, new made());
    const add = (key: string, member: unknown) => defineProperty(copy, key, { value: member, writable: true, configurable: true });
    const message = getOwnPropertyDescriptor(value, "message");
    if (message && "value" in message) add("message", `${message.value}`);
    const { stack } = value;
    if (typeof stack === "string") add("stack", stack);
    const cause = getOwnPropertyDescriptor(value, "cause");
    if (cause && "value" in cause) add("cause", clone(cause.value));
    return copy;
  }

  return clone;
}

/** Whether the length of a view follows that of its resizable buffer. */
function tracks(view: any): boolean {
  const { buffer, byteLength } = view;
  if (!buffer.resizable || buffer.byteLength === buffer.maxByteLength) return false;
  const size = buffer.byteLength;
  buffer.resize(Math.min(buffer.maxByteLength, size + 8));
  const grows = view.byteLength > byteLength;
  buffer.resize(size);
  return grows;
}

function copied(buffer: ArrayBuffer): ArrayBuffer {
  if (buffer.detached) fail("an ArrayBuffer was transferred before");
  if (!buffer.resizable) return buffer.slice(0);
  const copy = new ArrayBuffer(buffer.byteLength, { maxByteLength: buffer.maxByteLength });
  new Uint8Array(copy).set(new Uint8Array(buffer));
  return copy;
}

function transferBuffer(value: object): { receiver: object; move(): void } | undefined {
  if (!isBuffer(value)) return undefined;
  const receiver = copied(value);
  return {
    receiver,
    move() {
      if (value.detached) fail("an ArrayBuffer was transferred before");
      value.transfer();
    },
  };
}

/** Clones Blobs and Files. A clone shares the bytes, which never change. */
function blobCloner(): Runner["clones"][0] {
  const [OurBlob, OurFile] = [Blob, File]; // handlers may replace the globals
  const { slice } = OurBlob.prototype;
  return (value) => {
    if (!(value instanceof OurBlob)) return undefined;
    return value instanceof OurFile ? new OurFile([value], value.name, { type: value.type, lastModified: value.lastModified }) : slice.call(value, 0, value.size, value.type);
  };
}
