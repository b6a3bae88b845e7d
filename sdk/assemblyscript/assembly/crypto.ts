// Randomness and the clock of the request, and what the runner computes for it.

import { call } from "./host";
import { fields, Fields, parseJSON } from "./json";
import { put } from "./octets";

@external("wasi_snapshot_preview1", "random_get")
declare function random_get(buf: usize, length: i32): i32;

@external("wasi_snapshot_preview1", "clock_time_get")
declare function clock_time_get(clock: i32, precision: i64, time: usize): i32;

const time = memory.data(8);

/** Random bytes that cannot be predicted. */
export function randomBytes(length: i32): Uint8Array {
  const bytes = new Uint8Array(length);
  if (length > 0 && random_get(bytes.dataStart, length) != 0) throw new Error("randomBytes: random numbers are not available");
  return bytes;
}

/** A random UUID (RFC 9562, version 4). */
export function randomUUID(): string {
  const b = randomBytes(16);
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  let text = "";
  for (let i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    text += (<u32>b[i]).toString(16).padStart(2, "0");
  }
  return text;
}

/** The time, in milliseconds since 1970. */
export function now(): i64 {
  if (clock_time_get(0, 0, time) != 0) throw new Error("now: the clock is not available");
  return <i64>(load<u64>(time) / 1000000);
}

/** What a digest or a MAC came to. */
export class Digest {
  constructor(
    readonly hex: string,
    readonly base64: string,
  ) {}
}

/** The digest of a string or a Uint8Array; the algorithm is SHA-256, SHA-384 or SHA-512. */
export function digest<T>(algorithm: string, data: T): Digest {
  return digested("digest", put<T>(fields().set("algorithm", algorithm), "data", data));
}

/** The HMAC of a string or a Uint8Array under a secret that the schema declares. */
export function hmac<T>(algorithm: string, secret: string, data: T): Digest {
  return digested("hmac", put<T>(fields().set("algorithm", algorithm).set("secret", secret), "data", data));
}

/** The HMAC of a string or a Uint8Array under a key, which is a string or a Uint8Array and must not be empty. */
export function hmacWithKey<K, T>(algorithm: string, key: K, data: T): Digest {
  return digested("hmac", put<T>(put<K>(fields().set("algorithm", algorithm), "key", key), "data", data));
}

/** Whether two values are equal, in a time that does not tell where they differ. */
export function timingSafeEqual<A, B>(a: A, b: B): bool {
  const args = put<B>(put<A>(fields(), "a", a), "b", b);
  return parseJSON<bool>(call("timingSafeEqual", args.toString()).member("equal"));
}

function digested(op: string, args: Fields): Digest {
  const outcome = call(op, args.toString());
  return new Digest(parseJSON<string>(outcome.member("hex")), parseJSON<string>(outcome.member("base64")));
}

