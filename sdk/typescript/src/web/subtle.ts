// crypto.subtle (W3C, Web Cryptography Level 2, section 14): the objects are made here, and the host computes.
// Each operation converts its arguments, then normalizes the algorithm, then checks the key, as the standard does.

import { HostError, placeless, result, run, runner } from "../host.ts";
import { type Algorithm, bufferSource, type Bytes, fail, integer, knows, normalize, octets } from "./algorithms.ts";
import { cloneKey, CryptoKey, hostKey, type HostKey, isExtractable, make } from "./cryptokey.ts";
import { expose } from "./define.ts";
import { fromBase64 } from "./encoding.ts";
import { jwkFrom } from "./jwk.ts";

const formats = ["raw", "spki", "pkcs8", "jwk"];
// The last four belong to algorithms that are not supported (Modern Algorithms in the Web Cryptography API). No key
// can have them, so they are a SyntaxError of the key, and not a TypeError.
const usagesOfKeys = [
  "encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey",
  "encapsulateKey", "encapsulateBits", "decapsulateKey", "decapsulateBits",
];

const buffer = (from: { base64: string }): ArrayBuffer => fromBase64(from.base64).buffer as ArrayBuffer;

/** The error of the standard for an error of the host. */
function named(error: unknown): unknown {
  if (!(error instanceof HostError)) return error;
  const parts = error.code === "invalid" ? /^(?:crypto\.)?\w+: (\w+Error): ([^]*)$/.exec(error.message) : null;
  if (!parts) return placeless(error);
  return parts[1] === "TypeError" ? new TypeError(`crypto.subtle: ${parts[2]}`) : new DOMException(`crypto.subtle: ${parts[2]}`, parts[1]);
}

function compute(op: string, args: object): any {
  try {
    run(op, args);
    return result();
  } catch (error) {
    throw named(error);
  }
}

/** Checks that a key belongs to the algorithm and has the usage, and returns it. */
function may(key: HostKey, algorithm: Algorithm, usage: string): HostKey {
  if (key.algorithm.name !== algorithm.name) fail("InvalidAccessError", `the key is one of ${key.algorithm.name}, not of ${algorithm.name}`);
  if (!key.usages?.includes(usage)) fail("InvalidAccessError", `the key does not have the usage ${usage}`);
  return key;
}

function oneOf(what: string, value: unknown, known: string[]): string {
  const text = `${value}`;
  if (!known.includes(text)) throw new TypeError(`crypto.subtle: ${text} is not one of the ${what} ${known.join(", ")}`);
  return text;
}

function usagesFrom(usages: any): string[] {
  if (typeof usages !== "object" || usages === null || typeof usages[Symbol.iterator] !== "function") throw new TypeError("crypto.subtle: the usages must be a list");
  return Array.from(usages, (usage) => oneOf("usages", usage, usagesOfKeys));
}

/** A key in one of the formats: bytes, or the members of a JWK. */
type KeyData = { bytes: Bytes } | { jwk: object };

function importHere(format: string, data: KeyData, algorithm: Algorithm, extractable: boolean, usages: string[]): CryptoKey {
  const args: any = { format, algorithm, extractable, usages };
  if (format === "jwk") {
    if (!("jwk" in data)) throw new TypeError("crypto.subtle: a key in the format jwk must be an object, not bytes");
    args.jwk = data.jwk;
  } else {
    if (!("bytes" in data)) throw new TypeError(`crypto.subtle: a key in the format ${format} must be an ArrayBuffer or a view of one`);
    args.data = octets(data.bytes);
  }
  return make(compute("crypto.importKey", args), extractable);
}

function exportHere(format: string, key: CryptoKey): any {
  const held = hostKey(key);
  const { name } = held.algorithm;
  if (name === "PBKDF2" || name === "HKDF") fail("NotSupportedError", `a key of ${name} cannot be exported`);
  if (!isExtractable(key)) fail("InvalidAccessError", "the key is not extractable");
  const exported = compute("crypto.exportKey", { format, key: held });
  return format === "jwk" ? { ...exported.jwk, key_ops: [...(held.usages ?? [])], ext: true } : buffer(exported);
}

