// crypto: randomness, and what the host computes. And Math.random, which would give every
// request the same numbers, as every request begins with the same memory.

import { define } from "./console.ts";
import { bytesOf } from "./encoding.ts";
import { DOMException } from "./exception.ts";
import { type Runner } from "./host.ts";
import { CryptoKey, subtleOf } from "./subtle.ts";

export function installCrypto(runner: Runner): void {
  const fill = (into: Uint8Array): void => {
    for (let at = 0; at < into.length; ) {
      const some = runner.host.random(Math.min(into.length - at, 4096));
      into.set(some, at);
      at += some.length;
    }
  };

  const getRandomValues = <T extends ArrayBufferView>(array: T): T => {
    runner.demand("crypto.getRandomValues");
    if (!ArrayBuffer.isView(array) || array instanceof Float32Array || array instanceof Float64Array || array instanceof DataView) {
      throw new TypeError("crypto.getRandomValues: it takes an array of integers");
    }
    if (array.byteLength > 65536) throw new RangeError("crypto.getRandomValues: at most 65536 bytes at once");
    fill(bytesOf(array));
    return array;
  };

  const randomUUID = (): string => {
    runner.demand("crypto.randomUUID");
    const bytes = new Uint8Array(16);
    fill(bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };

  define("crypto", { getRandomValues, randomUUID, subtle: subtleOf(runner) });
  define("CryptoKey", CryptoKey);
  define("DOMException", DOMException);

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
