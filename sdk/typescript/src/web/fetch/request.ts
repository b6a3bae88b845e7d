// Request (Fetch Standard, 5.4). Members without an effect on a server, such as mode and cache, are only
// checked and kept.

import { AbortSignal } from "../abort.ts";
import { byteString, dictionary, oneOf, takes, usv } from "../idl.ts";
import { type Body, bodyOf, copy, extract, includeBody, moved } from "./body.ts";
import { checked, copyOf, Headers, type HeadersInit, type Pair } from "./headers.ts";

export interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: unknown;
  mode?: string;
  credentials?: string;
  cache?: string;
  redirect?: "follow" | "manual" | "error";
  referrer?: string;
  referrerPolicy?: string;
  integrity?: string;
  keepalive?: boolean;
  signal?: AbortSignal | null;
  duplex?: "half";
  priority?: "high" | "low" | "auto";
  window?: null;
}

/** The state of a request. It is one object, as a private field for each member would take more memory and time. */
export interface Parts {
  body: Body | null;
  headers: Headers;
  url: string;
  method: string;
  mode: string;
  credentials: string;
  cache: string;
  /** Undefined: it was not given. */
  redirect: "follow" | "manual" | "error" | undefined;
  referrer: string;
  referrerPolicy: string;
  integrity: string;
  keepalive: boolean;
  /** The signal that was given. */
  source: AbortSignal | null;
  /** The signal that follows it, made when it is first read. */
  signal: AbortSignal | undefined;
}

const usual = {
  body: null, url: "", method: "GET", mode: "cors", credentials: "same-origin", cache: "default", redirect: undefined, referrer: "about:client",
  referrerPolicy: "", integrity: "", keepalive: false, source: null, signal: undefined,
} as const;
const policies = " no-referrer no-referrer-when-downgrade same-origin origin strict-origin origin-when-cross-origin strict-origin-when-cross-origin unsafe-url";

// Private members of Request for this folder: its state, and a Request for the request that a client has sent.
export let partsOf: (request: Request) => Parts;
export let received: (url: string, method: string, pairs: Pair[], whole: (() => Uint8Array) | null) => Request;

export class Request {
  #of: Parts;

  static {
    partsOf = (request) => request.#of;
    received = (url, method, pairs, whole) => Request.#made({ ...usual, url, method, headers: checked(pairs), body: whole && bodyOf(whole) });
  }

