// TextEncoder and TextDecoder (Encoding Standard, 7). UTF-8, UTF-16 and windows-1252 are decoded here, and the other
// encodings by the host.

import { expose } from "./define.ts";
import { errno, failure, result, type Runner } from "../host.ts";
import { dictionary } from "./idl.ts";

/** The bytes of a buffer or of a view of one; a buffer that was transferred has no bytes. */
export function bytesOf(input: ArrayBuffer | ArrayBufferView): Uint8Array {
  const buffer = ArrayBuffer.isView(input) ? input.buffer : input;
  if ((buffer as { detached?: boolean } | null)?.detached) return new Uint8Array(0);
  if (input instanceof Uint8Array) return input;
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  throw new TypeError("the bytes must be an ArrayBuffer or a view of one");
}

// Of the engine (ECMAScript 2026, 23.2.2 and 23.2.3).
interface Base64 {
  prototype: { toBase64(this: Uint8Array): string };
  fromBase64(text: string): Uint8Array<ArrayBuffer>;
}
const engine = Uint8Array as unknown as Base64;
const { fromBase64: decodeBase64, prototype: { toBase64: encodeBase64 } } = engine;

/** Bytes in base64 (RFC 4648, section 4), and back. */
export const toBase64 = (bytes: Uint8Array): string => encodeBase64.call(bytes);
export const fromBase64 = (text: string): Uint8Array<ArrayBuffer> => decodeBase64.call(engine, text);

// Of the engine too, which has nothing else between bytes and text of units below 0x100.
const { atob: binaryOf, btoa: base64Of } = globalThis;

/** Bytes as text with a unit for each of them, and back: what a client may send much of is changed by functions of the engine. */
export const toBinary = (bytes: Uint8Array): string => binaryOf(toBase64(bytes));
export const fromBinary = (text: string): Uint8Array<ArrayBuffer> => fromBase64(base64Of(text));

// What is not UTF-8, in such text: first bytes before a byte that cannot be the second one, and beginnings of two or three bytes.
const impossible = /[\xe0\xed\xf0\xf4](?=(?<=\xe0)[\x80-\x9f]|(?<=\xed)[\xa0-\xbf]|(?<=\xf0)[\x80-\x8f]|(?<=\xf4)[\x90-\xbf])/g;
const unfinished = /[\xe0-\xf4][\x80-\xbf](?:(?<=[\xf0-\xf4].)[\x80-\xbf])?(?![\x80-\xbf])/gs;

/** How bytes of one encoding become text. */
interface Decoder {
  text(bytes: Uint8Array, fatal: boolean): string;
  /** How many bytes at the end are the beginning of a character. */
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
  text: (bytes) => toBinary(bytes).replace(/[\x80-\x9f]/g, (c) => upper[c.charCodeAt(0) - 0x80]),
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

/** The length of a UTF-8 character by its first byte (0: not a first byte), and the bounds of the second byte. */
function lengthOf(lead: number): [size: number, low: number, high: number] {
  const size = lead < 0x80 ? 1 : lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  return [size, low, high];
}

/** How many bytes at the end are the beginning of a character of UTF-8. */
export function incompleteUTF8(bytes: Uint8Array): number {
  for (let n = 1; n <= 3 && n <= bytes.length; n++) {
    const lead = bytes[bytes.length - n];
    if (lead >= 0x80 && lead < 0xc0) continue; // not the first byte
    const [size, low, high] = lengthOf(lead);
    if (n >= size) return 0;
    const second = bytes[bytes.length - n + 1];
    return n > 1 && (second < low || second > high) ? 0 : n;
  }
  return 0;
}

/** How many bytes one call of the host gets, to decode or to compress. */
export const pieceBytes = 1 << 17;

export function installEncoding({ host }: Runner): void {
  /** Decodes a piece of text. Without text in the result it is malformed; undefined: the host does not know the label. */
  function decodeLegacy(args: object): { encoding: string; text?: string; state: string } | undefined {
    const op = "encoding.decode";
    const n = host.call(op, JSON.stringify(args));
    if (n >= 0) return result();
    if (errno(n) === "invalid") return undefined;
    throw failure(n, op);
  }

  /** The name of the encoding with a label (4.2). names keeps those that the host has returned. */
  const names = new Map<string, string>();
  function encodingOf(label: string): string {
    const name = label.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "");
    // toLowerCase makes ASCII letters of some other characters, which are in no label.
    if (/^[-\w.:]+$/.test(name)) {
      const key = name.toLowerCase();
      const encoding = Object.keys(labels).find((encoding) => labels[encoding].test(key)) ?? names.get(key) ?? decodeLegacy({ encoding: key, data: "" })?.encoding;
      if (encoding !== undefined) {
        if (!(encoding in labels)) names.set(key, encoding);
        return encoding;
      }
    }
    throw new RangeError(`TextDecoder: ${JSON.stringify(label)} is not the label of an encoding of the Encoding Standard, such as "utf-8" or "shift_jis"`);
  }

