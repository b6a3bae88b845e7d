// Bytes in JSON: text as it is, others as {"base64":"…"}.

import { Fields, fields, member, parseJSON } from "./json";

/** Sets a member to a string or a Uint8Array. */
export function put<T>(args: Fields, name: string, data: T): Fields {
  if (data instanceof Uint8Array) return args.set(name, fields().set("base64", base64(data as Uint8Array)));
  return args.set<string>(name, data as string);
}

/** The bytes of a JSON value. */
export function octets(value: string): Uint8Array {
  if (!value.startsWith("{")) return Uint8Array.wrap(String.UTF8.encode(parseJSON<string>(value)));
  return fromBase64(parseJSON<string>(member(value, "base64")));
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const padding: u8 = 0x3d;

/** The bytes as base64 (RFC 4648). */
export function base64(bytes: Uint8Array): string {
  const text = new Uint8Array(((bytes.length + 2) / 3) * 4);
  for (let i = 0, at = 0; i < bytes.length; i += 3, at += 4) {
    const left = bytes.length - i;
    const word = ((<i32>bytes[i]) << 16) | (left > 1 ? (<i32>bytes[i + 1]) << 8 : 0) | (left > 2 ? <i32>bytes[i + 2] : 0);
    text[at] = letter(word >> 18);
    text[at + 1] = letter(word >> 12);
    text[at + 2] = left > 1 ? letter(word >> 6) : padding;
    text[at + 3] = left > 2 ? letter(word) : padding;
  }
  return String.UTF8.decodeUnsafe(text.dataStart, text.length);
}

function letter(sextet: i32): u8 {
  return <u8>letters.charCodeAt(sextet & 63);
}

/** The bytes of well-formed base64. */
export function fromBase64(text: string): Uint8Array {
  let n = text.length;
  while (n > 0 && text.charCodeAt(n - 1) == padding) n--;
  const bytes = new Uint8Array((n * 3) / 4);
  let word = 0;
  let bits = 0;
  for (let i = 0, at = 0; i < n; i++) {
    word = (word << 6) | value(text.charCodeAt(i));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = <u8>(word >> bits);
    }
  }
  return bytes;
}

function value(c: i32): i32 {
  if (c >= 0x61) return c - 0x61 + 26;
  if (c >= 0x41) return c - 0x41;
  if (c >= 0x30) return c - 0x30 + 52;
  return c == 0x2b ? 62 : 63;
}
