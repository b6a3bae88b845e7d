// The tasks, for the runner and for workerd. The same are in ../../work in Go.

import { marked } from "marked";

/** random returns a function that gives the same numbers below its argument in each language. */
function random() {
  let n = 1;
  return (limit: number) => (n = (n * 48271) % 2147483647) % limit;
}

// ---- logs: regular expressions over text ----------------------------------------------

/** log has some hundred lines of a server. */
const log = (() => {
  const next = random();
  const methods = ["GET", "POST", "DELETE"], paths = ["orders", "customers", "sessions"];
  const failures = ["connection refused by", "Timeout while reading from", "connection reset by peer"];
  const two = (n: number) => String(n).padStart(2, "0");
  const lines: string[] = [];
  for (let i = 0; i < 300; i++) {
    const start = `2026-03-07T09:${two(Math.floor(i / 60))}:${two(i % 60)}Z web-${next(4)}`;
    if (next(10) === 0) {
      lines.push(`${start} ERROR ${failures[next(3)]} 10.0.${next(8)}.${next(250)}:5432`);
      continue;
    }
    const path = `/api/${paths[next(3)]}/${next(9000)}?page=${next(20)}&token=t${next(1000000)}`;
    lines.push(`${start} INFO ${methods[next(3)]} ${path} ${next(8) === 0 ? 404 : 200} ${next(90)}ms`);
  }
  return lines.join("\n");
})();

const request = /^(?<time>\S+) (?<host>web-\d+) INFO (?<method>[A-Z]+) (?<path>\/\S*) (?<status>\d{3}) (?<millis>\d+)ms$/;
const parameter = /[?&](\w+)=([^&\s]*)/g;
const failure = /timeout|refused|reset by peer/gi;
const address = /\b(\d+\.\d+)\.\d+\.\d+:(\d+)\b/g;

export function logs() {
  let requests = 0, missing = 0, millis = 0, pages = 0, failures = 0, timeouts = 0;
  for (const line of log.split("\n")) {
    const fields = request.exec(line)?.groups;
    if (!fields) continue;
    requests++;
    if (fields.status === "404") missing++;
    millis += Number(fields.millis);
    for (const [, name, value] of fields.path.matchAll(parameter)) {
      if (name === "page" && value !== "0") pages++;
    }
  }
  for (const [text] of log.matchAll(failure)) {
    failures++;
    if (text.toLowerCase() === "timeout") timeouts++;
  }
  const masked = log.replace(address, "$1.x.x:$2").length;
  return { requests, missing, millis, pages, failures, timeouts, masked };
}

// ---- group: maps and sorting -----------------------------------------------------------

interface Sale { customer: string; amount: number }
interface Total { customer: string; count: number; sum: number }

function sales(): Sale[] {
  const next = random(), all: Sale[] = [];
  for (let i = 0; i < 5000; i++) all.push({ customer: `customer-${next(1000)}`, amount: next(10000) });
  return all;
}

export function group() {
  const totals = new Map<string, Total>();
  for (const { customer, amount } of sales()) {
    let total = totals.get(customer);
    if (!total) {
      total = { customer, count: 0, sum: 0 };
      totals.set(customer, total);
    }
    total.count++;
    total.sum += amount;
  }
  const byName = (a: Total, b: Total) => (a.customer < b.customer ? -1 : a.customer > b.customer ? 1 : 0);
  const all = [...totals.values()];
  const names = all.toSorted(byName).slice(0, 10);
  const sums = all.toSorted((a, b) => b.sum - a.sum || byName(a, b)).slice(0, 10);
  return { customers: all.length, names, sums };
}

// ---- table: HTML from rows -------------------------------------------------------------

interface Item { id: number; name: string; state: string; qty: number; price: number }

function items(): Item[] {
  const next = random(), all: Item[] = [];
  const names = [`Lamp "Brass" & shade`, "Table <oak>", "Chair of the dining room", "Joiner's bench"];
  for (let id = 1; id <= 200; id++) {
    all.push({ id, name: names[next(4)], state: ["new", "used"][next(2)], qty: next(50), price: next(100000) / 100 });
  }
  return all;
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
const escape = (text: string) => text.replace(/[&<>"']/g, (c) => entities[c]);

export function table() {
  const rows = items().map((item) =>
    `<tr class="${escape(item.state)}"><td>${item.id}</td><td>${escape(item.name)}</td>` +
    `<td>${item.qty}</td><td>${item.price.toFixed(2)}</td></tr>\n`);
  return `<!doctype html>\n<title>${escape("Stock & prices")}</title>\n<table>\n${rows.join("")}</table>\n`;
}

// ---- markdown: a package of npm --------------------------------------------------------

const text = "# Report\n\n" + `## Part

The *quick* brown fox **jumped** over a \`sleeping\` dog, [waited](https://example.com/x) and kept running.

- first, walking along the river
- second, counting stars & looking up

| name | price |
|---|---|
| lamp | 12.50 |
| table | 99.00 |

`.repeat(10);

export const markdown = () => marked.parse(text) as string;

// ---- sha: SHA-256 in the language itself -----------------------------------------------

const k = new Int32Array([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
]);

const rotate = (x: number, n: number) => (x >>> n) | (x << (32 - n));

function sha256(message: Uint8Array) {
  const padded = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n);
  const h = new Int32Array([0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]);
  const w = new Int32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, last] = h;
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (last + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      last = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
    h[5] += f;
    h[6] += g;
    h[7] += last;
  }
  return Array.from(h, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

export function sha() {
  const message = new Uint8Array(104 << 10);
  for (let i = 0; i < message.length; i++) message[i] = i * 31;
  return { sha256: sha256(message) };
}
