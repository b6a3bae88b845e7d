// crypto, as far as handlers need it: randomness, and SHA-2 and HMAC with it, which
// the host does. And Math.random, which would give every request the same numbers, as every request
// begins with the same memory.

import { define } from "./console.ts";
import { bytesOf, fromBase64, toBase64 } from "./encoding.ts";
import { type Operation, result, run, type Runner, Whole } from "./host.ts";

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

  define("crypto", { getRandomValues, randomUUID, subtle: { digest, importKey, sign, verify } });

  const frozen = Math.random;
  const state = new Uint32Array(4);
  let seeded = false;
  Math.random = function random(): number {
    if (!runner.live) {
      runner.frozen ??= new Error("Math.random: its numbers become part of the module and are the same in every request: call it inside of a handler");
      return frozen();
    }
    if (!seeded) {
      fill(new Uint8Array(state.buffer));
      seeded = true;
    }
    return ((next(state) >>> 5) * 0x4000000 + (next(state) >>> 6)) / 0x20000000000000;
  };
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

type Bytes = ArrayBuffer | ArrayBufferView;
type Algorithm = string | { name: string; hash?: Algorithm };

const hashes = ["SHA-256", "SHA-384", "SHA-512"];

class HMACKey {
  readonly type = "secret";
  readonly extractable = false;
  readonly algorithm: { name: string; hash: { name: string } };
  readonly #secret: string;
  constructor(secret: Uint8Array, hash: string, readonly usages: string[]) {
    this.#secret = toBase64(secret);
    this.algorithm = { name: "HMAC", hash: { name: hash } };
  }
  sign(data: Uint8Array): string {
    run("hmac", { algorithm: this.algorithm.hash.name, key: { base64: this.#secret }, data: { base64: toBase64(data) } });
    return result().base64;
  }
}

async function digest(algorithm: Algorithm, data: Bytes): Promise<ArrayBuffer> {
  run("digest", { algorithm: oneOf(hashes, algorithm), data: { base64: toBase64(bytesOf(data)) } });
  return fromBase64(result().base64).buffer as ArrayBuffer;
}

async function importKey(format: string, key: Bytes, algorithm: Algorithm, _extractable: boolean, usages: string[]): Promise<HMACKey> {
  if (format !== "raw") throw new TypeError(`crypto.subtle: keys are imported as "raw", not "${format}"`);
  oneOf(["HMAC"], algorithm);
  const hash = oneOf(hashes, (algorithm as { hash?: Algorithm }).hash ?? "");
  if (bytesOf(key).length === 0) throw new TypeError("crypto.subtle: a key for HMAC is not empty");
  return new HMACKey(bytesOf(key), hash, [...usages]);
}

async function sign(algorithm: Algorithm, key: HMACKey, data: Bytes): Promise<ArrayBuffer> {
  oneOf(["HMAC"], algorithm);
  may(key, "sign");
  return fromBase64(key.sign(bytesOf(data))).buffer as ArrayBuffer;
}

async function verify(algorithm: Algorithm, key: HMACKey, signature: Bytes, data: Bytes): Promise<boolean> {
  oneOf(["HMAC"], algorithm);
  may(key, "verify");
  return equal({ base64: key.sign(bytesOf(data)) }, { base64: toBase64(bytesOf(signature)) });
}

function oneOf(names: string[], algorithm: Algorithm): string {
  const given = String(typeof algorithm === "string" ? algorithm : algorithm?.name);
  const name = given.toUpperCase();
  if (!names.includes(name)) throw new TypeError(`crypto.subtle: ${names.join(", ")} ${names.length > 1 ? "are" : "is"} there, not ${given}`);
  return name;
}

function may(key: HMACKey, usage: string): void {
  if (!(key instanceof HMACKey) || !key.usages.includes(usage)) throw new TypeError(`crypto.subtle: the key is not one to ${usage} with`);
}

function equal(a: unknown, b: unknown): boolean {
  run("timingSafeEqual", { a, b });
  return result().equal;
}

const octets = (value: string | Bytes) => (typeof value === "string" ? value.toWellFormed() : { base64: toBase64(bytesOf(value)) });

/** Compares in a time that depends on the lengths alone. */
export function timingSafeEqual(a: string | Bytes, b: string | Bytes): boolean {
  return equal(octets(a), octets(b));
}

/** Signs with a declared secret, which stays with the host. */
export function hmac(algorithm: string, secret: string, data: string | Bytes): Operation<{ hex: string; base64: string }> {
  return new Whole("hmac", { algorithm, secret, data: octets(data) });
}
