// Handlers that each do one kind of work. The same are in ../../go.

import { noContent, ok, type RouteRequest } from "@runner/sdk";
import { marked } from "marked";
import { document, sentence } from "./texts.ts";

interface Row { id: string; item: string; qty: number; price: number; total?: number }

const some: Row[] = Array.from({ length: 100 }, (_, i) => ({ id: `o-${i}`, item: "a lamp of brass", qty: i, price: 12.5, total: i * 12.5 }));

export function nothing() {
  return noContent();
}

export function parse(req: RouteRequest) {
  req.body<Row[]>();
  return noContent();
}

export function hundred(req: RouteRequest) {
  const rows = req.body<Row[]>();
  for (const row of rows) row.total = row.qty * row.price;
  return ok(rows);
}

export function answer() {
  return ok(some);
}

export function read(req: RouteRequest) {
  return ok([req.params.what, req.query.page, req.headers.host, req.headers.accept]);
}

export function match() {
  return ok(document.match(/\b[a-z]+(ing|ed)\b/g)?.length ?? 0);
}

export function text() {
  let out = "";
  for (let i = 0; i < 1000; i++) out += `${i}: ${sentence}\n`;
  return ok(out.length);
}

export function sort() {
  const list: number[] = [];
  for (let i = 0, n = 1; i < 1000; i++, n = (n * 48271) % 2147483647) list.push(n);
  list.sort((a, b) => a - b);
  return ok(list[500]);
}

export function markdown() {
  return ok((marked.parse(document) as string).length);
}

const k = Array.from({ length: 64 }, (_, i) => {
  let prime = 2;
  for (let left = i; ; prime++) {
    let divisor = 2;
    while (divisor * divisor <= prime && prime % divisor !== 0) divisor++;
    if (divisor * divisor > prime && left-- === 0) break;
  }
  return (Math.cbrt(prime) % 1) * 2 ** 32 | 0;
});

/** SHA-256 in the handler's own code, of 4 KiB. */
export function digest() {
  const h = new Int32Array([0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]);
  const w = new Int32Array(64), message = new Uint8Array(4096 + 64);
  message[4096] = 0x80;
  new DataView(message.buffer).setUint32(4096 + 60, 4096 * 8);
  const rotate = (x: number, n: number) => (x >>> n) | (x << (32 - n));
  for (let at = 0; at < message.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = (message[at + 4 * i] << 24) | (message[at + 4 * i + 1] << 16) | (message[at + 4 * i + 2] << 8) | message[at + 4 * i + 3];
    for (let i = 16; i < 64; i++) {
      const a = w[i - 15], b = w[i - 2];
      w[i] = (w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) + w[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10))) | 0;
    }
    let [a, b, c, d, e, f, g, last] = h;
    for (let i = 0; i < 64; i++) {
      const one = (last + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const two = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [last, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, last].forEach((x, i) => (h[i] = (h[i] + x) | 0));
  }
  return ok(Array.from(h, (x) => (x >>> 0).toString(16).padStart(8, "0")).join(""));
}
