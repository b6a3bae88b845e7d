/** Gives a credential: the text itself, or what makes one before each request. */
export type Credential = string | (() => string | Promise<string>);

/** How a client reaches the app, and who it is there. */
export interface ClientOptions {
  /** Where the app is served: "https://api.example.com". Without one it is, in a browser, the page's own origin. */
  baseUrl?: string | undefined;
  /** An API key. */
  apiKey?: Credential | undefined;
  /** A JWT of the identity provider. */
  bearer?: Credential | undefined;
  /** Whether the browser sends its cookies, for sessions: to the page's own origin, or to one whose cors: names the page's. */
  cookies?: boolean | undefined;
  /** Headers of every request. */
  headers?: Record<string, string> | undefined;
  /** Sends the requests: the global fetch unless another is given. */
  fetch?: typeof globalThis.fetch | undefined;
  /**
   * How many times a request is sent again that was answered 429 or 503 with Retry-After,
   * after the time that it names: 0 unless it is given. The runner gives such answers before a handler runs.
   */
  retries?: number | undefined;
  /** How many seconds may be waited before a request is sent again: 30 unless it is given. One that has to wait longer is not. */
  maxWait?: number | undefined;
}

/** What each request may have of its own. */
export interface CallOptions {
  /** Headers that go before those of the client. */
  headers?: Record<string, string> | undefined;
  /** Ends the request. */
  signal?: AbortSignal | undefined;
  /** Gets each answer before its body is read, for its headers. */
  onResponse?: ((response: Response) => void) | undefined;
}

/** A parameter of a path. */
export type Param = string | number;
/** What comes behind the "?": a list gives its name several times, null and undefined are left out. */
export type Query = Record<string, QueryValue | readonly QueryValue[]>;
export type QueryValue = string | number | boolean | null | undefined;

/** What each request to a route may have. */
export interface RouteOptions extends CallOptions {
  query?: Query | undefined;
}

/** One mistake in a body. */
export interface FieldError {
  /** Where it is: "lines[2].sku". Empty for the whole. */
  field: string;
  message: string;
}

/** An answer that is no success. */
export class ProblemError extends Error {
  /** What is wrong, in a word that stays: "invalid_token". "error" when the answer names none. */
  readonly code: string;
  readonly status: number;
  /** What is wrong, for people. */
  readonly detail: string;
  /** Every mistake of the body, with the code "invalid_input". */
  readonly errors: readonly FieldError[];
  /** By which the operator finds the request in the log. */
  readonly requestId: string | undefined;
  /** In how many seconds to come back, when the answer says. */
  readonly retryAfter: number | undefined;
  /** The answer's body: JSON where it is such, else text. */
  readonly body: unknown;
  /** The answer; its body has been read. */
  readonly response: Response;

  constructor(response: Response, body: unknown) {
    const problem: Record<string, unknown> = typeof body === "object" && body !== null ? { ...body } : {};
    const code = typeof problem["code"] === "string" ? problem["code"] : "error";
    const detail = typeof problem["detail"] === "string" ? problem["detail"] : response.statusText;
    super(`${response.status} ${code}${detail && `: ${detail}`}`);
    this.name = "ProblemError";
    this.code = code;
    this.status = response.status;
    this.detail = detail;
    this.errors = Array.isArray(problem["errors"]) ? problem["errors"] : [];
    this.requestId = response.headers.get("x-request-id") ?? undefined;
    this.retryAfter = retryAfter(response);
    this.body = body;
    this.response = response;
  }
}

interface Sent extends RouteOptions {
  params?: Record<string, Param>;
  body?: unknown;
}

// The request of a route has its own types where it is called.
type Send = (method: string, path: string, request?: Sent) => Promise<any>;

