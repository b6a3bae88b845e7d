// crypto.subtle (W3C, Web Cryptography Level 2): the objects are made here, and the host
// computes. A key is kept as the host has given it, and passed back.

import { bytesOf, fromBase64, toBase64 } from "./encoding.ts";
import { DOMException } from "./exception.ts";
import { HostError, placeless, result, run, type Runner } from "./host.ts";

type Bytes = ArrayBuffer | ArrayBufferView;
type Algorithm = string | { name: string; [member: string]: any };

/** A key as the host has it. */
interface HostKey {
  type: string;
  algorithm: any;
  usages?: string[];
  data: unknown;
}

const hashes = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];
const names = ["HMAC", "ECDSA", "Ed25519", "RSA-PSS", "RSASSA-PKCS1-v1_5", "AES-GCM", "PBKDF2", "HKDF"];
const formats = ["raw", "spki", "pkcs8", "jwk"];
const usagesOfKeys = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];

const signing = ["HMAC", "ECDSA", "Ed25519", "RSA-PSS", "RSASSA-PKCS1-v1_5"];
const encrypting = ["AES-GCM"];
const deriving = ["PBKDF2", "HKDF"];

const failure = (name: string, message: string): never => {
  throw new DOMException(message, name);
};

const octets = (bytes: Bytes) => ({ base64: toBase64(bytesOf(bytes)) });
const buffer = (from: { base64: string }): ArrayBuffer => fromBase64(from.base64).buffer as ArrayBuffer;

let hostKey: (key: CryptoKey) => HostKey;
let make: (key: HostKey, extractable: boolean) => CryptoKey;

export class CryptoKey {
  readonly #key: HostKey;
  readonly #extractable: boolean;
  #algorithm: any;

  static {
    hostKey = (key) => {
      if (!(key instanceof CryptoKey)) throw new TypeError("crypto.subtle: the key is not a CryptoKey");
      return key.#key;
    };
    make = (key, extractable) => new CryptoKey(make, key, extractable);
  }

  constructor(maker?: unknown, key?: HostKey, extractable?: boolean) {
    if (maker !== make || !key) throw new TypeError("CryptoKey: crypto.subtle makes keys, with importKey and generateKey");
    this.#key = key;
    this.#extractable = key.type === "public" || extractable === true;
  }
  get type(): string {
    return this.#key.type;
  }
  get extractable(): boolean {
    return this.#extractable;
  }
  get algorithm(): any {
    if (this.#algorithm === undefined) {
      const { hash, publicExponent, ...rest } = this.#key.algorithm;
      if (hash !== undefined) rest.hash = { name: hash };
      if (publicExponent !== undefined) rest.publicExponent = fromBase64(publicExponent.base64);
      this.#algorithm = rest;
    }
    return this.#algorithm;
  }
  get usages(): string[] {
    return this.#key.usages ?? [];
  }
  get [Symbol.toStringTag](): string {
    return "CryptoKey";
  }
}

/** An error of the host as the standard names it. */
function named(error: unknown): unknown {
  if (!(error instanceof HostError)) return error;
  const parts = error.code === "invalid" ? /^crypto\.\w+: (\w+Error): ([^]*)$/.exec(error.message) : null;
  if (!parts) return placeless(error);
  return parts[1] === "TypeError" ? new TypeError(`crypto.subtle: ${parts[2]}`) : new DOMException(`crypto.subtle: ${parts[2]}`, parts[1]);
}

function compute(op: string, args: object): any {
  try {
    run(`crypto.${op}`, args);
    return result();
  } catch (error) {
    throw named(error);
  }
}

function hashName(algorithm: Algorithm | undefined): string | undefined {
  if (algorithm === undefined) return undefined;
  const given = String(typeof algorithm === "object" ? algorithm.name : algorithm);
  return hashes.find((name) => name === given.toUpperCase()) ?? failure("NotSupportedError", `crypto.subtle: the hash must be one of ${hashes.join(", ")}, not ${given}`);
}

const numbers = ["length", "modulusLength", "saltLength", "tagLength", "iterations"];
const buffers = ["iv", "additionalData", "salt", "info", "publicExponent"];

