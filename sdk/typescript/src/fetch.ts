// fetch (Fetch Standard), for what handlers do with it: a request with a body that is
// there, and an answer that is read when it has come whole.

import { AbortController, AbortSignal } from "./abort.ts";
import { define } from "./console.ts";
import { bytesOf, fromBase64, toBase64 } from "./encoding.ts";
import { HostError, placeless, type Runner } from "./host.ts";

type HeadersInit = Headers | Iterable<[string, string]> | Record<string, string>;

class Headers {
  #list: [name: string, value: string][] = [];

  constructor(init: HeadersInit = {}) {
    const pairs = Symbol.iterator in init ? (init as Iterable<[string, string]>) : Object.entries(init);
    for (const [name, value] of pairs) this.append(name, value);
  }
  append(name: string, value: string): void {
    this.#list.push([check(name), String(value).trim()]);
  }
  delete(name: string): void {
    this.#list = this.#list.filter(([n]) => n !== check(name));
  }
  get(name: string): string | null {
    const values = this.#list.filter(([n]) => n === check(name)).map(([, value]) => value);
    return values.length === 0 ? null : values.join(", ");
  }
  getSetCookie(): string[] {
    return this.#list.filter(([n]) => n === "set-cookie").map(([, value]) => value);
  }
  has(name: string): boolean {
    return this.get(name) !== null;
  }
  set(name: string, value: string): void {
    this.delete(name);
    this.append(name, value);
  }
  forEach(does: (value: string, name: string, headers: Headers) => void): void {
    for (const [name, value] of this) does(value, name, this);
  }
  *entries(): IterableIterator<[string, string]> {
    const names = [...new Set(this.#list.map(([name]) => name))].sort();
    for (const name of names) {
      if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
      else yield [name, this.get(name)!];
    }
  }
  *keys(): IterableIterator<string> {
    for (const [name] of this) yield name;
  }
  *values(): IterableIterator<string> {
    for (const [, value] of this) yield value;
  }
  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.entries();
  }
}

function check(name: string): string {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(String(name))) throw new TypeError(`Headers: ${JSON.stringify(String(name))} is not a valid header name`);
  return String(name).toLowerCase();
}

/** What came back. */
class FetchResponse {
  readonly headers: Headers;
  readonly type = "basic";
  #body: string | { base64: string };
  #used = false;

  constructor(
    readonly url: string,
    readonly redirected: boolean,
    readonly status: number,
    headers: [string, string][],
    body: string | { base64: string },
  ) {
    this.headers = new Headers(headers);
    this.#body = body;
  }
  get [Symbol.toStringTag](): string {
    return "Response";
  }
  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }
  get bodyUsed(): boolean {
    return this.#used;
  }
  #read(): string | Uint8Array {
    if (this.#used) throw new TypeError("fetch: the body was read before");
    this.#used = true;
    return typeof this.#body === "string" ? this.#body : fromBase64(this.#body.base64);
  }
  async text(): Promise<string> {
    const body = this.#read();
    return typeof body === "string" ? body.replace(/^\ufeff/, "") : new TextDecoder().decode(body);
  }
  async json(): Promise<any> {
    return JSON.parse(await this.text());
  }
  async bytes(): Promise<Uint8Array> {
    const body = this.#read();
    return typeof body === "string" ? new TextEncoder().encode(body) : body;
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer as ArrayBuffer;
  }
  clone(): FetchResponse {
    if (this.#used) throw new TypeError("fetch: the body was read before");
    return new FetchResponse(this.url, this.redirected, this.status, [...this.headers], this.#body);
  }
}

interface Init {
  method?: string;
  headers?: HeadersInit;
  body?: unknown;
  redirect?: "follow" | "manual" | "error";
  signal?: AbortSignal | null;
  /** In seconds; not of the standard. */
  timeout?: number;
}

const known = ["method", "headers", "body", "redirect", "signal", "timeout"];

// A request may have 64 operations under way; so many are fetches, and the others wait
// for them.
const mostFlying = 32;

const plain = /^(get|head|post|put|delete|options)$/i;

export function installFetch(runner: Runner): void {
  define("Headers", Headers);
  define("AbortController", AbortController);
  define("AbortSignal", AbortSignal);
  let flying = 0;
  const line: (() => void)[] = [];
  define("fetch", async function fetch(input: unknown, init: Init = {}): Promise<FetchResponse> {
    runner.demand("fetch");
    for (const [name, value] of Object.entries(init)) {
      if (value !== undefined && !known.includes(name)) throw new TypeError(`fetch: there is no ${name} here; there are ${known.join(", ")}`);
    }
    const { redirect, signal, timeout } = init;
    if (redirect !== undefined && !["follow", "manual", "error"].includes(redirect)) {
      throw new TypeError(`fetch: redirect is "follow", "manual" or "error"`);
    }
    if (signal !== undefined && signal !== null && !(signal instanceof AbortSignal)) {
      throw new TypeError("fetch: signal is an AbortSignal");
    }
    signal?.throwIfAborted();
    const url = new URL(String(input)).href;
    const headers = new Headers(init.headers);
    const { body, type } = content(init.body);
    if (type !== undefined && !headers.has("content-type")) headers.set("content-type", type);
    const method = init.method === undefined || !plain.test(init.method) ? init.method : init.method.toUpperCase();
    const fly = async (): Promise<FetchResponse> => {
      if (flying >= mostFlying) await new Promise<void>((done) => line.push(done));
      else flying++;
      try {
        signal?.throwIfAborted(); // while it waited
        const answer = await runner.begin("fetch", { method, url, headers: [...headers], body, timeout, redirect });
        return new FetchResponse(answer.url ?? url, answer.url !== undefined, answer.status, answer.headers, answer.body);
      } finally {
        const next = line.shift(); // which goes on in its place
        if (next) next();
        else flying--;
      }
    };
    const fetched = signal ? unlessAborted(signal, fly()) : fly();
    return fetched.catch((error) => Promise.reject(error instanceof HostError ? placeless(error) : error));
  });
}

/** The result of a fetch, or the reason of the signal. The request itself continues: it cannot be cancelled. */
function unlessAborted<T>(signal: AbortSignal, fetched: Promise<T>): Promise<T> {
  return new Promise((done, failed) => {
    const stop = () => failed(signal.reason);
    signal.addEventListener("abort", stop);
    fetched.then(done, failed).then(() => signal.removeEventListener("abort", stop));
  });
}

/** A body as the host takes it, and what it is. */
function content(body: unknown): { body?: unknown; type?: string } {
  if (body === undefined || body === null) return {};
  if (body instanceof URLSearchParams) return { body: String(body), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return { body: { base64: toBase64(bytesOf(body)) } };
  if (typeof body === "object") throw new TypeError("fetch: a body is a string, bytes or URLSearchParams; use JSON.stringify for an object");
  return { body: String(body).toWellFormed(), type: "text/plain;charset=UTF-8" };
}