/** The algorithm to wrap with; if it cannot wrap, the same as one that encrypts. */
function wrapping(wraps: "wrapKey" | "unwrapKey", encrypts: "encrypt" | "decrypt", given: any): Algorithm {
  const name = typeof given === "object" && given !== null ? given.name : given;
  return normalize(knows(wraps, `${name}`.toUpperCase()) ? wraps : encrypts, given);
}

/** The length of a derived key in bits ("get key length"); null: all bits. */
function lengthOf({ name, length, hash }: Algorithm): number | null {
  if (name === "PBKDF2" || name === "HKDF") return null;
  if (name !== "HMAC") return length === 128 || length === 192 || length === 256 ? length : fail("OperationError", `a key of AES must have 128, 192 or 256 bits, not ${length}`);
  if (length === 0) throw new TypeError("crypto.subtle: a key of HMAC must have a bit or more");
  return length ?? (hash === "SHA-1" || hash === "SHA-256" ? 512 : 1024);
}

/** encrypt, decrypt and sign, which differ in their names alone. */
const transform = (op: "encrypt" | "decrypt" | "sign") => async (algorithm: any, key: CryptoKey, data: Bytes) => {
  const held = hostKey(key);
  bufferSource(data, "the data");
  const normal = normalize(op, algorithm);
  const copy = octets(data);
  return buffer(compute(`crypto.${op}`, { algorithm: normal, key: may(held, normal, op), data: copy }));
};

/** The methods, by their names. They are called with all their arguments, and the length of a function is how many are required. */
const methods: Record<string, (...args: any[]) => Promise<unknown>> = {
  encrypt: transform("encrypt"),
  decrypt: transform("decrypt"),
  sign: transform("sign"),
  async verify(algorithm: any, key: CryptoKey, signature: Bytes, data: Bytes): Promise<boolean> {
    const held = hostKey(key);
    bufferSource(signature, "the signature");
    bufferSource(data, "the data");
    const normal = normalize("verify", algorithm);
    const copies = { signature: octets(signature), data: octets(data) };
    return compute("crypto.verify", { algorithm: normal, key: may(held, normal, "verify"), ...copies }).valid;
  },
  async digest(algorithm: any, data: Bytes): Promise<ArrayBuffer> {
    bufferSource(data, "the data");
    const { name } = normalize("digest", algorithm);
    return buffer(compute("digest", { algorithm: name, data: octets(data) }));
  },
  async generateKey(algorithm: any, extractable: unknown, usages: any): Promise<any> {
    const wanted = usagesFrom(usages);
    const args = { algorithm: normalize("generateKey", algorithm), usages: wanted };
    const made = await runner.begin("crypto.generateKey", args).catch((error) => Promise.reject(named(error)));
    if (made.key) return make(made.key, Boolean(extractable));
    return { publicKey: make(made.publicKey, true), privateKey: make(made.privateKey, Boolean(extractable)) };
  },
  async deriveKey(algorithm: any, key: CryptoKey, derived: any, extractable: unknown, usages: any): Promise<CryptoKey> {
    const held = hostKey(key);
    const wanted = usagesFrom(usages);
    const normal = normalize("deriveBits", algorithm);
    const imported = normalize("importKey", derived);
    const sized = normalize("get key length", derived);
    may(held, normal, "deriveKey");
    const bits = compute("crypto.deriveBits", { algorithm: normal, key: held, length: lengthOf(sized) });
    return importHere("raw", { bytes: buffer(bits) }, imported, Boolean(extractable), wanted);
  },
  async deriveBits(algorithm: any, key: CryptoKey, length: unknown = null): Promise<ArrayBuffer> {
    const held = hostKey(key);
    const bits = length === null ? null : integer(length, "the length");
    const normal = normalize("deriveBits", algorithm);
    return buffer(compute("crypto.deriveBits", { algorithm: normal, key: may(held, normal, "deriveBits"), length: bits }));
  },
  async importKey(format: string, data: any, algorithm: any, extractable: unknown, usages: any): Promise<CryptoKey> {
    oneOf("formats", format, formats);
    const isBytes = data instanceof ArrayBuffer || ArrayBuffer.isView(data);
    const key = isBytes ? { bytes: data } : { jwk: jwkFrom(data) };
    const wanted = usagesFrom(usages);
    const normal = normalize("importKey", algorithm);
    return importHere(`${format}`, key, normal, Boolean(extractable), wanted);
  },
  async exportKey(format: string, key: CryptoKey): Promise<any> {
    return exportHere(oneOf("formats", format, formats), key);
  },
  async wrapKey(format: string, key: CryptoKey, wrapper: CryptoKey, algorithm: any): Promise<ArrayBuffer> {
    const form = oneOf("formats", format, formats);
    hostKey(key);
    const held = hostKey(wrapper);
    const normal = wrapping("wrapKey", "encrypt", algorithm);
    may(held, normal, "wrapKey");
    const exported = exportHere(form, key);
    const bytes = form === "jwk" ? new TextEncoder().encode(JSON.stringify(exported)) : exported;
    return buffer(compute("crypto.encrypt", { algorithm: normal, key: held, data: octets(bytes) }));
  },
  async unwrapKey(
    format: string, wrapped: Bytes, unwrapper: CryptoKey, algorithm: any, keyAlgorithm: any, extractable: unknown, usages: any,
  ): Promise<CryptoKey> {
    const form = oneOf("formats", format, formats);
    bufferSource(wrapped, "the wrapped key");
    const held = hostKey(unwrapper);
    const wanted = usagesFrom(usages);
    const normal = wrapping("unwrapKey", "decrypt", algorithm);
    const imported = normalize("importKey", keyAlgorithm);
    const data = octets(wrapped);
    const bytes = buffer(compute("crypto.decrypt", { algorithm: normal, key: may(held, normal, "unwrapKey"), data }));
    return importHere(form, form === "jwk" ? { jwk: parsed(bytes) } : { bytes }, imported, Boolean(extractable), wanted);
  },
};