/** An algorithm in the host's form, which must be among the known ones. */
function normalize(algorithm: Algorithm, known = names): any {
  const given: any = typeof algorithm === "string" ? { name: algorithm } : algorithm;
  if (typeof given !== "object" || given === null || given.name === undefined) {
    throw new TypeError("crypto.subtle: an algorithm is a name, or an object with a name");
  }
  const wanted = String(given.name).toUpperCase();
  const name = known.find((name) => name.toUpperCase() === wanted) ?? failure("NotSupportedError", `crypto.subtle: ${given.name} is not supported here; there is ${known.join(", ")}`);
  const made: any = { name, hash: hashName(given.hash) };
  if (given.namedCurve !== undefined) made.namedCurve = String(given.namedCurve);
  for (const member of numbers) {
    if (given[member] === undefined) continue;
    const n = Math.trunc(Number(given[member]));
    if (!(n >= 0 && n <= 0xffffffff)) throw new TypeError(`crypto.subtle: ${member} is a whole number from 0 to 4294967295`);
    made[member] = n;
  }
  for (const member of buffers) if (given[member] !== undefined) made[member] = octets(given[member]);
  return made;
}

function may(key: CryptoKey, algorithm: any, usage: string): HostKey {
  const held = hostKey(key);
  if (held.algorithm.name !== algorithm.name) failure("InvalidAccessError", `crypto.subtle: the key is one of ${held.algorithm.name}, not of ${algorithm.name}`);
  if (!key.usages.includes(usage)) failure("InvalidAccessError", `crypto.subtle: the key does not have the usage ${usage}`);
  return held;
}

function oneOf(what: string, value: string, known: string[]): string {
  const text = String(value);
  if (!known.includes(text)) throw new TypeError(`crypto.subtle: ${text} is not one of the ${what} ${known.join(", ")}`);
  return text;
}

const usagesFrom = (usages: Iterable<string>): string[] => Array.from(usages, (usage) => oneOf("usages", usage, usagesOfKeys));

const members = ["kty", "use", "key_ops", "ext", "alg", "crv", "x", "y", "d", "n", "e", "p", "q", "dp", "dq", "qi", "k"];

/** The members of a JWK that the standard knows. */
function jwkFrom(data: any): object {
  const jwk: any = {};
  for (const member of members) {
    const value = data[member];
    if (value === undefined) continue;
    if (member === "ext") jwk.ext = Boolean(value);
    else if (member === "key_ops") jwk.key_ops = Array.from(value, String);
    else jwk[member] = String(value);
  }
  if (data.oth !== undefined) failure("NotSupportedError", "crypto.subtle: a key of RSA with more than two primes is not supported");
  return jwk;
}

const isBytes = (data: unknown): data is Bytes => data instanceof ArrayBuffer || ArrayBuffer.isView(data);

async function digest(algorithm: Algorithm, data: Bytes): Promise<ArrayBuffer> {
  const hash = hashName(typeof algorithm === "object" && algorithm !== null ? algorithm.name : algorithm);
  try {
    run("digest", { algorithm: hash, data: octets(data) });
    return buffer(result());
  } catch (error) {
    throw named(error);
  }
}

async function importKey(format: string, data: any, algorithm: Algorithm, extractable: boolean, usages: Iterable<string>): Promise<CryptoKey> {
  oneOf("formats", format, formats);
  const args: any = { format, algorithm: normalize(algorithm), extractable: Boolean(extractable), usages: usagesFrom(usages) };
  if (format !== "jwk") {
    args.data = octets(data);
  } else {
    if (typeof data !== "object" || data === null || isBytes(data)) throw new TypeError("crypto.subtle: a JWK is an object");
    args.jwk = jwkFrom(data);
  }
  return make(compute("importKey", args), args.extractable);
}

async function exportKey(format: string, key: CryptoKey): Promise<any> {
  oneOf("formats", format, formats);
  const held = hostKey(key);
  if (deriving.includes(held.algorithm.name)) failure("NotSupportedError", `crypto.subtle: a key of ${held.algorithm.name} cannot be exported`);
  if (!key.extractable) failure("InvalidAccessError", "crypto.subtle: the key is not extractable");
  const exported = compute("exportKey", { format, key: held });
  return format === "jwk" ? { ...exported.jwk, key_ops: [...key.usages], ext: true } : buffer(exported);
}

