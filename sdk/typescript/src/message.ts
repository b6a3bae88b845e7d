// Request and Response (Fetch Standard, 5), over bodies that are there as a whole.

import { AbortController, AbortSignal } from "./abort.ts";
import { bytesOf, fromBase64, toBase64 } from "./encoding.ts";
import { Blob, bytesOfBlob, FormData, multipart, readForm, Stream } from "./form.ts";
import { Headers, type HeadersInit } from "./headers.ts";

/** A body: text, bytes, or bytes as the host gives them. */
export type Content = string | Uint8Array | { base64: string };

const bytesIn = (content: Content): Uint8Array => {
  if (typeof content === "string") return new TextEncoder().encode(content);
  return content instanceof Uint8Array ? content : fromBase64(content.base64);
};

/** A body as it was given, and its content type. */
export function extract(given: unknown): { content: Content | null; type?: string } {
  if (given === undefined || given === null) return { content: null };
  if (given instanceof URLSearchParams) return { content: String(given), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (given instanceof ArrayBuffer || ArrayBuffer.isView(given)) return { content: bytesOf(given).slice() };
  if (given instanceof Blob) return { content: bytesOfBlob(given), type: given.type || undefined };
  if (given instanceof Stream) return { content: given.take() ?? "" };
  if (given instanceof FormData) {
    const { bytes, type } = multipart(given);
    return { content: bytes, type };
  }
  if (typeof given === "object") {
    throw new TypeError("a body is a string, bytes, a Blob, FormData or URLSearchParams: use JSON.stringify for an object, and collect a stream before");
  }
  return { content: String(given).toWellFormed(), type: "text/plain;charset=UTF-8" };
}

/** A body as fetch hands it to the host. */
export function forHost(content: Content | null): Content | undefined {
  return content instanceof Uint8Array ? { base64: toBase64(content) } : (content ?? undefined);
}

// What only this runtime does: the body without a promise, once, and a copy of it.
export let take: (message: Message) => Content | null;
let copy: (message: Message) => Content | null;

abstract class Message {
  #content: Content | null;
  #used = false;
  #stream: Stream | undefined;
  abstract readonly headers: Headers;

  static {
    take = (message) => {
      if (message.#used) throw new TypeError("the body was read before");
      message.#used = message.#content !== null;
      return message.#content;
    };
    copy = (message) => {
      if (message.#used) throw new TypeError("the body was read before");
      return message.#content;
    };
  }

  constructor(content: Content | null) {
    this.#content = content;
  }
  get body(): Stream | null {
    if (this.#content === null) return null;
    return (this.#stream ??= new Stream(bytesIn(this.#content), () => (this.#used = true)));
  }
  get bodyUsed(): boolean {
    return this.#used;
  }
  async text(): Promise<string> {
    const content = take(this) ?? "";
    return typeof content === "string" ? content.replace(/^\ufeff/, "") : new TextDecoder().decode(bytesIn(content));
  }
  async json(): Promise<any> {
    return JSON.parse(await this.text());
  }
  async bytes(): Promise<Uint8Array> {
    return bytesIn(take(this) ?? "");
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = bytesIn(take(this) ?? "");
    return bytes.buffer.byteLength === bytes.length ? (bytes.buffer as ArrayBuffer) : (bytes.slice().buffer as ArrayBuffer);
  }
  async blob(): Promise<Blob> {
    return new Blob([bytesIn(take(this) ?? "")], { type: this.headers.get("content-type") ?? "" });
  }
  async formData(): Promise<FormData> {
    return readForm(bytesIn(take(this) ?? ""), this.headers.get("content-type") ?? "");
  }
}

const plain = /^(get|head|post|put|delete|options)$/i;

export interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: unknown;
  redirect?: "follow" | "manual" | "error";
  signal?: AbortSignal | null;
}

export class Request extends Message {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: "follow" | "manual" | "error";
  readonly signal: AbortSignal;

  constructor(input: Request | URL | string, init: RequestInit = {}) {
    const from = input instanceof Request ? input : undefined;
    const { redirect = from?.redirect ?? "follow", signal = from?.signal ?? null } = init;
    const given = init.method ?? from?.method ?? "GET";
    const method = plain.test(given) ? given.toUpperCase() : given;
    const { content, type } = init.body !== undefined || !from ? extract(init.body) : { content: take(from), type: undefined };
    if (content !== null && (method === "GET" || method === "HEAD")) throw new TypeError(`Request: a request with ${method} has no body`);
    if (!["follow", "manual", "error"].includes(redirect)) throw new TypeError('Request: redirect is "follow", "manual" or "error"');
    if (signal !== null && !(signal instanceof AbortSignal)) throw new TypeError("Request: signal is an AbortSignal");
    super(content);
    this.url = from?.url ?? new URL(String(input)).href;
    this.method = method;
    this.headers = new Headers(init.headers ?? from?.headers);
    if (type !== undefined && !this.headers.has("content-type")) this.headers.set("content-type", type);
    this.redirect = redirect;
    this.signal = signal ?? new AbortController().signal;
  }
  get [Symbol.toStringTag](): string {
    return "Request";
  }
  clone(): Request {
    const content = copy(this);
    const { url, method, headers, redirect, signal } = this;
    const again = new Request(url, { method, headers, redirect, signal, body: content === null ? undefined : typeof content === "string" ? content : bytesIn(content) });
    (again as { url: string }).url = url; // which may be one as it was sent
    return again;
  }
}

// What only this runtime does: the response of a fetch.
export let respond: (url: string, redirected: boolean, status: number, headers: [string, string][], content: Content) => Response;

const bodiless = [101, 204, 205, 304];

export interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

export class Response extends Message {
  readonly headers: Headers;
  #status: number;
  #statusText: string;
  #type = "default";
  #url = "";
  #redirected = false;

  static {
    respond = (url, redirected, status, headers, content) => {
      const response = new Response(null, { headers }, content);
      response.#status = status;
      response.#type = "basic";
      response.#url = url;
      response.#redirected = redirected;
      return response;
    };
  }

  constructor(body: unknown = null, init: ResponseInit = {}, fetched?: Content) {
    const { status = 200, statusText = "" } = init ?? {};
    const { content, type } = fetched === undefined ? extract(body) : { content: fetched, type: undefined };
    super(content);
    if (!(status >= 200 && status <= 599)) throw new RangeError(`Response: ${status} is not a status from 200 to 599`);
    if (content !== null && fetched === undefined && bodiless.includes(status)) throw new TypeError(`Response: a response with status ${status} has no body`);
    this.#status = Math.trunc(status);
    this.#statusText = String(statusText);
    this.headers = new Headers(init?.headers);
    if (type !== undefined && !this.headers.has("content-type")) this.headers.set("content-type", type);
  }
  static json(data: unknown, init: ResponseInit = {}): Response {
    const text = JSON.stringify(data);
    if (text === undefined) throw new TypeError(`Response.json: a ${typeof data} has no JSON form`);
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(text, { ...init, headers });
  }
  static redirect(url: string | URL, status = 302): Response {
    if (![301, 302, 303, 307, 308].includes(status)) throw new RangeError(`Response.redirect: ${status} is not 301, 302, 303, 307 or 308`);
    const location = String(url).toWellFormed();
    // There is no base URL: the client resolves a relative one.
    const target = /^[a-z][a-z0-9+.-]*:/i.test(location) ? new URL(location).href : location.replace(/[^!-~]+/g, encodeURIComponent);
    return new Response(null, { status, headers: { location: target } });
  }
  static error(): Response {
    const response = new Response();
    response.#status = 0;
    response.#type = "error";
    return response;
  }
  get [Symbol.toStringTag](): string {
    return "Response";
  }
  get status(): number {
    return this.#status;
  }
  get statusText(): string {
    return this.#statusText;
  }
  get ok(): boolean {
    return this.#status >= 200 && this.#status < 300;
  }
  get type(): string {
    return this.#type;
  }
  get url(): string {
    return this.#url;
  }
  get redirected(): boolean {
    return this.#redirected;
  }
  clone(): Response {
    const content = copy(this);
    const again = respond(this.#url, this.#redirected, this.#status, [...this.headers], content ?? "");
    again.#type = this.#type;
    again.#statusText = this.#statusText;
    return again;
  }
}
