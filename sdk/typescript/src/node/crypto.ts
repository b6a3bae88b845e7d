// node:crypto: hashes, HMAC, key derivation and randomness. The host computes them. A hash keeps its input until
// digest, and asks the host once.

import { result, run } from "../host.ts";
import { timingSafeEqual as sameBytes } from "../hmac.ts";
import { bytesOf, toBase64 } from "../web/encoding.ts";
import { Buffer } from "./buffer.ts";
import { coded, needFunction, needInteger, outOfRange, wrongType } from "./errors.ts";
import { md5 } from "./md5.ts";

type Data = string | ArrayBuffer | ArrayBufferView;

const hashes: Record<string, string> = { sha1: "SHA-1", sha256: "SHA-256", sha384: "SHA-384", sha512: "SHA-512", md5: "MD5" };
const web = (globalThis as any).crypto;

/** The name of a hash in the host's operations. */
function hashOf(name: unknown): string {
  if (typeof name !== "string") throw wrongType("algorithm", "of type string", name);
  const found = hashes[name.toLowerCase().replace(/^rsa-/, "").replace("-", "")];
  if (!found) throw coded(Error, "ERR_OSSL_EVP_UNSUPPORTED", `crypto: the hash ${name} is not supported; use md5, sha1, sha256, sha384 or sha512`);
  return found;
}

const octets = (bytes: Uint8Array) => ({ base64: toBase64(bytes) });

function bytesFrom(name: string, data: any, encoding?: unknown): Uint8Array {
  if (typeof data === "string") return Buffer.from(data, encoding === "buffer" ? undefined : encoding);
  if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) return bytesOf(data);
  if (data instanceof KeyObject) return secretOf(data);
  throw wrongType(name, "of type string or an instance of Buffer, TypedArray, or DataView", data);
}

const made = (bytes: any, encoding?: unknown): any => (encoding === undefined || encoding === "buffer" ? bytes : bytes.toString(encoding));

function digestOf(hash: string, data: Uint8Array): any {
  if (hash === "MD5") return Buffer.from(md5(data).buffer);
  run("digest", { algorithm: hash, data: octets(data) });
  return Buffer.from(result().base64, "base64");
}

function hmacOf(hash: string, key: Uint8Array, data: Uint8Array): any {
  if (hash !== "MD5" && key.length > 0) {
    run("hmac", { algorithm: hash, key: octets(key), data: octets(data) });
    return Buffer.from(result().base64, "base64");
  }
  const block = Buffer.alloc(hash === "SHA-384" || hash === "SHA-512" ? 128 : 64);
  block.set(key.length > block.length ? digestOf(hash, key) : key);
  const inner = digestOf(hash, Buffer.concat([block.map((b: number) => b ^ 0x36), data]));
  return digestOf(hash, Buffer.concat([block.map((b: number) => b ^ 0x5c), inner]));
}