  class TextEncoder {
    readonly #encoding = "utf-8";
    get encoding() {
      return this.#encoding;
    }
    encode(text = ""): Uint8Array {
      this.#encoding;
      return text === "" ? new Uint8Array(0) : host.encode(`${text}`.toWellFormed());
    }
    encodeInto(text: string, into: Uint8Array): { read: number; written: number } {
      text = `${text}`;
      if (!(into instanceof Uint8Array)) throw new TypeError("TextEncoder.encodeInto: the second argument must be a Uint8Array");
      let read = Math.min(text.length, into.length); // each unit takes a byte or more
      let bytes = this.encode(text.slice(0, read));
      if (bytes.length > into.length) {
        let written = into.length;
        while ((bytes[written] & 0xc0) === 0x80) written--; // to the beginning of a character
        bytes = bytes.subarray(0, written);
        read = host.decode(bytes).length;
      }
      if (bytes.length > 0) into.set(bytes); // which refuses a detached buffer
      return { read, written: bytes.length };
    }
  }

  class TextDecoder {
    readonly #decode?: Decoder; // undefined: the host decodes
    readonly #fatal: boolean;
    readonly #ignoreBOM: boolean;
    readonly #encoding: string;
    #pending = new Uint8Array(0); // the beginning of a character, at the end of the last piece
    #state = ""; // of the host's decoder, between two pieces
    #begun = false; // a byte order mark cannot follow
    constructor(label = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
      const encoding = label === "utf-8" ? label : encodingOf(`${label}`);
      this.#encoding = encoding;
      const { fatal, ignoreBOM } = dictionary(options, "TextDecoder");
      this.#fatal = !!fatal;
      this.#ignoreBOM = !!ignoreBOM;
      if (encoding === "utf-8") this.#decode = utf8;
      else if (encoding in labels) this.#decode = encoding === "windows-1252" ? windows1252 : utf16(encoding === "utf-16be");
    }
    get encoding() {
      return this.#encoding;
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(input?: ArrayBuffer | ArrayBufferView, options: { stream?: boolean } = {}): string {
      const { SharedArrayBuffer } = globalThis;
      let bytes = input === undefined ? new Uint8Array(0) : SharedArrayBuffer && input instanceof SharedArrayBuffer ? new Uint8Array(input) : bytesOf(input);
      const stream = !!dictionary(options, "TextDecoder.decode").stream;
      const decoder = this.#decode;
      if (decoder === undefined) return this.#ask(bytes, stream);
      if (this.#pending.length > 0) {
        const all = new Uint8Array(this.#pending.length + bytes.length);
        all.set(this.#pending);
        all.set(bytes, this.#pending.length);
        bytes = all;
      }
      const whole = stream ? bytes.length - decoder.incomplete(bytes) : bytes.length;
      this.#pending = bytes.slice(whole);
      let text = "";
      try {
        text = decoder.text(bytes.subarray(0, whole), this.#fatal);
      } catch (error) {
        this.#pending = new Uint8Array(0);
        this.#begun = false;
        throw error;
      }
      if (!this.#begun && text !== "" && !this.#ignoreBOM && this.#encoding !== "windows-1252" && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
      this.#begun = stream && (this.#begun || whole > 0);
      return text;
    }
    #ask(bytes: Uint8Array, stream: boolean): string {
      let all = "";
      let state = this.#state;
      this.#state = "";
      for (let at = 0; at < bytes.length || (state !== "" && !stream); ) {
        const data = { base64: toBase64(bytes.subarray(at, (at += pieceBytes))) };
        const answer = decodeLegacy({ encoding: this.#encoding, data, state, more: stream || at < bytes.length, fatal: this.#fatal });
        if (answer?.text === undefined) throw new TypeError(`TextDecoder: the input is not ${this.#encoding}`);
        all += answer.text;
        state = answer.state;
      }
      this.#state = state;
      return all;
    }
  }

  /**
   * Bytes as text, with U+FFFD for each longest beginning of a character that does not go on (Encoding Standard, 8.1.1).
   * The engine puts one for each byte of it, so each becomes one byte before.
   */
  function repaired(bytes: Uint8Array): string {
    const binary = toBinary(bytes).replace(impossible, "\xff").replace(unfinished, "\xff");
    return host.decode(fromBinary(binary));
  }

  const utf8: Decoder = {
    text(bytes, fatal) {
      if (bytes.length === 0) return "";
      const text = host.decode(bytes).toWellFormed();
      // The engine puts U+FFFD in place of bytes that are not UTF-8, but not of as many as the standard. It reads two
      // surrogates of three bytes, which begin with 0xed, as one character.
      if (!text.includes("\ufffd") && !(bytes.includes(0xed) && host.encode(text).length !== bytes.length)) return text;
      if (!fatal) return repaired(bytes);
      if (toBase64(host.encode(text)) !== toBase64(bytes)) throw new TypeError("TextDecoder: the input is not UTF-8");
      return text;
    },
    incomplete: incompleteUTF8,
  };

  expose("TextEncoder", TextEncoder);
  expose("TextDecoder", TextDecoder);
}
