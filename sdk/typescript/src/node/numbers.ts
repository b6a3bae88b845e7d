// The numbers that Buffer reads and writes: readInt32LE, writeDoubleBE, and the like (Node.js, "Class: Buffer").

import { coded, outOfRange, wrongType } from "./errors.ts";

type Bytes = Uint8Array & Record<string, any>;

const view = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Checks an offset of so many bytes. */
function check(bytes: Uint8Array, offset: unknown, size: number): number {
  if (typeof offset !== "number") throw wrongType("offset", "of type number", offset);
  if (!Number.isInteger(offset)) throw outOfRange("offset", "an integer", offset);
  if (offset < 0 || offset + size > bytes.length) {
    if (bytes.length < size) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds");
    throw outOfRange("offset", `>= 0 and <= ${bytes.length - size}`, offset);
  }
  return offset;
}

/** Checks that a number fits into so many bytes. */
function fits(value: number, size: number, signed: boolean): void {
  const max = signed ? 2 ** (8 * size - 1) - 1 : 2 ** (8 * size) - 1;
  const min = signed ? -max - 1 : 0;
  if (value <= max && value >= min) return;
  const bits = 8 * size;
  const range = size <= 4 && size !== 3
    ? size === 4
      ? signed ? ">= -2147483648 and <= 2147483647" : ">= 0 and <= 4294967295"
      : `>= ${min} and <= ${max}`
    : signed ? `>= -(2 ** ${bits - 1}) and < 2 ** ${bits - 1}` : `>= 0 and < 2 ** ${bits}`;
  if (value !== value) return; // written as 0
  throw outOfRange("value", range, value);
}

function readWhole(bytes: Uint8Array, offset: number, size: number, little: boolean, signed: boolean): number {
  let n = 0;
  for (let i = 0; i < size; i++) n = n * 256 + bytes[offset + (little ? size - 1 - i : i)];
  return signed && n >= 2 ** (8 * size - 1) ? n - 2 ** (8 * size) : n;
}

function writeWhole(bytes: Uint8Array, value: number, offset: number, size: number, little: boolean): void {
  let rest = Math.trunc(value) || 0;
  if (rest < 0) rest += 2 ** (8 * size);
  for (let i = 0; i < size; i++) {
    bytes[offset + (little ? i : size - 1 - i)] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}

function sized(name: string, size: unknown): number {
  if (typeof size !== "number") throw wrongType("byteLength", "of type number", size);
  if (!Number.isInteger(size)) throw outOfRange("byteLength", "an integer", size);
  if (size < 1 || size > 6) throw outOfRange("byteLength", ">= 1 and <= 6", size);
  return size;
}

/** Adds the methods to the prototype of Buffer. */
export function addNumbers(prototype: any): void {
  const add = (name: string, does: (this: Bytes, ...given: any[]) => unknown): void => {
    for (const key of [name, name.replace("UInt", "Uint")]) {
      Object.defineProperty(prototype, key, { value: does, writable: true, configurable: true });
    }
  };
  for (const signed of [false, true]) {
    const int = signed ? "Int" : "UInt";
    for (const little of [false, true]) {
      const end = little ? "LE" : "BE";
      for (const size of [1, 2, 4]) {
        if (size === 1 && little) continue;
        const name = size === 1 ? `${int}8` : `${int}${8 * size}${end}`;
        add(`read${name}`, function (offset = 0) {
          return readWhole(this, check(this, offset, size), size, little, signed);
        });
        add(`write${name}`, function (value, offset = 0) {
          value = +value;
          fits(value, size, signed);
          writeWhole(this, value, check(this, offset, size), size, little);
          return offset + size;
        });
      }
      add(`read${int}${end}`, function (offset, size) {
        if (offset === undefined) throw wrongType("offset", "of type number", offset);
        size = sized("byteLength", size);
        return readWhole(this, check(this, offset, size), size, little, signed);
      });
      add(`write${int}${end}`, function (value, offset, size) {
        size = sized("byteLength", size);
        value = +value;
        fits(value, size, signed);
        writeWhole(this, value, check(this, offset, size), size, little);
        return offset + size;
      });
      const big = `Big${int}64`;
      const get = signed ? "getBigInt64" : "getBigUint64";
      add(`read${big}${end}`, function (offset = 0) {
        return view(this)[get](check(this, offset, 8), little);
      });
      add(`write${big}${end}`, function (value, offset = 0) {
        if (typeof value !== "bigint") throw new TypeError("Cannot mix BigInt and other types, use explicit conversions");
        const [min, max] = signed ? [-(2n ** 63n), 2n ** 63n - 1n] : [0n, 2n ** 64n - 1n];
        if (value < min || value > max) {
          throw outOfRange("value", signed ? ">= -(2n ** 63n) and < 2n ** 63n" : ">= 0n and < 2n ** 64n", value);
        }
        view(this).setBigUint64(check(this, offset, 8), BigInt.asUintN(64, value), little);
        return offset + 8;
      });
    }
  }
  for (const little of [false, true]) {
    const end = little ? "LE" : "BE";
    for (const [name, size, bits] of [["Float", 4, 32], ["Double", 8, 64]] as const) {
      add(`read${name}${end}`, function (offset = 0) {
        return view(this)[`getFloat${bits}`](check(this, offset, size), little);
      });
      add(`write${name}${end}`, function (value, offset = 0) {
        view(this)[`setFloat${bits}`](check(this, offset, size), +value, little);
        return offset + size;
      });
    }
  }
}