/** The result of createHash and createHmac. It keeps its input until digest, and is not a stream. */
class Hash {
  #parts: Uint8Array[];
  #over = false;
  readonly #end: (data: Uint8Array) => any;
  constructor(end: (data: Uint8Array) => any, parts: Uint8Array[] = []) {
    this.#end = end;
    this.#parts = parts;
  }
  update(data: Data, encoding?: string): this {
    if (this.#over) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
    const bytes = bytesFrom("data", data, encoding);
    this.#parts.push(typeof data === "string" ? bytes : bytes.slice());
    return this;
  }
  digest(encoding?: string): any {
    if (this.#over) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
    this.#over = true;
    return made(this.#end(Buffer.concat(this.#parts)), encoding);
  }
  copy(): Hash {
    if (this.#over) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
    return new Hash(this.#end, [...this.#parts]);
  }
  write(data: Data, encoding?: any): boolean {
    this.update(data, encoding);
    return true;
  }
  end(data?: Data, encoding?: any): this {
    return data === undefined ? this : this.update(data, encoding);
  }
}

let secretOf: (key: KeyObject) => Uint8Array;

/** A secret key. For public and private keys use crypto.subtle. */
class KeyObject {
  readonly #secret: Uint8Array;
  readonly type = "secret";
  static {
    secretOf = (key) => key.#secret;
  }
  constructor(type: string, secret: Uint8Array) {
    if (type !== "secret") throw new TypeError(`crypto: a ${type} key is not supported here: use crypto.subtle.importKey`);
    this.#secret = secret;
  }
  get symmetricKeySize(): number {
    return this.#secret.length;
  }
  export(options?: { format?: string }): any {
    return options?.format === "jwk" ? { kty: "oct", k: Buffer.from(this.#secret).toString("base64url") } : Buffer.from(this.#secret);
  }
  equals(other: KeyObject): boolean {
    return this.#secret.length === other.#secret.length && sameBytes(this.#secret, other.#secret);
  }
}

const randomFill = <T extends ArrayBufferView>(into: T): T => {
  const bytes = bytesOf(into);
  for (let at = 0; at < bytes.length; at += 65536) web.getRandomValues(bytes.subarray(at, at + 65536));
  return into;
};

/** Runs a function. With a callback, its result or error is passed to that in a microtask; else it is returned or thrown. */
function later<T>(back: unknown, does: () => T, empty?: null): T | undefined {
  if (back === undefined) return does();
  needFunction("callback", back);
  let outcome: [unknown, T?];
  try {
    outcome = [empty, does()];
  } catch (error) {
    outcome = [error];
  }
  queueMicrotask(() => (back as any)(...outcome));
  return undefined;
}

function randomBytes(size: number, back?: unknown): any {
  if (typeof size !== "number") throw wrongType("size", "of type number", size);
  if (!(size >= 0 && size <= 2 ** 31 - 1)) throw outOfRange("size", ">= 0 && <= 2147483647", size);
  return later(back, () => randomFill(Buffer.alloc(size)), null);
}

function randomInt(min: number, max?: any, back?: any): number | undefined {
  if (max === undefined || typeof max === "function") [min, max, back] = [0, min, max];
  if (!Number.isSafeInteger(min)) throw wrongType("min", "a safe integer", min);
  if (!Number.isSafeInteger(max)) throw wrongType("max", "a safe integer", max);
  const range = max - min;
  if (!(range > 0)) throw outOfRange("max", `greater than the value of "min" (${min})`, max);
  if (range > 2 ** 48 - 1) throw outOfRange("max - min", `<= ${2 ** 48 - 1}`, range);
  return later(back, () => {
    const limit = 2 ** 48 - (2 ** 48 % range); // so that all results are equally likely
    for (;;) {
      const n = randomFill(Buffer.alloc(6)).readUIntBE(0, 6);
      if (n < limit) return min + (n % range);
    }
  });
}

/** Derives bits with the operations of crypto.subtle, without a promise. */
function derive(algorithm: Record<string, unknown>, secret: Uint8Array, size: number): any {
  const { name } = algorithm;
  run("crypto.importKey", { format: "raw", algorithm: { name }, extractable: false, usages: ["deriveBits"], data: octets(secret) });
  const key = result();
  run("crypto.deriveBits", { algorithm, key, length: 8 * size });
  return Buffer.from(result().base64, "base64");
}

function pbkdf2Sync(password: Data, salt: Data, iterations: number, size: number, hash: string): any {
  needInteger("iterations", iterations, 1, 2 ** 31 - 1);
  needInteger("keylen", size, 0, 2 ** 31 - 1);
  const algorithm = { name: "PBKDF2", hash: hashOf(hash), salt: octets(bytesFrom("salt", salt)), iterations };
  return derive(algorithm, bytesFrom("password", password), size);
}

function hkdfSync(hash: string, key: any, salt: Data, info: Data, size: number): ArrayBuffer {
  const algorithm = { name: "HKDF", hash: hashOf(hash), salt: octets(bytesFrom("salt", salt)), info: octets(bytesFrom("info", info)) };
  const bits = derive(algorithm, bytesFrom("ikm", key), size);
  return bits.buffer.slice(bits.byteOffset, bits.byteOffset + bits.length);
}

const missing = (name: string, instead: string) => () => {
  throw new Error(`crypto.${name} is not available in a handler: use ${instead}`);
};

const crypto: any = {
  createHash(name: string) {
    const hash = hashOf(name);
    return new Hash((data) => digestOf(hash, data));
  },
  createHmac(name: string, key: any) {
    const hash = hashOf(name);
    const secret = bytesFrom("key", key).slice();
    return new Hash((data) => hmacOf(hash, secret, data));
  },
  hash: (name: string, data: Data, encoding = "hex") => made(digestOf(hashOf(name), bytesFrom("input", data)), encoding),
  Hash,
  Hmac: Hash,
  KeyObject,
  createSecretKey: (key: any, encoding?: string) => new KeyObject("secret", bytesFrom("key", key, encoding).slice()),
  getHashes: () => Object.keys(hashes),
  getCiphers: () => [],
  getCurves: () => [],
  randomBytes,
  pseudoRandomBytes: randomBytes,
  randomFillSync(into: any, offset = 0, size?: number): any {
    if (!ArrayBuffer.isView(into) && !(into instanceof ArrayBuffer)) throw wrongType("buf", "an instance of ArrayBuffer or ArrayBufferView", into);
    needInteger("offset", offset, 0, into.byteLength);
    needInteger("size", size ?? 0, 0, into.byteLength - offset);
    randomFill(bytesOf(into).subarray(offset, size === undefined ? undefined : offset + size));
    return into;
  },
  randomFill(into: any, ...rest: any[]) {
    later(rest.pop(), () => crypto.randomFillSync(into, ...rest), null);
  },
  randomInt,
  randomUUID: () => web.randomUUID(),
  timingSafeEqual(a: any, b: any): boolean {
    for (const [name, value] of [["buf1", a], ["buf2", b]]) {
      if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be an instance of ArrayBuffer, Buffer, TypedArray, or DataView.`);
    }
    const [x, y] = [bytesOf(a), bytesOf(b)];
    if (x.length !== y.length) throw coded(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
    return sameBytes(x, y);
  },
  pbkdf2Sync,
  pbkdf2(...given: any[]) {
    const back = given.pop();
    needFunction("callback", back);
    later(back, () => (pbkdf2Sync as any)(...given), null);
  },
  hkdfSync,
  hkdf(...given: any[]) {
    const back = given.pop();
    needFunction("callback", back);
    later(back, () => (hkdfSync as any)(...given), null);
  },
  getRandomValues: <T extends ArrayBufferView>(into: T): T => web.getRandomValues(into as any) as any,
  subtle: web.subtle,
  webcrypto: web,
  constants: {},
  getFips: () => 0,
};
const keys = "crypto.subtle, with importKey, sign and verify";
const ciphers = "crypto.subtle, with encrypt and decrypt";
for (const [names, instead] of [
  [["createSign", "createVerify", "sign", "verify", "createPublicKey", "createPrivateKey", "publicEncrypt", "publicDecrypt", "privateEncrypt", "privateDecrypt"], keys],
  [["generateKeyPair", "generateKeyPairSync", "generateKey", "generateKeySync", "createECDH", "createDiffieHellman", "diffieHellman"], "crypto.subtle.generateKey"],
  [["createCipheriv", "createDecipheriv"], ciphers],
  [["scrypt", "scryptSync"], "crypto.pbkdf2, or password.hash of @runner/sdk"],
] as const) {
  for (const name of names) crypto[name] = missing(name, instead);
}

export default crypto;
