// JsonWebKey (W3C, Web Cryptography Level 2, section 15).

import { fail } from "./algorithms.ts";

const members = ["alg", "crv", "d", "dp", "dq", "e", "ext", "k", "key_ops", "kty", "n", "oth", "p", "q", "qi", "use", "x", "y"];

/** Copies the members of a JWK that the standard defines, converted as it says. */
export function jwkFrom(data: any): object {
  if (data === undefined || data === null) return {};
  if (typeof data !== "object" && typeof data !== "function") throw new TypeError("crypto.subtle: the key must be bytes, or a JWK, which is an object");
  const jwk: any = {};
  for (const member of members) {
    const value = data[member];
    if (value === undefined) continue;
    if (member === "ext") jwk.ext = Boolean(value);
    else if (member === "oth") fail("NotSupportedError", "a key of RSA with more than two primes is not supported");
    else if (member !== "key_ops") jwk[member] = `${value}`;
    else if (typeof value === "object" && value !== null && typeof value[Symbol.iterator] === "function") jwk.key_ops = Array.from(value, (op) => `${op}`);
    else throw new TypeError("crypto.subtle: key_ops of a JWK must be a list");
  }
  return jwk;
}
