// TextEncoder and TextDecoder, for UTF-8 alone (Encoding Standard, 8).

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
    readonly encoding = "utf-8";
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;
    constructor(label = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
      if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError(`TextDecoder: only utf-8 is there, not ${label}`);
      this.fatal = options.fatal ?? false;
      this.ignoreBOM = options.ignoreBOM ?? false;
    }
    decode(input?: ArrayBuffer | ArrayBufferView, options: { stream?: boolean } = {}): string {
      if (options.stream) throw new TypeError("TextDecoder: it takes its input in one piece");
      const bytes = input === undefined ? new Uint8Array(0) : bytesOf(input);
      if (bytes.length === 0) return "";
      const text = host.decode(bytes).toWellFormed();
      if (this.fatal) {
        const again = host.encode(text);
        if (again.length !== bytes.length || again.some((b, i) => b !== bytes[i])) throw new TypeError("TextDecoder: the input is not UTF-8");
      }
      return !this.ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }
  }

  define("TextEncoder", TextEncoder);
  define("TextDecoder", TextDecoder);
}