  static #made(parts: Parts): Request {
    const request = new Request(blank as unknown as string);
    request.#of = parts;
    return request;
  }

  constructor(input: Request | URL | string, init?: RequestInit) {
    takes(1, arguments, "Request");
    if ((input as unknown) === blank) {
      this.#of = blank as Parts;
      return;
    }
    const given = init === undefined ? none : convert(init);
    const from = input instanceof Request ? input : undefined;
    const parts: Omit<Parts, "headers"> & { headers?: Headers } = from ? { ...from.#of, body: null, signal: undefined } : { ...usual, url: urlOf(usv(input)) };
    if (given.mode === "navigate") throw new TypeError('Request: mode "navigate" is for browsers');
    if (given.window !== undefined && given.window !== null) throw new TypeError("Request: window must be null");
    if (given.referrer !== undefined) parts.referrer = referrerOf(given.referrer);
    if (given.method !== undefined) parts.method = methodOf(given.method);
    if (given.signal !== undefined) parts.source = given.signal;
    for (const name of ["mode", "credentials", "cache", "redirect", "referrerPolicy", "integrity", "keepalive"] as const) {
      if (given[name] !== undefined) (parts as Record<string, unknown>)[name] = given[name];
    }
    if (parts.cache === "only-if-cached" && parts.mode !== "same-origin") throw new TypeError('Request: cache "only-if-cached" needs mode "same-origin"');
    if (parts.mode === "no-cors" && !/^(GET|HEAD|POST)$/.test(parts.method)) throw new TypeError(`Request: mode "no-cors" allows GET, HEAD and POST, not ${parts.method}`);
    const headers = (parts.headers = given.headers === undefined && from ? copyOf(from.#of.headers) : new Headers(given.headers));
    const taken = from ? from.#of.body : null;
    const { body = null, duplex } = given;
    if ((body !== null || taken !== null) && /^(GET|HEAD)$/.test(parts.method)) throw new TypeError(`Request: a request with ${parts.method} must not have a body`);
    if (body !== null) {
      const { body: made, type } = extract(body, parts.keepalive);
      parts.body = made;
      if (type !== undefined && !headers.has("content-type")) headers.append("content-type", type);
      if (made.stream && duplex === undefined) throw new TypeError('Request: a ReadableStream as body needs duplex: "half"');
    } else if (taken !== null) {
      parts.body = moved(taken);
    }
    this.#of = parts as Parts;
  }
  get method(): string {
    return this.#of.method;
  }
  get url(): string {
    return this.#of.url;
  }
  get headers(): Headers {
    return this.#of.headers;
  }
  get destination(): string {
    return (this.#of, "");
  }
  get referrer(): string {
    return this.#of.referrer;
  }
  get referrerPolicy(): string {
    return this.#of.referrerPolicy;
  }
  get mode(): string {
    return this.#of.mode;
  }
  get credentials(): string {
    return this.#of.credentials;
  }
  get cache(): string {
    return this.#of.cache;
  }
  get redirect(): "follow" | "manual" | "error" {
    return this.#of.redirect ?? "follow";
  }
  get integrity(): string {
    return this.#of.integrity;
  }
  get keepalive(): boolean {
    return this.#of.keepalive;
  }
  get isReloadNavigation(): boolean {
    return (this.#of, false);
  }
  get isHistoryNavigation(): boolean {
    return (this.#of, false);
  }
  get signal(): AbortSignal {
    const of = this.#of;
    return (of.signal ??= AbortSignal.any(of.source ? [of.source] : []));
  }
  get duplex(): string {
    return (this.#of, "half");
  }
  clone(): Request {
    const { body, headers } = this.#of;
    return Request.#made({ ...this.#of, body: copy(body), headers: copyOf(headers), signal: undefined });
  }
}

// An argument of the constructor, in place of a URL, if #made sets the state.
const blank: object = {};
const none: Partial<ReturnType<typeof convert>> = {};

includeBody(Request, (request) => partsOf(request).body, (request) => partsOf(request).headers);

/** The members of a RequestInit, converted in their order. */
function convert(init: unknown) {
  const given = dictionary(init, "Request");
  const text = (value: unknown): string | undefined => (value === undefined ? undefined : `${value as string}`);
  const { body, cache, credentials, duplex, headers, integrity, keepalive, method, mode, priority, redirect, referrer, referrerPolicy, signal, window } = given;
  if (signal !== undefined && signal !== null && !(signal instanceof AbortSignal)) throw new TypeError("Request: signal must be an AbortSignal");
  oneOf(priority, "high low auto", "Request: priority");
  return {
    body,
    cache: oneOf(cache, "default no-store reload no-cache force-cache only-if-cached", "Request: cache"),
    credentials: oneOf(credentials, "omit same-origin include", "Request: credentials"),
    duplex: oneOf(duplex, "half", "Request: duplex"),
    headers,
    integrity: text(integrity),
    keepalive: keepalive === undefined ? undefined : Boolean(keepalive),
    method: method === undefined ? undefined : byteString(method, "Request: method"),
    mode: oneOf(mode, "navigate same-origin no-cors cors", "Request: mode"),
    redirect: oneOf(redirect, "follow error manual", "Request: redirect"),
    referrer: referrer === undefined ? undefined : usv(referrer),
    referrerPolicy: oneOf(referrerPolicy, policies, "Request: referrerPolicy"),
    signal: signal as AbortSignal | null | undefined,
    window,
  };
}

function urlOf(text: string): string {
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") throw new TypeError("Request: the URL has a user or a password: send them in the header Authorization");
  return url.href;
}

function methodOf(method: string): string {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method)) throw new TypeError(`Request: ${JSON.stringify(method)} is not a valid method`);
  if (/^(connect|trace|track)$/i.test(method)) throw new TypeError(`Request: the method ${method} is forbidden`);
  return /^(delete|get|head|options|post|put)$/i.test(method) ? method.toUpperCase() : method;
}

function referrerOf(text: string): string {
  if (text === "") return "";
  const { protocol, pathname, href } = new URL(text);
  return protocol === "about:" && pathname === "client" ? "about:client" : href;
}
