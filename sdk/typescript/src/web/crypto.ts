// crypto: randomness (W3C, Web Cryptography Level 2, section 10); subtle.ts adds crypto.subtle. Also Math.random: that
// of the engine would give every request the same numbers, as every request begins with the same memory.

import { expose } from "./define.ts";
import { bytesOf } from "./encoding.ts";
import { DOMException, QuotaExceededError } from "./exception.ts";
import { type Runner } from "../host.ts";

export function installCrypto(runner: Runner): void {
  const fill = (into: Uint8Array): void => {
    for (let at = 0; at < into.length; ) {
      const some = runner.host.random(Math.min(into.length - at, 4096));
      into.set(some, at);
      at += some.length;
    }
  };

  const token = {};

  class Crypto {
    #brand = true;
    constructor() {
      if (arguments[0] !== token) throw new TypeError("Crypto has no public constructor: use crypto");
    }
    getRandomValues<T extends ArrayBufferView>(array: T): T {
      this.#brand;
      runner.demand("crypto.getRandomValues");
      if (!ArrayBuffer.isView(array)) throw new TypeError("crypto.getRandomValues: the argument must be a typed array of integers, such as a Uint8Array");
      if (!/^(Big)?(Int|Uint)/.test((array as any)[Symbol.toStringTag])) throw new DOMException("crypto.getRandomValues: the argument must be a typed array of integers, such as a Uint8Array", "TypeMismatchError");
      if (array.byteLength > 65536) throw new QuotaExceededError("crypto.getRandomValues: at most 65536 bytes at once");
      fill(bytesOf(array));
      return array;
    }
    randomUUID(): string {
      this.#brand;
      runner.demand("crypto.randomUUID");
      const bytes = new Uint8Array(16);
      fill(bytes);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    }
  }

  expose("Crypto", Crypto);
  const crypto = new (Crypto as any)(token);
  const get = { get crypto() { return crypto; } };
  Object.defineProperty(globalThis, "crypto", { ...Object.getOwnPropertyDescriptor(get, "crypto"), configurable: true });

  const frozen = Math.random;
  const state = new Uint32Array(4);
  let seeded = false;
  Math.random = {
    random(): number {
      if (!runner.live) {
        runner.freeze("Math.random: its numbers become part of the module and are");
        return frozen();
      }
      if (!seeded) {
        fill(new Uint8Array(state.buffer));
        seeded = true;
      }
      return ((next(state) >>> 5) * 0x4000000 + (next(state) >>> 6)) / 0x20000000000000;
    },
  }.random;
}

/** sfc32 (PractRand): three words of state and a counter. */
function next(s: Uint32Array): number {
  const t = (s[0] + s[1] + s[3]) | 0;
  s[3] = s[3] + 1;
  s[0] = s[1] ^ (s[1] >>> 9);
  s[1] = s[2] + (s[2] << 3);
  s[2] = ((s[2] << 21) | (s[2] >>> 11)) + t;
  return t >>> 0;
}