/** Parses an unwrapped JWK (section 16). */
function parsed(bytes: ArrayBuffer): object {
  try {
    return jwkFrom(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch (error) {
    if (error instanceof DOMException) throw error;
    fail("DataError", "the unwrapped key is not a JWK");
  }
}

const token = {};

class SubtleCrypto {
  #brand = true;
  static #is = (of: any): boolean => typeof of === "object" && of !== null && #brand in of;

  static {
    for (const [name, body] of Object.entries(methods)) {
      const method = {
        async [name](this: unknown, ...args: any[]): Promise<unknown> {
          if (!SubtleCrypto.#is(this)) throw new TypeError(`crypto.subtle.${name}: the method must be called on crypto.subtle`);
          if (args.length < body.length) throw new TypeError(`crypto.subtle.${name}: ${body.length} arguments are required, not ${args.length}`);
          return body(...args);
        },
      }[name];
      Object.defineProperty(method, "length", { value: body.length, configurable: true });
      Object.defineProperty(this.prototype, name, { value: method, writable: true, configurable: true });
    }
  }

  constructor() {
    if (arguments[0] !== token) throw new TypeError("SubtleCrypto has no public constructor: use crypto.subtle");
  }
}

const subtle = new (SubtleCrypto as any)(token);
expose("SubtleCrypto", SubtleCrypto);
expose("CryptoKey", CryptoKey);
runner.clones.push(cloneKey);

const { crypto } = globalThis as any;
const { get } = Object.getOwnPropertyDescriptor(
  {
    get subtle() {
      if ((this as unknown) !== crypto) throw new TypeError("crypto.subtle must be read from crypto, not from another object");
      return subtle;
    },
  },
  "subtle",
)!;
Object.defineProperty(Object.getPrototypeOf(crypto), "subtle", { get, enumerable: true, configurable: true });
