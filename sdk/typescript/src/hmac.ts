// Signatures with declared secrets, and comparisons of what is secret.

import { bytesOf, toBase64 } from "./web/encoding.ts";
import { type Operation, result, run, Whole } from "./host.ts";

type Bytes = ArrayBuffer | ArrayBufferView;

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
