// Reading what the host writes.

import { call_result, context, request_body, request_header, request_method, request_pairs, request_param, request_path, request_query } from "./abi";

// What one host function reads, for the two ways of reading.
export const enum Source { Method, Path, Context, Params, Query, Headers, RawQuery, Param, QueryValue, Header, Body, Result }

function read(source: Source, name: ArrayBuffer | null, offset: i32, buf: usize, cap: i32): i32 {
  const n: usize = name === null ? 0 : changetype<usize>(name);
  const len = name === null ? 0 : name.byteLength;
  switch (source) {
    case Source.Method: return request_method(buf, cap);
    case Source.Path: return request_path(buf, cap);
    case Source.Context: return context(buf, cap);
    case Source.Params: return request_pairs(0, buf, cap);
    case Source.Query: return request_pairs(1, buf, cap);
    case Source.Headers: return request_pairs(2, buf, cap);
    case Source.RawQuery: return request_pairs(3, buf, cap);
    case Source.Param: return request_param(n, len, buf, cap);
    case Source.QueryValue: return request_query(n, len, buf, cap);
    case Source.Header: return request_header(n, len, buf, cap);
    case Source.Body: return request_body(offset, buf, cap);
    default: return call_result(offset, buf, cap);
  }
}

// Most values fit; a longer one is asked for again, with room.
const small = memory.data(512);

/** A value that the host gives whole; null when it is absent. */
export function text(source: Source, name: string | null = null): string | null {
  const key: ArrayBuffer | null = name === null ? null : String.UTF8.encode(name);
  const n = read(source, key, 0, small, 512);
  if (n < 0) return null;
  if (n <= 512) return String.UTF8.decodeUnsafe(small, n);
  const big = new ArrayBuffer(n);
  if (read(source, key, 0, changetype<usize>(big), n) < 0) return null;
  return String.UTF8.decode(big);
}

/** text for bytes; empty when they are absent. */
export function bytes(source: Source): Uint8Array {
  const n = read(source, null, 0, small, 512);
  if (n <= 0) return new Uint8Array(0);
  const all = new Uint8Array(n);
  if (n <= 512) memory.copy(all.dataStart, small, n);
  else if (read(source, null, 0, all.dataStart, n) < 0) return new Uint8Array(0);
  return all;
}

/** A value that the host writes in parts: an empty buffer is for reading its length. It is empty when the host refuses it. */
export function pieces(source: Source): Uint8Array {
  const n = read(source, null, 0, 0, 0);
  if (n <= 0) return new Uint8Array(0);
  const all = new Uint8Array(n);
  if (read(source, null, 0, all.dataStart, n) < 0) return new Uint8Array(0);
  return all;
}

/** The bytes as text. */
export function decode(bytes: Uint8Array): string {
  return String.UTF8.decodeUnsafe(bytes.dataStart, bytes.byteLength);
}
