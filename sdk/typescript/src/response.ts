// Answers, made by helpers.

import { Operation } from "./host.ts";

export class Response {
  // Set one by one: a class's fields are defined, which takes far longer.
  declare readonly status: number;
  declare readonly body: unknown;
  /** Of an error: its message, or a code and members. */
  declare readonly message: string | object | undefined;
  declare readonly headers: readonly [string, string][] | undefined;

  constructor(status: number, body: unknown, message?: string | object, headers?: readonly [string, string][]) {
    this.status = status;
    this.body = body;
    this.message = message;
    this.headers = headers;
  }

  withHeader(name: string, value: string): Response {
    if (value === undefined) throw new TypeError(`withHeader: the value of ${name} is undefined`);
    name = String(name);
    let earlier = this.headers ?? [];
    if (/^(content-type|location)$/i.test(name)) earlier = earlier.filter(([other]) => other.toLowerCase() !== name.toLowerCase());
    return new Response(this.status, this.body, this.message, [...earlier, [name, String(value)]]);
  }
}

// The first answer of a request is there already, as each begins with the memory
// that the build has left.
const first = new Response(200, null);
let taken = false;

export function ok(body: unknown = null): Response {
  // Most are objects of data, and instanceof takes long to tell.
  if (typeof body === "object" && body?.constructor !== Object && body instanceof Operation) body.at = new Error();
  if (taken) return new Response(200, body);
  taken = true;
  (first as { body: unknown }).body = body;
  return first;
}

function answer(status: number, body: unknown): Response {
  const response = ok(body);
  (response as { status: number }).status = status;
  return response;
}

export function created(body: unknown = null, location?: string): Response {
  const response = answer(201, body);
  return location ? response.withHeader("location", location) : response;
}

function typed(name: string, body: unknown, status: number): Response {
  if (body === undefined) throw new TypeError(`${name}: the body is undefined`);
  return new Response(status, String(body), undefined, [["content-type", `text/${name === "text" ? "plain" : name}; charset=utf-8`]]);
}
export const text = (body: string, status = 200) => typed("text", body, status);
export const html = (body: string, status = 200) => typed("html", body, status);

export function noContent(): Response {
  const response = answer(204, null);
  (response as { body: unknown }).body = undefined;
  return response;
}

export function redirect(location: string, status = 302): Response {
  if (![301, 302, 303, 307, 308].includes(status)) throw new RangeError(`redirect: ${status} is none: use 301, 302, 303, 307 or 308`);
  return new Response(status, undefined).withHeader("location", location);
}

/** Answers in all states of being made, so that the engine knows their form. */
export const forms = [0, 1, 2, 3].map((n) => {
  const form = Object.create(Response.prototype);
  for (const name of ["status", "body", "message", "headers"].slice(0, n)) form[name] = undefined;
  return form;
});

/** The body of an answer that is sent while it is made. */
export class Chunks {
  declare readonly source: Iterable<unknown> | AsyncIterable<unknown>;

  constructor(source: Iterable<unknown> | AsyncIterable<unknown>) {
    this.source = source;
  }
}

type Source<T> = Iterable<T> | AsyncIterable<T> | (() => Iterable<T> | AsyncIterable<T>);

function chunksOf<T>(name: string, source: Source<T>): Iterable<T> | AsyncIterable<T> {
  const chunks = typeof source === "function" ? source() : source;
  if (typeof chunks !== "object" || chunks === null || !(Symbol.asyncIterator in chunks || Symbol.iterator in chunks)) {
    throw new TypeError(`${name}: it takes a generator function, or what for await can iterate`);
  }
  return chunks;
}

export function stream(source: Source<string | Uint8Array>, { type = "application/octet-stream", status = 200 } = {}): Response {
  return new Response(status, new Chunks(chunksOf("stream", source)), undefined, [["content-type", String(type)]]);
}

interface Event {
  event?: string;
  data?: unknown;
  id?: string | number;
  retry?: number;
}

export function events(source: Source<Event | string>): Response {
  return new Response(200, new Chunks(eventTexts(chunksOf("events", source))), undefined, [["content-type", "text/event-stream"]]);
}

async function* eventTexts(source: Iterable<Event | string> | AsyncIterable<Event | string>): AsyncGenerator<string> {
  for await (const event of source) yield eventText(typeof event === "string" ? { data: event } : event);
}

/** An event as the HTML Standard, 9.2.5, has it. */
function eventText({ event, data, id, retry }: Event): string {
  let text = "";
  for (const [name, value] of [["event", event], ["id", id]] as const) {
    if (value === undefined) continue;
    if (/[\r\n\0]/.test(String(value))) throw new TypeError(`events: ${name} cannot have a line end or a zero character`);
    text += `${name}: ${value}\n`;
  }
  if (retry !== undefined) {
    if (!Number.isInteger(retry) || retry < 0) throw new RangeError("events: retry is in milliseconds, a whole number");
    text += `retry: ${retry}\n`;
  }
  if (data !== undefined) {
    const lines = typeof data === "string" ? data : JSON.stringify(data);
    for (const line of lines.split(/\r\n|\r|\n/)) text += `data: ${line}\n`;
  }
  return `${text}\n`;
}

export const badRequest = (message = "") => error(400, message);
export const unauthorized = (message = "") => error(401, message);
export const forbidden = (message = "") => error(403, message);
export const notFound = (message = "") => error(404, message);
export const error = (status: number, message: string | object = "") =>
  new Response(status, undefined, typeof message === "object" && message !== null && !(message instanceof Error) ? message : String(message));
