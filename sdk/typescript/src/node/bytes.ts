// The encodings of Buffer (Node.js, "Buffers and character encodings").

import { coded } from "./errors.ts";

/** Converts between the bytes of an encoding and text. */
export interface Encoding {
  name: string;
  text(bytes: Uint8Array): string;
  bytes(text: string): Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function binary(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

function fromBinary(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const digits = Array.from({ length: 256 }, (_, n) => (n < 16 ? "0" : "") + n.toString(16));

/** The value of a hexadecimal digit, or NaN. */
const digit = (code: number): number => {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : NaN;
};

function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length >>> 1);
  for (let i = 0; i < bytes.length; i++) {
    const n = digit(text.charCodeAt(2 * i)) * 16 + digit(text.charCodeAt(2 * i + 1));
    if (n !== n) return bytes.subarray(0, i);
    bytes[i] = n;
  }
  return bytes;
}

/** Decodes base64 in both alphabets. Other characters are ignored. */
function fromBase64(text: string): Uint8Array {
  const end = text.indexOf("=");
  if (end >= 0) text = text.slice(0, end);
  text = text.replace(/[^A-Za-z0-9+/_-]/g, "").replaceAll("-", "+").replaceAll("_", "/");
  if (text.length % 4 === 1) text = text.slice(0, -1);
  return fromBinary(atob(text));
}

const toBase64 = (bytes: Uint8Array): string => btoa(binary(bytes));

function wide(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length - 1; ) {
    const units: number[] = [];
    for (; at < bytes.length - 1 && units.length < 4096; at += 2) units.push(bytes[at] | (bytes[at + 1] << 8));
    text += String.fromCharCode(...units);
  }
  return text;
}

function fromWide(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length * 2);
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    bytes[2 * i] = unit;
    bytes[2 * i + 1] = unit >>> 8;
  }
  return bytes;
}

const utf8: Encoding = {
  name: "utf8",
  text: (bytes) => (bytes.length === 0 ? "" : decoder.decode(bytes)),
  bytes: (text) => encoder.encode(text),
};
const utf16: Encoding = { name: "utf16le", text: wide, bytes: fromWide };
const latin1: Encoding = { name: "latin1", text: binary, bytes: fromBinary };

const encodings: Record<string, Encoding> = {
  utf8,
  "utf-8": utf8,
  ucs2: utf16,
  "ucs-2": utf16,
  utf16le: utf16,
  "utf-16le": utf16,
  latin1,
  binary: latin1,
  ascii: { name: "ascii", text: (bytes) => binary(bytes.map((b) => b & 0x7f)), bytes: fromBinary },
  hex: {
    name: "hex",
    text(bytes) {
      let text = "";
      for (let i = 0; i < bytes.length; i++) text += digits[bytes[i]];
      return text;
    },
    bytes: fromHex,
  },
  base64: { name: "base64", text: toBase64, bytes: fromBase64 },
  base64url: {
    name: "base64url",
    text: (bytes) => toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
    bytes: fromBase64,
  },
};

/** Returns the encoding with a name, in any case; undefined if the name is unknown. */
export function findEncoding(name: unknown): Encoding | undefined {
  if (typeof name !== "string") return undefined;
  const found = Object.hasOwn(encodings, name) ? encodings[name] : undefined;
  if (found) return found;
  const lower = name.toLowerCase();
  return Object.hasOwn(encodings, lower) ? encodings[lower] : undefined;
}

/** Returns the encoding with a name, UTF-8 without a name; throws if the name is unknown. */
export function encodingOf(name: unknown): Encoding {
  if (name === undefined || name === null || name === "") return utf8;
  const found = findEncoding(name);
  if (!found) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${String(name)}`);
  return found;
}