function connect(options: ClientOptions): Send {
  const { apiKey, bearer, cookies = false, retries = 0, maxWait = 30 } = options;
  if ([apiKey !== undefined, bearer !== undefined, cookies].filter((given) => given).length > 1) {
    throw new TypeError("create a client: give one of apiKey, bearer and cookies");
  }
  const base = (options.baseUrl ?? "").replace(/\/+$/, "");
  const send = options.fetch ?? globalThis.fetch;
  const credential = apiKey ?? bearer;

  return async (method, path, request = {}) => {
    const url = base + target(path, request.params ?? {}, request.query ?? {});
    const json = request.body !== undefined && !isRaw(request.body);
    const body = json ? JSON.stringify(request.body) : (request.body as BodyInit | undefined);
    for (let left = retries; ; left--) {
      const headers = new Headers(options.headers);
      if (credential !== undefined) {
        headers.set("authorization", "Bearer " + (typeof credential === "string" ? credential : await credential()));
      }
      if (json) {
        headers.set("content-type", "application/json");
      }
      for (const [name, value] of Object.entries(request.headers ?? {})) {
        headers.set(name, value);
      }
      const init: RequestInit & { duplex?: "half" } = { method, headers, credentials: cookies ? "include" : "omit" };
      if (body !== undefined) {
        init.body = body;
      }
      if (isStream(body)) {
        init.duplex = "half";
      }
      if (request.signal) {
        init.signal = request.signal;
      }
      const response = await send(url, init);
      request.onResponse?.(response);
      if (response.ok) {
        return read(response);
      }
      const wait = response.status === 429 || response.status === 503 ? retryAfter(response) : undefined;
      if (left <= 0 || wait === undefined || wait > maxWait || isStream(body)) {
        throw await problem(response);
      }
      await response.body?.cancel();
      await pause(wait, request.signal);
    }
  };
}

// target is the path with its parameters filled in, and the query. What a URL would take for
// another path is no parameter.
function target(path: string, params: Record<string, Param>, query: Query): string {
  const filled = path.split("/").map((segment) => {
    const name = segment.slice(1);
    if (segment[0] !== ":" && segment[0] !== "*") {
      return segment;
    }
    if (!Object.hasOwn(params, name)) {
      throw new TypeError(`${path}: the parameter ${name} is missing`);
    }
    const value = String(params[name] ?? "");
    const parts = segment[0] === "*" ? value.split("/") : [value];
    if (parts.some((part) => part === "" || part === "." || part === "..")) {
      throw new TypeError(`${path}: the parameter ${name} cannot be ${JSON.stringify(value)}`);
    }
    return parts.map(encodeURIComponent).join("/");
  });
  const pairs = new URLSearchParams();
  for (const [name, given] of Object.entries(query)) {
    for (const value of Array.isArray(given) ? given : [given]) {
      if (value !== null && value !== undefined) {
        pairs.append(name, String(value));
      }
    }
  }
  const search = pairs.toString();
  return filled.join("/") + (search && "?" + search);
}

// isRaw tells what is sent as it is; all else is sent as JSON.
function isRaw(body: unknown): boolean {
  return (
    body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body) ||
    body instanceof URLSearchParams || body instanceof FormData || isStream(body)
  );
}

function isStream(body: unknown): boolean {
  return typeof ReadableStream !== "undefined" && body instanceof ReadableStream;
}

function isJson(response: Response): boolean {
  return /^application\/([^;]+\+)?json\b/i.test(response.headers.get("content-type") ?? "");
}

// read gives the body: JSON, text, or a Blob of anything else; undefined when there is none.
async function read(response: Response): Promise<unknown> {
  const type = response.headers.get("content-type") ?? "";
  if (!isJson(response) && type !== "" && !type.startsWith("text/")) {
    return response.blob();
  }
  const text = await response.text();
  if (text === "") {
    return undefined;
  }
  return isJson(response) ? JSON.parse(text) : text;
}

async function problem(response: Response): Promise<ProblemError> {
  const text = await response.text();
  if (isJson(response)) {
    try {
      return new ProblemError(response, JSON.parse(text));
    } catch {
      // Somebody between says that it is JSON, and it is none.
    }
  }
  return new ProblemError(response, text);
}

// retryAfter is in seconds; the header may also be a date.
function retryAfter(response: Response): number | undefined {
  const value = response.headers.get("retry-after");
  if (value === null) {
    return undefined;
  }
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

function pause(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) {
      stop();
    } else {
      signal?.addEventListener("abort", stop, { once: true });
    }
  });
}
