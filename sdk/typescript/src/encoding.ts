// TextEncoder and TextDecoder (Encoding Standard, 8), of UTF-8, UTF-16 and windows-1252.

import { define } from "./console.ts";
import { type Runner } from "./host.ts";

/** The bytes of a buffer or of a view of one. */
export function bytesOf(input: ArrayBuffer | ArrayBufferView): Uint8Array {
  if (input instanceof Uint8Array) return input;
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  throw new TypeError("bytes are an ArrayBuffer or a view of one");
}

/** Bytes in base64 (RFC 4648, section 4), and back. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** How bytes of one encoding become text. */
interface Decoder {
  text(bytes: Uint8Array, fatal: boolean): string;
  /** How many bytes at the end begin a character that may go on. */
  incomplete(bytes: Uint8Array): number;
}

// The encodings by their labels (Encoding Standard, 4.2).
const labels: Record<string, RegExp> = {
  "utf-8": /^(unicode-1-1-utf-8|unicode11utf8|unicode20utf8|utf-?8|x-unicode20utf8)$/,
  "windows-1252": /^(ansi_x3\.4-1968|ascii|cp1252|cp819|csisolatin1|ibm819|iso-8859-1|iso-ir-100|iso8859-1|iso88591|iso_8859-1(:1987)?|l1|latin1|us-ascii|windows-1252|x-cp1252)$/,
  "utf-16le": /^(csunicode|iso-10646-ucs-2|ucs-2|unicode|unicodefeff|utf-16|utf-16le)$/,
  "utf-16be": /^(unicodefffe|utf-16be)$/,
};

/** The characters of the bytes 0x80 to 0x9f (Encoding Standard, index windows-1252). */
const upper = "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

const windows1252: Decoder = {
  text(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return text.replace(/[\x80-\x9f]/g, (c) => upper[c.charCodeAt(0) - 0x80]);
  },
  incomplete: () => 0,
};

function utf16(bigEndian: boolean): Decoder {
  const unit = (bytes: Uint8Array, at: number) => (bigEndian ? (bytes[at] << 8) | bytes[at + 1] : (bytes[at + 1] << 8) | bytes[at]);
  return {
    text(bytes, fatal) {
      let text = "";
      const units: number[] = [];
      for (let at = 0; at + 1 < bytes.length; at += 2) {
        if (units.push(unit(bytes, at)) === 4096) text += String.fromCharCode(...units.splice(0));
      }
      text += String.fromCharCode(...units);
      if (bytes.length % 2 === 1) text += "\ud800"; // half a unit counts like half a pair
      if (fatal && !text.isWellFormed()) throw new TypeError("TextDecoder: the input is not UTF-16");
      return text.toWellFormed();
    },
    incomplete(bytes) {
      const odd = bytes.length % 2;
      const last = bytes.length >= 2 ? unit(bytes, bytes.length - odd - 2) : 0;
      return odd + (last >= 0xd800 && last < 0xdc00 ? 2 : 0);
    },
  };
}

/** The bytes of a UTF-8 character by its first byte, 0 if no character begins so, and the bounds of the second byte. */
function lengthOf(lead: number): [size: number, low: number, high: number] {
  const size = lead < 0x80 ? 1 : lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  return [size, low, high];
}

export function installEncoding({ host }: Runner): void {
  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = ""): Uint8Array {
      return text === "" ? new Uint8Array(0) : host.encode(String(text).toWellFormed());
    }
    encodeInto(text: string, into: Uint8Array): { read: number; written: number } {
      let read = 0;
      let written = 0;
      for (const character of text) {
        const bytes = this.encode(character);
        if (written + bytes.length > into.length) break;
        into.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    readonly #decode: Decoder;
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;
    readonly encoding: string;
    #pending = new Uint8Array(0); // the beginning of a character, of the piece before
    #begun = false; // the byte order mark is behind
    constructor(label = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
      const name = String(label).trim().toLowerCase();
      const encoding = Object.keys(labels).find((encoding) => labels[encoding].test(name));
      if (encoding === undefined) throw new RangeError(`TextDecoder: ${label} is not one of ${Object.keys(labels).join(", ")}`);
      this.encoding = encoding;
      this.fatal = options?.fatal ?? false;
      this.ignoreBOM = options?.ignoreBOM ?? false;
      this.#decode = encoding === "utf-8" ? utf8 : encoding === "windows-1252" ? windows1252 : utf16(encoding === "utf-16be");
    }
    decode(input?: ArrayBuffer | ArrayBufferView, options: { stream?: boolean } = {}): string {
      let bytes = input === undefined ? new Uint8Array(0) : bytesOf(input);
      if (this.#pending.length > 0) {
        const all = new Uint8Array(this.#pending.length + bytes.length);
        all.set(this.#pending);
        all.set(bytes, this.#pending.length);
        bytes = all;
      }
      const stream = options?.stream ?? false;
      const whole = stream ? bytes.length - this.#decode.incomplete(bytes) : bytes.length;
      this.#pending = bytes.slice(whole);
      let text = "";
      try {
        text = this.#decode.text(bytes.subarray(0, whole), this.fatal);
      } catch (error) {
        this.#pending = new Uint8Array(0);
        this.#begun = false;
        throw error;
      }
      if (!this.#begun && text !== "" && !this.ignoreBOM && this.encoding !== "windows-1252" && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
      this.#begun = stream && (this.#begun || whole > 0);
      return text;
    }
  }

  /** Bytes as text, with U+FFFD for each longest beginning of a character that does not go on (Encoding Standard, 8.1.1). */
  function repaired(bytes: Uint8Array): string {
    let text = "";
    let from = 0; // of the valid bytes that are not in text yet
    for (let at = 0; at < bytes.length; ) {
      const [size, low, high] = lengthOf(bytes[at]);
      let n = 1;
      while (n < size && bytes[at + n] >= (n === 1 ? low : 0x80) && bytes[at + n] <= (n === 1 ? high : 0xbf)) n++;
      if (n < size || size === 0) {
        if (from < at) text += host.decode(bytes.subarray(from, at));
        text += "\ufffd";
        from = at + n;
      }
      at += n;
    }
    return from < bytes.length ? text + host.decode(bytes.subarray(from)) : text;
  }

  const utf8: Decoder = {
    text(bytes, fatal) {
      if (bytes.length === 0) return "";
      const text = host.decode(bytes).toWellFormed();
      // What the engine puts in place of bytes that are not UTF-8 differs from the standard.
      if (text.includes("\ufffd") && !fatal) return repaired(bytes);
      if (fatal) {
        const again = host.encode(text);
        if (again.length !== bytes.length || again.some((b, i) => b !== bytes[i])) throw new TypeError("TextDecoder: the input is not UTF-8");
      }
      return text;
    },
    incomplete(bytes) {
      for (let n = 1; n <= 3 && n <= bytes.length; n++) {
        const lead = bytes[bytes.length - n];
        if (lead >= 0x80 && lead < 0xc0) continue; // a byte after the first
        const [size, low, high] = lengthOf(lead);
        if (n >= size) return 0;
        const second = bytes[bytes.length - n + 1];
        return n > 1 && (second < low || second > high) ? 0 : n;
      }
      return 0;
    },
  };

  define("TextEncoder", TextEncoder);
  define("TextDecoder", TextDecoder);
}
