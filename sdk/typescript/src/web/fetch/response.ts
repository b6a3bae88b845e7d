// Response (Fetch Standard, 5.5).

import { type AbortSignal } from "../abort.ts";
import { byteString, dictionary, takes, usv } from "../idl.ts";
import { Body, type Content, copy, extract, flowing, gather, includeBody, take } from "./body.ts";
import { isReadable } from "../streams/readablestream.ts";
import { copyOf, Headers, type HeadersInit, seal } from "./headers.ts";

export interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

/** The state of a response. It is one object, as a private field for each member would take more memory and time. */
interface Parts {
  body: Body | null;
  headers: Headers;
  status: number;
  statusText: string;
  type: string;
  url: string;
  redirected: boolean;
}

const bodiless = [101, 103, 204, 205, 304];
const redirects = [301, 302, 303, 307, 308];

// Private members of Response for this runtime: make the response of a fetch; take the body, once; read a body's stream
// to its end, which returns undefined if there is nothing to wait for; and give the stream of a body that is not there
// as a whole.
export let respond: (answer: Partial<Parts>, content: Content | ReadableStream | null, signal?: AbortSignal | null) => Response;
export let takeBody: (response: Response) => Content;
export let gatherBody: (response: Response) => Promise<void> | undefined;
export let streamIn: (response: Response) => ReadableStream | undefined;

let bodyOf: (response: Response) => Body | null;
let headersOf: (response: Response) => Headers;

/** A number as an unsigned short. */
const short = (value: unknown): number => (+(value as number) % 0x10000) & 0xffff;

export class Response {
  #of: Parts;

  static {
    bodyOf = (response) => response.#of.body;
    headersOf = (response) => response.#of.headers;
    takeBody = (response) => take(response.#of.body) as Content;
    gatherBody = (response) =>
      gather(response.#of.body, (whole) => {
        response.#of.body = whole;
      });
    streamIn = (response) =>
      flowing(response.#of.body, (whole) => {
        response.#of.body = whole;
      });
    respond = (answer, content, signal = null) => {
      const response = Response.#made(answer);
      if (content === null || bodiless.includes(response.#of.status)) return response;
      const body = (response.#of.body = isReadable(content) ? new Body(null, false, content) : new Body(content));
      body.signal = signal;
      return response;
    };
  }

  static #made(parts: Partial<Parts>): Response {
    const response = new Response();
    Object.assign(response.#of, parts);
    return response;
  }

  /** Response.json passes a Body. */
  constructor(body?: unknown, init?: ResponseInit) {
    const { headers, status, statusText } = dictionary(init, "Response");
    const code = status === undefined ? 200 : short(status);
    const reason = statusText === undefined ? "" : byteString(statusText, "Response: statusText");
    const given = body === undefined || body === null ? null : body instanceof Body ? { body, type: "application/json" } : extract(body);
    if (code < 200 || code > 599) throw new RangeError(`Response: ${status} is not a status from 200 to 599`);
    if (reason !== "" && !/^[\t -~\x80-\xff]*$/.test(reason)) throw new TypeError("Response: statusText has a line break or another control character");
    const all = new Headers(headers);
    this.#of = { body: given && given.body, headers: all, status: code, statusText: reason, type: "default", url: "", redirected: false };
    if (given === null) return;
    if (bodiless.includes(code)) throw new TypeError(`Response: a response with status ${code} must not have a body`);
    if (given.type !== undefined && !all.has("content-type")) all.append("content-type", given.type);
  }
  static error(): Response {
    return Response.#made({ status: 0, type: "error", headers: seal(new Headers()) });
  }
  static json(data: unknown, init?: ResponseInit): Response {
    takes(1, arguments, "Response.json");
    const text = JSON.stringify(data);
    if (text === undefined) throw new TypeError(`Response.json: a ${typeof data} has no JSON form`);
    return new Response(new Body(text), init);
  }
  static redirect(url: string | URL, status: number = 302): Response {
    takes(1, arguments, "Response.redirect");
    const location = usv(url);
    // There is no base URL: the client resolves a relative one.
    const target = /^[a-z][a-z0-9+.-]*:/i.test(location) ? new URL(location).href : location.replace(/[^!-~]+/g, encodeURIComponent);
    const code = short(status);
    if (!redirects.includes(code)) throw new RangeError(`Response.redirect: ${status} is not 301, 302, 303, 307 or 308`);
    return Response.#made({ status: code, headers: seal(new Headers({ location: target })) });
  }
  get type(): string {
    return this.#of.type;
  }
  get url(): string {
    return this.#of.url;
  }
  get redirected(): boolean {
    return this.#of.redirected;
  }
  get status(): number {
    return this.#of.status;
  }
  get ok(): boolean {
    const { status } = this.#of;
    return status >= 200 && status < 300;
  }
  get statusText(): string {
    return this.#of.statusText;
  }
  get headers(): Headers {
    return this.#of.headers;
  }
  clone(): Response {
    const { body, headers } = this.#of;
    return Response.#made({ ...this.#of, body: copy(body), headers: copyOf(headers) });
  }
}

includeBody(Response, bodyOf, headersOf);
