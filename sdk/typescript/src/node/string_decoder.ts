// node:string_decoder: decodes bytes in pieces. A character may be divided between pieces.

import { incompleteUTF8 } from "../web/encoding.ts";
import { type Encoding, encodingOf } from "./bytes.ts";
import { wrongType } from "./errors.ts";

/** How many bytes at the end are kept for the next piece. */
function waiting({ name }: Encoding, bytes: Uint8Array): number {
  switch (name) {
    case "utf8":
      return incompleteUTF8(bytes);
    case "utf16le": {
      const odd = bytes.length % 2;
      const unit = bytes.length - odd >= 2 ? bytes[bytes.length - odd - 1] : 0;
      return odd + ((unit & 0xfc) === 0xd8 ? 2 : 0);
    }
    case "base64":
    case "base64url":
      return bytes.length % 3;
  }
  return 0;
}

class StringDecoderClass {
  encoding: string;
  declare private readonly how: Encoding;
  declare private rest: Uint8Array;
  constructor(encoding?: string) {
    const how = encodingOf(encoding);
    this.encoding = how.name;
    for (const [key, value] of [["how", how], ["rest", new Uint8Array(0)]] as const) {
      Object.defineProperty(this, key, { value, writable: true, enumerable: false });
    }
  }
  write(piece: any): string {
    if (typeof piece === "string") return piece;
    if (!ArrayBuffer.isView(piece)) throw wrongType("buf", "an instance of Buffer, TypedArray, or DataView", piece);
    let bytes = new Uint8Array(piece.buffer as ArrayBuffer, piece.byteOffset, piece.byteLength);
    if (this.rest.length > 0) {
      const all = new Uint8Array(this.rest.length + bytes.length);
      all.set(this.rest);
      all.set(bytes, this.rest.length);
      bytes = all;
    }
    const whole = bytes.length - waiting(this.how, bytes);
    this.rest = bytes.slice(whole);
    return this.how.text(bytes.subarray(0, whole));
  }
  end(piece?: any): string {
    const text = piece === undefined ? "" : this.write(piece);
    const rest = this.rest;
    this.rest = new Uint8Array(0);
    return rest.length > 0 ? text + this.how.text(rest) : text;
  }
  text(piece: any, offset: number): string {
    this.rest = new Uint8Array(0);
    return this.write(piece.subarray(offset));
  }
  get lastNeed(): number {
    return this.rest.length > 0 ? 1 : 0;
  }
}

/** It may be called without new, on an object that inherits from it. */
export const StringDecoder: any = new Proxy(StringDecoderClass, {
  apply: (made, self, given) => Object.defineProperties(self ?? {}, Object.getOwnPropertyDescriptors(Reflect.construct(made, given))),
});

export default { StringDecoder };