async function generateKey(algorithm: Algorithm, extractable: boolean, usages: Iterable<string>): Promise<any> {
  const args = { algorithm: normalize(algorithm, [...signing, ...encrypting]), usages: usagesFrom(usages) };
  const made = await begin(args).catch((error) => Promise.reject(named(error)));
  if (made.key) return make(made.key, Boolean(extractable));
  return { publicKey: make(made.publicKey, true), privateKey: make(made.privateKey, Boolean(extractable)) };
}

async function sign(algorithm: Algorithm, key: CryptoKey, data: Bytes): Promise<ArrayBuffer> {
  const normal = normalize(algorithm, signing);
  return buffer(compute("sign", { algorithm: normal, key: may(key, normal, "sign"), data: octets(data) }));
}

async function verify(algorithm: Algorithm, key: CryptoKey, signature: Bytes, data: Bytes): Promise<boolean> {
  const normal = normalize(algorithm, signing);
  return compute("verify", { algorithm: normal, key: may(key, normal, "verify"), signature: octets(signature), data: octets(data) }).valid;
}

async function encrypt(algorithm: Algorithm, key: CryptoKey, data: Bytes): Promise<ArrayBuffer> {
  const normal = normalize(algorithm, encrypting);
  return buffer(compute("encrypt", { algorithm: normal, key: may(key, normal, "encrypt"), data: octets(data) }));
}

async function decrypt(algorithm: Algorithm, key: CryptoKey, data: Bytes): Promise<ArrayBuffer> {
  const normal = normalize(algorithm, encrypting);
  return buffer(compute("decrypt", { algorithm: normal, key: may(key, normal, "decrypt"), data: octets(data) }));
}

async function deriveBits(algorithm: Algorithm, key: CryptoKey, length: number | null = null): Promise<ArrayBuffer> {
  const normal = normalize(algorithm, deriving);
  return buffer(compute("deriveBits", { algorithm: normal, key: may(key, normal, "deriveBits"), length }));
}

/** The bits that a derived key has. */
function lengthOf(derived: any): number {
  if (derived.length !== undefined) return derived.length;
  if (derived.name === "AES-GCM") throw new TypeError("crypto.subtle: the length of the derived key is missing");
  return derived.hash === "SHA-1" || derived.hash === "SHA-256" ? 512 : 1024;
}

async function deriveKey(algorithm: Algorithm, key: CryptoKey, derived: Algorithm, extractable: boolean, usages: Iterable<string>): Promise<CryptoKey> {
  const normal = normalize(algorithm, deriving);
  const length = lengthOf(normalize(derived, ["HMAC", "AES-GCM"]));
  const bits = compute("deriveBits", { algorithm: normal, key: may(key, normal, "deriveKey"), length });
  return importKey("raw", buffer(bits), derived, extractable, usages);
}

async function wrapKey(format: string, key: CryptoKey, wrapping: CryptoKey, algorithm: Algorithm): Promise<ArrayBuffer> {
  const normal = normalize(algorithm, encrypting);
  const held = may(wrapping, normal, "wrapKey");
  const exported = await exportKey(format, key);
  const bytes = format === "jwk" ? new TextEncoder().encode(JSON.stringify(exported)) : exported;
  return buffer(compute("encrypt", { algorithm: normal, key: held, data: octets(bytes) }));
}

async function unwrapKey(
  format: string, wrapped: Bytes, unwrapping: CryptoKey, algorithm: Algorithm, keyAlgorithm: Algorithm, extractable: boolean, usages: Iterable<string>,
): Promise<CryptoKey> {
  const normal = normalize(algorithm, encrypting);
  const bytes = buffer(compute("decrypt", { algorithm: normal, key: may(unwrapping, normal, "unwrapKey"), data: octets(wrapped) }));
  let key: any = bytes;
  if (format === "jwk") {
    try {
      key = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    } catch {
      failure("DataError", "crypto.subtle: what was wrapped is not a JWK");
    }
  }
  return importKey(format, key, keyAlgorithm, extractable, usages);
}

let begin: (args: object) => Promise<any>;

export function subtleOf(runner: Runner): object {
  begin = (args) => runner.begin("crypto.generateKey", args);
  return { digest, importKey, exportKey, generateKey, sign, verify, encrypt, decrypt, deriveBits, deriveKey, wrapKey, unwrapKey };
}
