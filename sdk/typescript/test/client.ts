// Requests to the app, as its callers send them.

import { fromBase64, toBase64 } from "../src/web/encoding.ts";
import { known } from "../src/host.ts";
import { ask, Lazy, milliseconds, Scope, scope, type Started } from "./host.ts";

interface Options {
  headers?: HeadersInit;
  query?: Record<string, unknown> | URLSearchParams;
}
interface Init extends Options {
  method?: string;
  body?: unknown;
}

interface KeyOptions {
  tenant?: string;
  name?: string;
  metadata?: object;
  expiresIn?: string | number;
}
interface SessionOptions {
  user: string;
  tenant?: string;
  roles?: string[];
  expiresIn?: string | number;
}

const bodiless = [101, 204, 205, 304];

/** A path with a query. */
function target(path: string, query: Options["query"]): string {
  if (typeof path !== "string" || !path.startsWith("/")) throw new TypeError(`a path begins with "/", as in the schema; this one is ${JSON.stringify(path)}`);
  if (query === undefined) return path;
  const all = query instanceof URLSearchParams ? query : new URLSearchParams();
  if (query !== all) {
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) all.append(name, one instanceof Date ? one.toISOString() : String(one));
    }
  }
  const text = String(all);
  return text === "" ? path : path + (path.includes("?") ? "&" : "?") + text;
}

/** Whether a body is sent as JSON: lists, objects of data, numbers, booleans and null are. */
function isData(body: unknown): boolean {
  if (typeof body !== "object" || body === null) return body !== undefined && typeof body !== "string";
  const prototype = Object.getPrototypeOf(body);
  return prototype === null || prototype === Object.prototype || Array.isArray(body) || typeof (body as { toJSON?: unknown }).toJSON === "function";
}

/** Someone who sends requests. The host keeps what belongs to them, as cookies, for the test in which it was made. */
export class Client {
  readonly #args: object;
  readonly #title: string;
  #made: { scope: Scope; number: Promise<number> } | undefined;

  constructor(title: string, args: object) {
    this.#title = title;
    this.#args = args;
  }

  #number(started: Started): Promise<number> {
    const here = scope(this.#title);
    if (!this.#made || !here.within(this.#made.scope)) {
      const made = { scope: here, number: ask("client", this.#args, started).then(({ client }) => client) };
      made.number.catch(() => {
        if (this.#made === made) this.#made = undefined;
      });
      this.#made = made;
    }
    return this.#made.number;
  }

  async fetch(path: string, init: Init = {}): Promise<Response> {
    const { method = "GET", headers, query, body } = init;
    known(`${method} ${path}`, init, "headers", "query", "body", "method");
    const to = target(path, query);
    const started = { title: `${method} ${to}`, at: new Error() };
    const asJSON = isData(body);
    // Request knows what a body is, and its content type.
    const request = new Request("http://app.test/", { method, headers, body: asJSON ? JSON.stringify(body) : (body as BodyInit) });
    if (asJSON && !new Headers(headers).has("content-type")) request.headers.set("content-type", "application/json");
    const { open } = scope(started.title);
    open.add(started); // also while the caller is made
    let answer;
    try {
      const bytes = request.body === null ? null : await request.bytes();
      const client = await this.#number(started);
      answer = await ask("request", {
        client, method: request.method, path: to, headers: [...request.headers], body: bytes && toBase64(bytes),
      }, started);
    } finally {
      open.delete(started);
    }
    const content = fromBase64(answer.body);
    return new Response(content.length === 0 && bodiless.includes(answer.status) ? null : content, {
      status: answer.status, statusText: answer.statusText ?? "", headers: answer.headers,
    });
  }
  get(path: string, options?: Options): Promise<Response> {
    return this.fetch(path, { ...options, method: "GET" });
  }
  head(path: string, options?: Options): Promise<Response> {
    return this.fetch(path, { ...options, method: "HEAD" });
  }
  post(path: string, body?: unknown, options?: Options): Promise<Response> {
    return this.fetch(path, { ...options, method: "POST", body });
  }
  put(path: string, body?: unknown, options?: Options): Promise<Response> {
    return this.fetch(path, { ...options, method: "PUT", body });
  }
  patch(path: string, body?: unknown, options?: Options): Promise<Response> {
    return this.fetch(path, { ...options, method: "PATCH", body });
  }
  delete(path: string, options?: Options): Promise<Response> {
    return this.fetch(path, { ...options, method: "DELETE" });
  }
}

/** Options with a lifetime in milliseconds. */
function lived(of: string, options: { expiresIn?: unknown }): object {
  return options.expiresIn === undefined ? options : { ...options, expiresIn: milliseconds(of, options.expiresIn) };
}

export const as = {
  key(scope: string, options: KeyOptions = {}): Client {
    known("as.key", options, "tenant", "name", "metadata", "expiresIn");
    return new Client(`as.key(${JSON.stringify(scope)})`, { ...lived("as.key", options), kind: "key", scope });
  },
  session(options: SessionOptions): Client {
    known("as.session", options, "user", "tenant", "roles", "expiresIn");
    return new Client("as.session(…)", { ...lived("as.session", options), kind: "session" });
  },
  jwt: (claims: object) => new Client("as.jwt(…)", { kind: "jwt", claims }),
  anonymous: () => new Client("as.anonymous()", { kind: "anonymous" }),
};

/** A caller without credentials. */
export const request = as.anonymous();

/** Calls a function of the schema as an operator. */
export function call(name: string, params: object = {}, options: { tenant?: string; user?: string } = {}): Lazy<{ status: number; body: any }> {
  known("call", options, "tenant", "user");
  return new Lazy(`call(${JSON.stringify(name)})`, (started) => ask("call", { ...options, function: name, params }, started));
}
