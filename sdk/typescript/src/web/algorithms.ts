// The algorithms of the Web Cryptography API (W3C, Web Cryptography Level 2), with the parameters of each
// operation, and how a handler's algorithm is normalized (section 18.4.4).

import { toBase64 } from "./encoding.ts";
import { type CryptoKey, hostKey } from "./cryptokey.ts";
import { isObject } from "./idl.ts";

export type Bytes = ArrayBuffer | ArrayBufferView;

/** An algorithm in the form of the host's operations. */
export interface Algorithm {
  name: string;
  [member: string]: any;
}

/** Throws a DOMException of the global class, as instanceof must hold in handlers. */
export function fail(name: string, message: string): never {
  throw new DOMException(`crypto.subtle: ${message}`, name);
}

/** Checks that a value is a BufferSource (Web IDL). */
export function bufferSource(value: unknown, what: string): Bytes {
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value;
  throw new TypeError(`crypto.subtle: ${what} must be an ArrayBuffer or a view of one`);
}

/** A copy of the bytes, in the form of the host's operations. A buffer that was transferred has no bytes. */
export function octets(bytes: Bytes): { base64: string } {
  const view = ArrayBuffer.isView(bytes);
  const buffer = (view ? bytes.buffer : bytes) as ArrayBuffer;
  if (buffer.detached) return { base64: "" };
  return { base64: toBase64(view ? new Uint8Array(buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(buffer)) };
}

/** A whole number of at least 0 ([EnforceRange] of Web IDL). */
export function integer(value: unknown, what: string, most = 0xffffffff): number {
  const n = Math.trunc(+(value as number)) || 0;
  const given = +(value as number);
  if (!Number.isFinite(given) || n < 0 || n > most) throw new TypeError(`crypto.subtle: ${what} must be a whole number from 0 to ${most}`);
  return n;
}

/** A member of a dictionary: how its value is converted, and a second step that runs when all members are read. */
interface Member {
  read(value: any, what: string): unknown;
  finish?(value: any): unknown;
  optional?: boolean;
}

const number = (most: number): Member => ({ read: (value, what) => integer(value, what, most) });
const octet = number(0xff);
const short = number(0xffff);
const long = number(0xffffffff);
const bytes: Member = { read: bufferSource, finish: octets };
const text: Member = { read: (value) => `${value}` };
const hash: Member = {
  read: (value) => (isObject(value) ? value : `${value}`),
  finish: (value) => normalize("digest", value).name,
};
const exponent: Member = {
  read(value, what) {
    if (value instanceof Uint8Array) return value;
    throw new TypeError(`crypto.subtle: ${what} must be a Uint8Array`);
  },
  finish: octets,
};
const publicKey: Member = { read: (value: CryptoKey) => hostKey(value) };
const optional = (member: Member): Member => ({ ...member, optional: true });

type Members = Record<string, Member>;
type Registry = Record<string, Members>;

const none: Members = {};
const hashed: Members = { hash };
const curve: Members = { namedCurve: text };
const mac: Members = { hash, length: optional(long) };
const sized: Members = { length: short };
const pair: Members = { modulusLength: long, publicExponent: exponent, hash };

const ciphers: Registry = {
  "RSA-OAEP": { label: optional(bytes) },
  "AES-CBC": { iv: bytes },
  "AES-CTR": { counter: bytes, length: octet },
  "AES-GCM": { additionalData: optional(bytes), iv: bytes, tagLength: optional(octet) },
};
const signatures: Registry = {
  HMAC: none,
  ECDSA: hashed,
  Ed25519: none,
  "RSA-PSS": { saltLength: long },
  "RSASSA-PKCS1-v1_5": none,
};
const wrapping: Registry = { "AES-KW": none };
const curves: Registry = { ECDSA: curve, ECDH: curve, Ed25519: none, X25519: none };
const keysOfAES = (members: Members): Registry => ({ "AES-CBC": members, "AES-CTR": members, "AES-GCM": members, "AES-KW": members });
const keysOfRSA = (members: Members): Registry => ({ "RSA-PSS": members, "RSASSA-PKCS1-v1_5": members, "RSA-OAEP": members });

/** The algorithms of each operation, with the members of their dictionaries in the order in which they are read. */
const registry = {
  digest: { "SHA-1": none, "SHA-256": none, "SHA-384": none, "SHA-512": none } as Registry,
  encrypt: ciphers,
  decrypt: ciphers,
  sign: signatures,
  verify: signatures,
  wrapKey: wrapping,
  unwrapKey: wrapping,
  deriveBits: {
    PBKDF2: { hash, iterations: long, salt: bytes },
    HKDF: { hash, info: bytes, salt: bytes },
    ECDH: { public: publicKey },
    X25519: { public: publicKey },
  } as Registry,
  generateKey: { HMAC: mac, ...curves, ...keysOfRSA(pair), ...keysOfAES(sized) } as Registry,
  importKey: { HMAC: mac, ...curves, ...keysOfRSA(hashed), ...keysOfAES(none), PBKDF2: none, HKDF: none } as Registry,
  "get key length": { HMAC: mac, ...keysOfAES(sized), PBKDF2: none, HKDF: none } as Registry,
};

const upper = (name: string): string => name.replace(/[a-z]+/g, (letters) => letters.toUpperCase());

/** Whether an operation supports the algorithm. */
export function knows(operation: keyof typeof registry, name: string): boolean {
  return Object.hasOwn(registry[operation], name);
}

/** Normalizes an algorithm for an operation, to the form of the host's operations. */
export function normalize(operation: keyof typeof registry, given: any): Algorithm {
  const from = isObject(given) ? given : { name: `${given}` };
  const wanted = from.name;
  if (wanted === undefined) throw new TypeError("crypto.subtle: the algorithm must be a name, or an object with a name");
  const known = registry[operation];
  const sought = upper(`${wanted}`);
  const name = Object.keys(known).find((name) => upper(name) === sought);
  if (name === undefined) fail("NotSupportedError", `${wanted} is not an algorithm of ${operation}; there is ${Object.keys(known).join(", ")}`);
  const made: Algorithm = { name };
  const members = Object.entries(known[name]);
  for (const [member, { read, optional }] of members) {
    const value = from[member];
    if (value !== undefined) made[member] = read(value, `${member} of ${name}`);
    else if (!optional) throw new TypeError(`crypto.subtle: ${name} needs ${member}`);
  }
  for (const [member, { finish }] of members) if (finish && made[member] !== undefined) made[member] = finish(made[member]);
  return made;
}
