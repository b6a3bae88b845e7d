// What there is in a handler without an import, beside the language itself
// (ES2023) and the part of Intl that docs/typescript/globals.md lists. There is no DOM and no Node.js.

// Files of text are imported as strings: import page from "./page.html".
declare module "*.txt" {
  const text: string;
  export default text;
}
declare module "*.md" {
  const text: string;
  export default text;
}
declare module "*.html" {
  const text: string;
  export default text;
}
declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.csv" {
  const text: string;
  export default text;
}
declare module "*.xml" {
  const text: string;
  export default text;
}
declare module "*.svg" {
  const text: string;
  export default text;
}
declare module "*.graphql" {
  const text: string;
  export default text;
}

/** Writes to the server's log, under the request's id. `%s`, `%d` and the like in a first text are replaced. */
declare const console: {
  debug(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  dir(value: unknown): void;
  table(value: unknown): void;
  /** Indents the lines that follow, until groupEnd. */
  group(...values: unknown[]): void;
  groupCollapsed(...values: unknown[]): void;
  groupEnd(): void;
  assert(holds?: unknown, ...values: unknown[]): void;
  count(label?: string): void;
  countReset(label?: string): void;
  time(label?: string): void;
  timeLog(label?: string, ...values: unknown[]): void;
  timeEnd(label?: string): void;
};

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams {
  constructor(init?: string | URLSearchParams | Iterable<[string, string]> | Record<string, string>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(does: (value: string, name: string, params: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array;
  encodeInto(text: string, into: Uint8Array): { read: number; written: number };
}

declare class TextDecoder {
  /** The encoding is utf-8, utf-16le, utf-16be or windows-1252 (which latin1 stands for), or one of their other labels. */
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  /** With `stream`, a character that the input only begins is left for the next call. */
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare function structuredClone<T>(value: T, options?: { transfer?: ArrayBuffer[] }): T;
declare const self: typeof globalThis;
declare function atob(base64: string): string;
declare function btoa(binary: string): string;
/** Runs a function later, if the handler has not answered by then. The request's time goes on. */
declare function setTimeout(does: (...values: any[]) => unknown, milliseconds?: number): number;
declare function setTimeout<A extends unknown[]>(does: (...values: A) => unknown, milliseconds: number | undefined, ...values: A): number;
declare function setInterval(does: (...values: any[]) => unknown, milliseconds?: number): number;
declare function setInterval<A extends unknown[]>(does: (...values: A) => unknown, milliseconds: number | undefined, ...values: A): number;
declare function clearTimeout(timer?: number): void;
declare function clearInterval(timer?: number): void;
declare function setImmediate<A extends unknown[]>(does: (...values: A) => unknown, ...values: A): number;
declare function clearImmediate(timer?: number): void;
declare function queueMicrotask(job: () => void): void;
declare const performance: { now(): number };

type EventListener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };

/** An event goes to its target alone: there is no tree of targets. */
declare class Event {
  constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly defaultPrevented: boolean;
  readonly eventPhase: number;
  readonly isTrusted: boolean;
  readonly timeStamp: number;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}

declare class CustomEvent<T = any> extends Event {
  constructor(type: string, init?: { detail?: T; bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly detail: T;
}

declare class EventTarget {
  addEventListener(type: string, listener: EventListener | null, options?: boolean | { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: EventListener | null, options?: boolean | { capture?: boolean }): void;
  /** A listener that throws is logged, and the others run. */
  dispatchEvent(event: Event): boolean;
}

declare class MessageEvent<T = any> extends Event {
  constructor(type: string, init?: { data?: T });
  readonly data: T;
}

declare class MessagePort extends EventTarget {
  onmessage: ((event: MessageEvent) => unknown) | null;
  postMessage(data: unknown, options?: { transfer?: ArrayBuffer[] } | ArrayBuffer[]): void;
  start(): void;
  close(): void;
}

declare class MessageChannel {
  readonly port1: MessagePort;
  readonly port2: MessagePort;
}

/** An error of the platform. Its name tells which one: "OperationError", "AbortError", … */
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

type KeyType = "secret" | "public" | "private";
type KeyUsage = "encrypt" | "decrypt" | "sign" | "verify" | "deriveKey" | "deriveBits" | "wrapKey" | "unwrapKey";
type KeyFormat = "raw" | "spki" | "pkcs8" | "jwk";
type BufferSource = ArrayBuffer | ArrayBufferView;

declare class CryptoKey {
  private constructor();
  readonly type: KeyType;
  readonly extractable: boolean;
  readonly algorithm: { name: string; hash?: { name: string }; length?: number; namedCurve?: string; modulusLength?: number; publicExponent?: Uint8Array };
  readonly usages: KeyUsage[];
}

interface CryptoKeyPair {
  publicKey: CryptoKey;
  privateKey: CryptoKey;
}

/** A key of JSON (RFC 7517). */
interface JsonWebKey {
  kty?: string;
  use?: string;
  key_ops?: string[];
  ext?: boolean;
  alg?: string;
  crv?: string;
  x?: string;
  y?: string;
  d?: string;
  n?: string;
  e?: string;
  p?: string;
  q?: string;
  dp?: string;
  dq?: string;
  qi?: string;
  k?: string;
}

type HashName = "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512";
type Hash = HashName | { name: HashName };
type NamedCurve = "P-256" | "P-384" | "P-521";
type SignAlgorithm =
  | "HMAC" | "Ed25519" | "RSASSA-PKCS1-v1_5"
  | { name: "HMAC" | "Ed25519" | "RSASSA-PKCS1-v1_5" }
  | { name: "ECDSA"; hash: Hash }
  | { name: "RSA-PSS"; saltLength: number };
type CipherAlgorithm = { name: "AES-GCM"; iv: BufferSource; additionalData?: BufferSource; tagLength?: number };
type DeriveAlgorithm =
  | { name: "PBKDF2"; hash: Hash; salt: BufferSource; iterations: number }
  | { name: "HKDF"; hash: Hash; salt: BufferSource; info: BufferSource };
type SecretAlgorithm = { name: "HMAC"; hash: Hash; length?: number } | { name: "AES-GCM"; length?: number } | "AES-GCM";
type KeyAlgorithm =
  | SecretAlgorithm
  | "Ed25519" | { name: "Ed25519" }
  | "PBKDF2" | "HKDF" | { name: "PBKDF2" | "HKDF" }
  | { name: "ECDSA"; namedCurve: NamedCurve }
  | { name: "RSA-PSS" | "RSASSA-PKCS1-v1_5"; hash: Hash };

/**
 * The Web Cryptography API, computed by the host. Errors have the names of the standard:
 * NotSupportedError, SyntaxError, InvalidAccessError, DataError, OperationError.
 */
interface SubtleCrypto {
  digest(algorithm: Hash, data: BufferSource): Promise<ArrayBuffer>;
  importKey(format: "jwk", key: JsonWebKey, algorithm: KeyAlgorithm, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  importKey(format: "raw" | "spki" | "pkcs8", key: BufferSource, algorithm: KeyAlgorithm, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  exportKey(format: "jwk", key: CryptoKey): Promise<JsonWebKey>;
  exportKey(format: "raw" | "spki" | "pkcs8", key: CryptoKey): Promise<ArrayBuffer>;
  generateKey(algorithm: { name: "HMAC"; hash: Hash; length?: number } | { name: "AES-GCM"; length: 128 | 192 | 256 }, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  /** A pair of RSA has 2048 to 4096 bits and the exponent 65537. It takes long, and waits for its turn. */
  generateKey(
    algorithm:
      | "Ed25519" | { name: "Ed25519" }
      | { name: "ECDSA"; namedCurve: NamedCurve }
      | { name: "RSA-PSS" | "RSASSA-PKCS1-v1_5"; hash: Hash; modulusLength: number; publicExponent: Uint8Array },
    extractable: boolean,
    usages: Iterable<KeyUsage>,
  ): Promise<CryptoKeyPair>;
  sign(algorithm: SignAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  verify(algorithm: SignAlgorithm, key: CryptoKey, signature: BufferSource, data: BufferSource): Promise<boolean>;
  encrypt(algorithm: CipherAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  decrypt(algorithm: CipherAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  /** The length is in bits, a multiple of 8. */
  deriveBits(algorithm: DeriveAlgorithm, key: CryptoKey, length: number): Promise<ArrayBuffer>;
  deriveKey(algorithm: DeriveAlgorithm, key: CryptoKey, derived: SecretAlgorithm, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  wrapKey(format: KeyFormat, key: CryptoKey, wrappingKey: CryptoKey, algorithm: CipherAlgorithm): Promise<ArrayBuffer>;
  unwrapKey(
    format: KeyFormat,
    wrapped: BufferSource,
    unwrappingKey: CryptoKey,
    algorithm: CipherAlgorithm,
    keyAlgorithm: KeyAlgorithm,
    extractable: boolean,
    usages: Iterable<KeyUsage>,
  ): Promise<CryptoKey>;
}

/** Randomness, new in every request, and the Web Cryptography API. */
declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
  readonly subtle: SubtleCrypto;
};

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  /** Several of one name are joined with ", ". */
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(does: (value: string, name: string, headers: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** A body of which all bytes are there: it gives them in one piece. */
interface ReadableStream<R = any> {
  readonly locked: boolean;
  getReader(): {
    readonly closed: Promise<void>;
    read(): Promise<{ done: false; value: R } | { done: true; value: undefined }>;
    releaseLock(): void;
    cancel(): Promise<void>;
  };
  cancel(): Promise<void>;
  [Symbol.asyncIterator](): AsyncIterableIterator<R>;
}

declare class Blob {
  constructor(parts?: Iterable<string | ArrayBuffer | ArrayBufferView | Blob>, options?: { type?: string });
  readonly size: number;
  readonly type: string;
  slice(start?: number, end?: number, type?: string): Blob;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  stream(): ReadableStream<Uint8Array>;
}

declare class File extends Blob {
  constructor(parts: Iterable<string | ArrayBuffer | ArrayBufferView | Blob>, name: string, options?: { type?: string; lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
}

type FormDataEntryValue = string | File;

declare class FormData {
  append(name: string, value: string | Blob, filename?: string): void;
  set(name: string, value: string | Blob, filename?: string): void;
  delete(name: string): void;
  get(name: string): FormDataEntryValue | null;
  getAll(name: string): FormDataEntryValue[];
  has(name: string): boolean;
  forEach(does: (value: FormDataEntryValue, name: string, form: FormData) => void): void;
  entries(): IterableIterator<[string, FormDataEntryValue]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<FormDataEntryValue>;
  [Symbol.iterator](): IterableIterator<[string, FormDataEntryValue]>;
}

type BodyInit = string | ArrayBuffer | ArrayBufferView | Blob | FormData | URLSearchParams | ReadableStream;
type HeadersInit = Headers | Iterable<[string, string]> | Record<string, string>;

interface Body {
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  /** The body as a form: `multipart/form-data` or `application/x-www-form-urlencoded`, as its content type says. */
  formData(): Promise<FormData>;
}

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: "follow" | "manual" | "error";
  signal?: AbortSignal | null;
}

interface Request extends Body {}
declare class Request {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: "follow" | "manual" | "error";
  readonly signal: AbortSignal;
  clone(): Request;
}

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

interface Response extends Body {}
declare class Response {
  constructor(body?: BodyInit | null, init?: ResponseInit);
  static json(data: unknown, init?: ResponseInit): Response;
  static redirect(url: string | URL, status?: 301 | 302 | 303 | 307 | 308): Response;
  static error(): Response;
  /** After fetch: of the answer, after the redirects that were followed; otherwise empty. */
  readonly url: string;
  /** A redirect was followed. */
  readonly redirected: boolean;
  readonly status: number;
  readonly statusText: string;
  /** The status is 200 to 299. */
  readonly ok: boolean;
  readonly headers: Headers;
  readonly type: string;
  clone(): Response;
}

/** What fetch gives. */
type FetchResponse = Response;

/** Says that something is not waited for any more. */
declare class AbortSignal {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: { type: "abort"; target: AbortSignal }) => unknown) | null;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: (event: { type: "abort"; target: AbortSignal }) => unknown): void;
  removeEventListener(type: "abort", listener: (event: { type: "abort"; target: AbortSignal }) => unknown): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

/**
 * Sends a request to an origin that the schema declares with `outbound`, and gives the
 * answer when it has come whole, whatever its status. Several go on side by side. One
 * that fails rejects with a HostError of the code `denied`, `unavailable`, `deadline`
 * or `too_large`. A handler that has sent one is not run again on a conflict: write
 * first, and call out last. `timeout` is in seconds, 10 without one. `publicOnly` requires a public
 * host that the schema does not list: set it for URLs that clients send. With a `signal`
 * that is aborted it rejects with the signal's reason; the request itself goes on, until
 * its time or the handler's is over. Other members of `init` are a TypeError.
 */
declare function fetch(
  input: string | URL | Request,
  init?: RequestInit & { timeout?: number; publicOnly?: boolean },
): Promise<Response>;
