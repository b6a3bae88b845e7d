/** A credential, or a function that returns one before each request. */
export type Credential = string | (() => string | Promise<string>);

/** The options of a client. */
export interface ClientOptions {
  /** The URL of the app: "https://api.example.com". The default in a browser is the origin of the page. */
  baseUrl?: string | undefined;
  /** An API key. */
  apiKey?: Credential | undefined;
  /** A JWT of the identity provider. */
  bearer?: Credential | undefined;
  /** Whether the browser sends session cookies: to the page's own origin, or to an app whose `cors:` names that origin. */
  cookies?: boolean | undefined;
  /** Headers for every request. */
  headers?: Record<string, string> | undefined;
  /** The function that sends requests. The default is the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /**
   * The number of retries after a 429 or 503 response with Retry-After. The default is 0. The client waits as
   * long as Retry-After says. The runner sends these responses before a handler runs.
   */
  retries?: number | undefined;
  /** The longest wait before a retry, in seconds. The default is 30. A request that must wait longer is not retried. */
  maxWait?: number | undefined;
}

/** The options of a request. */
export interface CallOptions {
  /** Headers that override those of the client. */
  headers?: Record<string, string> | undefined;
  /** Aborts the request. */
  signal?: AbortSignal | undefined;
  /** Called with each response before its body is read, for example to read headers. */
  onResponse?: ((response: Response) => void) | undefined;
}

/** A parameter of a path. */
export type Param = string | number;
/** The query parameters. A list repeats its name; null and undefined are omitted. */
export type Query = Record<string, QueryValue | readonly QueryValue[]>;
export type QueryValue = string | number | boolean | null | undefined;

/** The options of a request to a route. */
export interface RouteOptions extends CallOptions {
  query?: Query | undefined;
}

/** An error in a body. */
export interface FieldError {
  /** The path of the member: "lines[2].sku". Empty for the whole body. */
  field: string;
  message: string;
}

/** An error response. */
export class ProblemError extends Error {
  /** A stable error code: "invalid_token". "error" if the response has none. */
  readonly code: string;
  readonly status: number;
  /** A description of the error. */
  readonly detail: string;
  /** The errors of the body, with the code "invalid_input", and the fields of a "conflict". */
  readonly errors: readonly FieldError[];
  /** The id of the request, which the operator can find in the log. */
  readonly requestId: string | undefined;
  /** The number of seconds after which to retry, if the response has Retry-After. */
  readonly retryAfter: number | undefined;
  /** The body of the response, with the members of the handler's own: parsed if it is JSON, otherwise text. */
  readonly body: unknown;
  /** The response. Its body has been read. */
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

interface Sent extends CallOptions {
  query?: object | undefined;
  params?: Record<string, Param>;
  body?: unknown;
}

// Client declares the types of each request.
type Send = (method: string, path: string, request?: Sent) => Promise<any>;

interface Sending {
  /** Whether the body is JSON text. */
  json?: boolean;
  body?: BodyInit | undefined;
  headers?: Record<string, string> | undefined;
  signal?: AbortSignal | undefined;
}

interface Transport {
  /** Returns the credential for the next request, undefined without one. */
  credential(): Promise<string | undefined>;
  /** Sends one request to a path with its query. */
  send(method: string, url: string, request: Sending, credential: string | undefined): Promise<Response>;
}

function connect(options: ClientOptions): Transport {
  const { apiKey, bearer, cookies = false } = options;
  if ([apiKey !== undefined, bearer !== undefined, cookies].filter((given) => given).length > 1) {
    throw new TypeError("create a client: give one of apiKey, bearer and cookies");
  }
  const base = (options.baseUrl ?? "").replace(/\/+$/, "");
  const send = options.fetch ?? globalThis.fetch;
  const given = apiKey ?? bearer;

  return {
    credential: async () => (typeof given === "function" ? given() : given),
    send(method, url, { json, body, headers: own, signal }, credential) {
      const headers = new Headers(options.headers);
      if (credential !== undefined) {
        headers.set("authorization", "Bearer " + credential);
      }
      if (json) {
        headers.set("content-type", "application/json");
      }
      for (const [name, value] of Object.entries(own ?? {})) {
        headers.set(name, value);
      }
      const init: RequestInit & { duplex?: "half" } = { method, headers, credentials: cookies ? "include" : "omit" };
      if (body !== undefined) {
        init.body = body;
      }
      if (isStream(body)) {
        init.duplex = "half";
      }
      if (signal) {
        init.signal = signal;
      }
      return send(base + url, init);
    },
  };
}

function sender(transport: Transport, { retries = 0, maxWait = 30 }: ClientOptions): Send {
  return async (method, path, request = {}) => {
    const { headers, signal } = request;
    const url = target(path, request.params ?? {}, request.query ?? {});
    const json = request.body !== undefined && !isRaw(request.body);
    const body = json ? exactJSON(path, request.body) : (request.body as BodyInit | undefined);
    for (let left = retries; ; left--) {
      const response = await transport.send(method, url, { json, body, headers, signal }, await transport.credential());
      request.onResponse?.(response);
      if (response.ok) {
        return read(response);
      }
      const wait = response.status === 429 || response.status === 503 ? retryAfter(response) : undefined;
      if (left <= 0 || wait === undefined || wait > maxWait || isStream(body)) {
        throw await problem(response);
      }
      await response.body?.cancel();
      await pause(wait, signal);
    }
  };
}

// target returns the path with its parameters, and the query. It refuses parameters that would
// change the path, such as "..".
function target(path: string, params: Record<string, Param>, query: object): string {
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

// exactJSON is JSON.stringify that refuses what it would change to null: NaN and invalid dates.
function exactJSON(path: string, body: unknown): string {
  return JSON.stringify(body, function (this: Record<string, unknown>, name: string, value: unknown) {
    const given = this[name];
    if ((typeof value === "number" && !Number.isFinite(value)) || (value === null && given instanceof Date)) {
      throw new TypeError(`${path}: ${name || "the body"} cannot be ${given instanceof Date ? "an invalid date" : String(value)}`);
    }
    return value;
  });
}

// isRaw reports whether a body is sent unchanged. Other bodies are sent as JSON.
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

// read returns the body: parsed JSON, text, a Blob for other types, or undefined if it is empty.
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
      // Not JSON, despite its Content-Type: perhaps from a proxy.
    }
  }
  return new ProblemError(response, text);
}

// retryAfter returns seconds. The header may also be a date.
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
