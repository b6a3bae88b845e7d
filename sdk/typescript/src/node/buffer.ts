// node:buffer: Buffer is a Uint8Array with encodings.

import { type Encoding, encodingOf, findEncoding } from "./bytes.ts";
import { coded, needInteger, outOfRange, wrongType } from "./errors.ts";
import { addNumbers } from "./numbers.ts";

const kMaxLength = 2 ** 31 - 1; // no limit in practice: the memory of a handler is far smaller
const kStringMaxLength = 2 ** 29 - 24;

type Bytes = Uint8Array;

class FastBuffer extends Uint8Array {}

/** Returns a Buffer on the same memory. */
const wrap = (bytes: Bytes): any => new FastBuffer(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);

function size(n: unknown): number {
  if (typeof n !== "number") throw wrongType("size", "of type number", n);
  if (!(n >= 0 && n <= kMaxLength)) throw outOfRange("size", `>= 0 && <= ${kMaxLength}`, n);
  return n;
}

/** Buffer(…) without new, which old packages use. */
function BufferFunction(value: unknown, encoding?: any, length?: number): any {
  if (typeof value === "number") {
    if (typeof encoding === "string") throw wrongType("string", "of type string", value);
    return Buffer.alloc(value);
  }
  return Buffer.from(value, encoding, length);
}

export const Buffer: any = BufferFunction;
export type Buffer = any;
Object.setPrototypeOf(Buffer, Uint8Array);
Object.defineProperty(Buffer, "name", { value: "Buffer" });
Buffer.prototype = FastBuffer.prototype;
Object.defineProperty(FastBuffer.prototype, "constructor", { value: Buffer, writable: true, configurable: true });
Object.defineProperty(Buffer, Symbol.species, { get: () => FastBuffer, configurable: true });

const isBuffer = (value: unknown): boolean => value instanceof Buffer;
const isAnyBuffer = (value: any): boolean => value instanceof ArrayBuffer || (typeof SharedArrayBuffer === "function" && value instanceof SharedArrayBuffer);

/** The bytes of a view, or a string in an encoding. */
function bytesOf(name: string, value: any, encoding?: unknown): Bytes {
  if (typeof value === "string") return encodingOf(encoding).bytes(value);
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength);
  throw wrongType(name, "an instance of Buffer or Uint8Array", value);
}

function from(value: any, encoding?: any, length?: number): any {
  if (typeof value === "string") return wrap(encodingOf(typeof encoding === "string" ? encoding : undefined).bytes(value));
  if (typeof value === "object" && value !== null) {
    if (isAnyBuffer(value)) {
      const offset = encoding === undefined ? 0 : +encoding || 0;
      const most = value.byteLength - offset;
      if (most < 0) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", '"offset" is outside of buffer bounds');
      if (length === undefined) length = most;
      else if ((length = +length) > 0 === false) length = 0;
      else if (length > most) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", '"length" is outside of buffer bounds');
      return new FastBuffer(value, offset, length);
    }
    const plain = value.valueOf?.();
    if (plain != null && plain !== value && (typeof plain === "string" || typeof plain === "object")) return from(plain, encoding, length);
    if (value.length !== undefined || isAnyBuffer(value.buffer)) return typeof value.length === "number" ? new FastBuffer(Array.isArray(value) || ArrayBuffer.isView(value) ? (value as any) : Array.from(value)) : new FastBuffer(0);
    if (value.type === "Buffer" && Array.isArray(value.data)) return new FastBuffer(value.data);
    if (typeof value[Symbol.toPrimitive] === "function") {
      const text = value[Symbol.toPrimitive]("string");
      if (typeof text === "string") return from(text, encoding);
    }
  }
  throw coded(TypeError, "ERR_INVALID_ARG_TYPE", wrongType("first", "of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object", value).message.replace('The "first" argument', "The first argument"));
}

/** How many bytes a string has: for Base64 and hexadecimal digits it is an estimate, as nothing is decoded. */
function lengthOf(text: string, encoding: string): number {
  switch (encoding) {
    case "utf8":
      return encodingOf(encoding).bytes(text).length;
    case "utf16le":
      return 2 * text.length;
    case "hex":
      return text.length >>> 1;
    case "base64":
    case "base64url": {
      const padding = text.endsWith("==") && text.length > 1 ? 2 : text.endsWith("=") ? 1 : 0;
      return ((text.length - padding) * 3) >>> 2;
    }
  }
  return text.length;
}

const statics: Record<string, unknown> = {
  from,
  of: (...items: number[]) => new FastBuffer(items),
  alloc(n: number, fill?: any, encoding?: string) {
    const made: any = new FastBuffer(size(n));
    return fill !== undefined && fill !== 0 && n > 0 ? made.fill(fill, typeof fill === "string" ? encoding : undefined) : made;
  },
  allocUnsafe: (n: number) => new FastBuffer(size(n)),
  allocUnsafeSlow: (n: number) => new FastBuffer(size(n)),
  copyBytesFrom(view: any, offset = 0, length?: number) {
    const part = view.subarray(offset, length === undefined ? undefined : offset + length);
    return from(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  },
  isBuffer,
  isEncoding: (name: unknown) => typeof name === "string" && name !== "" && findEncoding(name) !== undefined,
  byteLength(value: any, encoding?: string): number {
    if (typeof value === "string") return lengthOf(value, findEncoding(encoding)?.name ?? "utf8");
    if (ArrayBuffer.isView(value) || isAnyBuffer(value)) return (value as ArrayBufferView).byteLength;
    throw wrongType("string", "of type string or an instance of Buffer or ArrayBuffer", value);
  },
  compare: (a: any, b: any) => compare(bytesOf("buf1", a), bytesOf("buf2", b)),
  concat(list: any, length?: number) {
    if (!Array.isArray(list)) throw wrongType("list", "an instance of Array", list);
    if (length !== undefined) needInteger("length", length, 0, kMaxLength);
    for (const [i, one] of list.entries()) if (!(one instanceof Uint8Array)) throw wrongType(`list[${i}]`, "an instance of Buffer or Uint8Array", one);
    length ??= list.reduce((sum: number, one: any) => sum + one.length, 0) as number;
    const made = new FastBuffer(length);
    let at = 0;
    list.forEach((one) => {
      const part = one.length > length! - at ? one.subarray(0, length! - at) : one;
      made.set(part, at);
      at += part.length;
    });
    return made;
  },
  poolSize: 8192,
};
for (const [name, value] of Object.entries(statics)) Object.defineProperty(Buffer, name, { value, writable: true, configurable: true, enumerable: true });

function compare(a: Bytes, b: Bytes): number {
  const n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  return a.length === b.length ? 0 : a.length < b.length ? -1 : 1;
}

/** An offset, clamped as Array.prototype.slice does; a negative one is not counted from the end. */
const clamp = (n: unknown, usual: number, most: number): number => (n === undefined ? usual : Math.min(Math.max(Math.trunc(Number(n)) || 0, 0), most));

/** The index of a part, searched from an offset on in one direction; -1: not found. */
function search(within: Bytes, value: any, offset: any, encoding: any, forward: boolean): number {
  if (typeof offset === "string") [offset, encoding] = [undefined, offset];
  offset = +offset;
  if (Number.isNaN(offset)) offset = forward ? 0 : within.length;
  offset = Math.trunc(Math.min(Math.max(offset, -kMaxLength), kMaxLength));
  if (offset < 0) offset += within.length;
  if (typeof value === "number") {
    value &= 255;
    if (forward) return Uint8Array.prototype.indexOf.call(within, value, Math.max(offset, 0));
    return offset < 0 ? -1 : Uint8Array.prototype.lastIndexOf.call(within, value, offset);
  }
  if (typeof value !== "string" && !(value instanceof Uint8Array)) {
    throw wrongType("value", "one of type number or string or an instance of Buffer or Uint8Array", value);
  }
  const how = encodingOf(typeof value === "string" ? encoding : undefined);
  const bytes = typeof value === "string" ? how.bytes(value) : value;
  if (bytes.length === 0) return Math.min(Math.max(offset, 0), within.length);
  const step = how.name === "utf16le" ? 2 : 1; // such text is searched by units of 16 bits
  if (step === 2) {
    if (bytes.length < 2 || within.length < 2) return -1;
    if (offset > 0) offset &= ~1;
  }
  const last = within.length - bytes.length;
  const there = (at: number): boolean => {
    for (let i = 0; i < bytes.length; i++) if (within[at + i] !== bytes[i]) return false;
    return true;
  };
  if (forward) {
    for (let at = Math.max(offset, 0); at <= last; at++) {
      at = Uint8Array.prototype.indexOf.call(within, bytes[0], at);
      if (at < 0 || at > last) return -1;
      if (at % step === 0 && there(at)) return at;
    }
    return -1;
  }
  for (let at = Math.min(offset, last); at >= 0; at--) if (at % step === 0 && there(at)) return at;
  return -1;
}

/** A number without its fraction; 0 for others. */
const whole = (n: unknown): number => (Number.isFinite(Number(n)) ? Math.trunc(Number(n)) : 0);

/** How many bytes there is room for, without a part of a character of UTF-8 or UTF-16. */
function fitting(encoding: Encoding, bytes: Bytes, room: number): number {
  if (bytes.length <= room) return bytes.length;
  if (encoding.name === "utf16le") return room & ~1;
  if (encoding.name !== "utf8") return room;
  while (room > 0 && (bytes[room] & 0xc0) === 0x80) room--;
  return room;
}

const swap = (bytes: Bytes, n: number): Bytes => {
  if (bytes.length % n !== 0) throw coded(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${8 * n}-bits`);
  for (let at = 0; at < bytes.length; at += n) bytes.subarray(at, at + n).reverse();
  return bytes;
};

const methods: Record<string, (...given: any[]) => unknown> & ThisType<any> = {
  toString(encoding?: string, start?: number, end?: number) {
    if (arguments.length === 0) return encodingOf(undefined).text(this);
    const from = clamp(start, 0, this.length);
    const to = clamp(end, this.length, this.length);
    if (to <= from) return "";
    if (encoding !== undefined && !findEncoding(encoding)) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
    return encodingOf(encoding).text(this.subarray(from, to));
  },
  toJSON() {
    return { type: "Buffer", data: Array.from(this as Bytes) };
  },
  equals(other: any) {
    if (!(other instanceof Uint8Array)) throw wrongType("otherBuffer", "an instance of Buffer or Uint8Array", other);
    return this === other || (this.length === other.length && compare(this, other) === 0);
  },
  compare(this: any, other: any, start = 0, end = other.length, from = 0, to = this.length) {
    if (!(other instanceof Uint8Array)) throw wrongType("target", "an instance of Buffer or Uint8Array", other);
    for (const [name, n, most] of [["targetStart", start, 2 ** 53 - 1], ["targetEnd", end, other.length], ["sourceStart", from, 2 ** 53 - 1], ["sourceEnd", to, this.length]] as const) {
      needInteger(name, n, 0, most);
    }
    return compare(from >= to ? new Uint8Array(0) : this.subarray(from, to), start >= end ? new Uint8Array(0) : other.subarray(start, end));
  },
  copy(this: any, target: any, targetStart = 0, start = 0, end = this.length) {
    if (!(target instanceof Uint8Array)) throw wrongType("target", "an instance of Buffer or Uint8Array", target);
    [targetStart, start, end] = [whole(targetStart), whole(start), whole(end)];
    if (targetStart < 0) throw outOfRange("targetStart", ">= 0", targetStart);
    if (start < 0 || start > this.length) throw outOfRange("sourceStart", `>= 0 && <= ${this.length}`, start);
    if (end < 0) throw outOfRange("sourceEnd", ">= 0", end);
    if (targetStart >= target.length || start >= end) return 0;
    const part = this.subarray(start, Math.min(end, start + target.length - targetStart));
    target.set(part, targetStart);
    return part.length;
  },
  fill(value: any, start?: any, end?: any, encoding?: any) {
    if (typeof value === "string") {
      if (typeof start === "string") [start, end, encoding] = [undefined, undefined, start];
      else if (typeof end === "string") [end, encoding] = [undefined, end];
    }
    if (start === undefined) end = undefined;
    else needInteger("offset", start, 0, kMaxLength);
    if (end !== undefined) needInteger("end", end, 0, this.length);
    start ??= 0;
    end ??= this.length;
    const bytes = typeof value === "string" || ArrayBuffer.isView(value) ? bytesOf("value", value, encoding) : undefined;
    if (start >= end) return this;
    if (bytes === undefined || value === "") {
      Uint8Array.prototype.fill.call(this, bytes ? 0 : typeof value === "boolean" ? +value : value & 255, start, end);
      return this;
    }
    if (bytes.length === 0) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'value' is invalid. Received ${typeof value === "string" ? `'${value}'` : "<Buffer >"}`);
    for (let at = start; at < end; at += bytes.length) this.set(bytes.length > end - at ? bytes.subarray(0, end - at) : bytes, at);
    return this;
  },
  write(text: string, offset?: any, length?: any, encoding?: any) {
    if (typeof text !== "string") throw wrongType("argument", "of type string", text);
    if (typeof offset === "string" && length === undefined) [offset, encoding] = [undefined, offset];
    else if (typeof length === "string") [length, encoding] = [undefined, length];
    if (offset !== undefined) needInteger("offset", offset, 0, this.length);
    if (length !== undefined) needInteger("length", length, 0, this.length);
    offset ??= 0;
    const room = Math.min(length ?? this.length, this.length - offset);
    const how = encodingOf(encoding);
    const bytes = how.bytes(text);
    const count = fitting(how, bytes, room);
    this.set(bytes.subarray(0, count), offset);
    return count;
  },
  indexOf(value: any, offset?: any, encoding?: any) {
    return search(this, value, offset, encoding, true);
  },
  lastIndexOf(value: any, offset?: any, encoding?: any) {
    return search(this, value, offset, encoding, false);
  },
  includes(value: any, offset?: any, encoding?: any) {
    return search(this, value, offset, encoding, true) >= 0;
  },
  slice(start?: number, end?: number) {
    return this.subarray(start, end);
  },
  swap16() {
    return swap(this, 2);
  },
  swap32() {
    return swap(this, 4);
  },
  swap64() {
    return swap(this, 8);
  },
  toLocaleString(this: any, ...given: any[]) {
    return this.toString(...(given as []));
  },
  [Symbol.for("nodejs.util.inspect.custom") as any]() {
    const some = Array.from(this.subarray(0, 50) as Bytes, (b) => b.toString(16).padStart(2, "0"));
    const more = this.length - 50;
    return `<Buffer${some.map((b) => ` ${b}`).join("")}${more > 0 ? ` ... ${more} more byte${more > 1 ? "s" : ""}` : ""}>`;
  },
};
for (const name of ["utf8", "ucs2", "utf16le", "latin1", "ascii", "hex", "base64", "base64url"]) {
  methods[`${name}Slice`] = function (start?: number, end?: number) {
    return this.toString(name, start, end);
  };
  methods[`${name}Write`] = function (this: any, text: string, offset = 0, length = this.length - offset) {
    return this.write(text, offset, length, name);
  };
}
for (const name of Reflect.ownKeys(methods)) {
  Object.defineProperty(FastBuffer.prototype, name, { value: methods[name as string], writable: true, configurable: true });
}
addNumbers(FastBuffer.prototype);
for (const [name, member] of [["parent", "buffer"], ["offset", "byteOffset"]]) {
  Object.defineProperty(FastBuffer.prototype, name, {
    get() {
      return this instanceof Buffer ? (this as any)[member] : undefined;
    },
    configurable: true,
  });
}

function transcode(source: Bytes, fromEncoding: string, toEncoding: string): any {
  const text = encodingOf(fromEncoding).text(source);
  const to = encodingOf(toEncoding);
  const most = to.name === "ascii" ? 0x7f : to.name === "latin1" ? 0xff : 0xffff;
  return wrap(to.bytes(most === 0xffff ? text : Array.from(text, (c) => (c.codePointAt(0)! > most ? "?" : c)).join("")));
}

function isUtf8(bytes: any): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
const isAscii = (bytes: any): boolean => bytesOf("input", isAnyBuffer(bytes) ? new Uint8Array(bytes) : bytes).every((b) => b < 0x80);

export default {
  Buffer,
  SlowBuffer: Buffer,
  Blob,
  File,
  atob,
  btoa,
  constants: { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength },
  kMaxLength,
  kStringMaxLength,
  INSPECT_MAX_BYTES: 50,
  transcode,
  isUtf8,
  isAscii,
};
