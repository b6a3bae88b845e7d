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
  dirxml(...values: unknown[]): void;
  /** Does nothing. */
  clear(): void;
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
  /** The label of any encoding of the Encoding Standard, such as utf-8, latin1 or shift_jis. */
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  /** With `stream`, a character that the input only begins is left for the next call. */
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

/** An ArrayBuffer, a stream or a port in transfer is moved: the original cannot be used any more. */
declare function structuredClone<T>(value: T, options?: { transfer?: Transferable[] }): T;
type Transferable = ArrayBuffer | MessagePort | ReadableStream | WritableStream | TransformStream;
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
/** Times in milliseconds since the request first read this clock. */
declare class Performance extends EventTarget {
  private constructor();
  now(): number;
  readonly timeOrigin: number;
  toJSON(): any;
  mark(name: string, options?: { detail?: unknown; startTime?: number }): PerformanceMark;
  measure(name: string, start?: string | { detail?: unknown; start?: string | number; end?: string | number; duration?: number } | null, end?: string): PerformanceMeasure;
  clearMarks(name?: string): void;
  clearMeasures(name?: string): void;
  getEntries(): PerformanceEntry[];
  getEntriesByType(type: string): PerformanceEntry[];
  getEntriesByName(name: string, type?: string): PerformanceEntry[];
}
declare const performance: Performance;

declare class PerformanceEntry {
  protected constructor();
  readonly id: number;
  readonly name: string;
  readonly entryType: string;
  readonly startTime: number;
  readonly duration: number;
  readonly navigationId: number;
  toJSON(): any;
}

declare class PerformanceMark extends PerformanceEntry {
  constructor(name: string, options?: { detail?: unknown; startTime?: number });
  readonly detail: any;
}

declare class PerformanceMeasure extends PerformanceEntry {
  private constructor();
  readonly detail: any;
}

declare class PerformanceObserverEntryList {
  private constructor();
  getEntries(): PerformanceEntry[];
  getEntriesByType(type: string): PerformanceEntry[];
  getEntriesByName(name: string, type?: string): PerformanceEntry[];
}

declare class PerformanceObserver {
  constructor(callback: (entries: PerformanceObserverEntryList, observer: PerformanceObserver, options: { droppedEntriesCount: number }) => unknown);
  static readonly supportedEntryTypes: readonly string[];
  observe(options?: { entryTypes?: Iterable<string> } | { type?: string; buffered?: boolean }): void;
  disconnect(): void;
  takeRecords(): PerformanceEntry[];
}

declare class Navigator {
  private constructor();
  readonly userAgent: string;
}
declare const navigator: Navigator;

interface EventInit {
  bubbles?: boolean;
  cancelable?: boolean;
  composed?: boolean;
}
type EventListener = ((event: any) => unknown) | { handleEvent(event: any): unknown };
type EventHandler<E = Event> = ((event: E) => unknown) | null;
interface EventListenerOptions {
  capture?: boolean;
}
interface AddEventListenerOptions extends EventListenerOptions {
  once?: boolean;
  passive?: boolean;
  signal?: AbortSignal;
}

/** Only the target of an event gets it: targets have no parents. */
declare class Event {
  constructor(type: string, init?: EventInit);
  static readonly NONE: 0;
  static readonly CAPTURING_PHASE: 1;
  static readonly AT_TARGET: 2;
  static readonly BUBBLING_PHASE: 3;
  readonly type: string;
  readonly target: EventTarget | null;
  /** @deprecated */
  readonly srcElement: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly defaultPrevented: boolean;
  readonly eventPhase: number;
  readonly isTrusted: boolean;
  readonly timeStamp: number;
  /** @deprecated */
  cancelBubble: boolean;
  /** @deprecated */
  returnValue: boolean;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
  /** @deprecated */
  initEvent(type: string, bubbles?: boolean, cancelable?: boolean): void;
}

declare class CustomEvent<T = any> extends Event {
  constructor(type: string, init?: EventInit & { detail?: T });
  readonly detail: T;
  /** @deprecated */
  initCustomEvent(type: string, bubbles?: boolean, cancelable?: boolean, detail?: T): void;
}

declare class EventTarget {
  addEventListener(type: string, listener: EventListener | null, options?: boolean | AddEventListenerOptions): void;
  removeEventListener(type: string, listener: EventListener | null, options?: boolean | EventListenerOptions): void;
  /** A listener that throws is logged, and the others run. */
  dispatchEvent(event: Event): boolean;
}

/** globalThis is a target of "error", "unhandledrejection" and of your own events. A listener that calls preventDefault marks an error as handled. */
declare function addEventListener(type: "error", listener: (event: ErrorEvent) => unknown, options?: boolean | AddEventListenerOptions): void;
declare function addEventListener(type: "unhandledrejection", listener: (event: PromiseRejectionEvent) => unknown, options?: boolean | AddEventListenerOptions): void;
declare function addEventListener(type: string, listener: EventListener | null, options?: boolean | AddEventListenerOptions): void;
declare function removeEventListener(type: string, listener: EventListener | null, options?: boolean | EventListenerOptions): void;
declare function dispatchEvent(event: Event): boolean;
/** Tells the listeners of "error", and logs the error if none of them prevents it. */
declare function reportError(error: unknown): void;
declare var onerror: ((message: string, filename: string, lineno: number, colno: number, error: unknown) => unknown) | null;
declare var onunhandledrejection: EventHandler<PromiseRejectionEvent>;

declare class ErrorEvent extends Event {
  constructor(type: string, init?: EventInit & { message?: string; filename?: string; lineno?: number; colno?: number; error?: unknown });
  readonly message: string;
  readonly filename: string;
  readonly lineno: number;
  readonly colno: number;
  readonly error: any;
}

declare class PromiseRejectionEvent extends Event {
  constructor(type: string, init: EventInit & { promise: Promise<any>; reason?: unknown });
  readonly promise: Promise<any>;
  readonly reason: any;
}

declare class MessageEvent<T = any> extends Event {
  constructor(type: string, init?: EventInit & { data?: T; origin?: string; lastEventId?: string; source?: MessagePort | null; ports?: MessagePort[] });
  readonly data: T;
  readonly origin: string;
  readonly lastEventId: string;
  readonly source: MessagePort | null;
  readonly ports: readonly MessagePort[];
  /** @deprecated */
  initMessageEvent(type: string, bubbles?: boolean, cancelable?: boolean, data?: T, origin?: string, lastEventId?: string, source?: MessagePort | null, ports?: MessagePort[]): void;
}

declare class MessagePort extends EventTarget {
  private constructor();
  onmessage: EventHandler<MessageEvent>;
  onmessageerror: EventHandler<MessageEvent>;
  onclose: EventHandler;
  postMessage(data: unknown, options?: { transfer?: Transferable[] } | Transferable[]): void;
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
  /** The legacy number of the name; 0 if it has none. */
  readonly code: number;
  static readonly INDEX_SIZE_ERR: 1;
  static readonly DOMSTRING_SIZE_ERR: 2;
  static readonly HIERARCHY_REQUEST_ERR: 3;
  static readonly WRONG_DOCUMENT_ERR: 4;
  static readonly INVALID_CHARACTER_ERR: 5;
  static readonly NO_DATA_ALLOWED_ERR: 6;
  static readonly NO_MODIFICATION_ALLOWED_ERR: 7;
  static readonly NOT_FOUND_ERR: 8;
  static readonly NOT_SUPPORTED_ERR: 9;
  static readonly INUSE_ATTRIBUTE_ERR: 10;
  static readonly INVALID_STATE_ERR: 11;
  static readonly SYNTAX_ERR: 12;
  static readonly INVALID_MODIFICATION_ERR: 13;
  static readonly NAMESPACE_ERR: 14;
  static readonly INVALID_ACCESS_ERR: 15;
  static readonly VALIDATION_ERR: 16;
  static readonly TYPE_MISMATCH_ERR: 17;
  static readonly SECURITY_ERR: 18;
  static readonly NETWORK_ERR: 19;
  static readonly ABORT_ERR: 20;
  static readonly URL_MISMATCH_ERR: 21;
  static readonly QUOTA_EXCEEDED_ERR: 22;
  static readonly TIMEOUT_ERR: 23;
  static readonly INVALID_NODE_TYPE_ERR: 24;
  static readonly DATA_CLONE_ERR: 25;
}

declare class QuotaExceededError extends DOMException {
  constructor(message?: string, options?: { quota?: number; requested?: number });
  readonly quota: number | null;
  readonly requested: number | null;
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
type AesName = "AES-CBC" | "AES-CTR" | "AES-GCM" | "AES-KW";
type RsaName = "RSA-OAEP" | "RSA-PSS" | "RSASSA-PKCS1-v1_5";
type SignAlgorithm =
  | "HMAC" | "Ed25519" | "RSASSA-PKCS1-v1_5"
  | { name: "HMAC" | "Ed25519" | "RSASSA-PKCS1-v1_5" }
  | { name: "ECDSA"; hash: Hash }
  | { name: "RSA-PSS"; saltLength: number };
type CipherAlgorithm =
  | "RSA-OAEP" | { name: "RSA-OAEP"; label?: BufferSource }
  | { name: "AES-CBC"; iv: BufferSource }
  /** `length` is the length of the counter in the block, in bits. */
  | { name: "AES-CTR"; counter: BufferSource; length: number }
  | { name: "AES-GCM"; iv: BufferSource; additionalData?: BufferSource; tagLength?: number };
type WrapAlgorithm = CipherAlgorithm | "AES-KW" | { name: "AES-KW" };
type DeriveAlgorithm =
  | { name: "PBKDF2"; hash: Hash; salt: BufferSource; iterations: number }
  | { name: "HKDF"; hash: Hash; salt: BufferSource; info: BufferSource }
  | { name: "ECDH" | "X25519"; public: CryptoKey };
type SecretAlgorithm = { name: "HMAC"; hash: Hash; length?: number } | { name: AesName; length?: number } | AesName;
type DeriverAlgorithm = "PBKDF2" | "HKDF" | { name: "PBKDF2" | "HKDF" };
type PairAlgorithm = "Ed25519" | "X25519" | { name: "Ed25519" | "X25519" } | { name: "ECDSA" | "ECDH"; namedCurve: NamedCurve };
type KeyAlgorithm = SecretAlgorithm | DeriverAlgorithm | PairAlgorithm | { name: RsaName; hash: Hash };

/**
 * The Web Cryptography API, computed by the host. Errors have the names of the standard:
 * NotSupportedError, SyntaxError, InvalidAccessError, DataError, OperationError.
 */
declare class SubtleCrypto {
  private constructor();
  digest(algorithm: Hash, data: BufferSource): Promise<ArrayBuffer>;
  importKey(format: "jwk", key: JsonWebKey, algorithm: KeyAlgorithm, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  importKey(format: "raw" | "spki" | "pkcs8", key: BufferSource, algorithm: KeyAlgorithm, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  exportKey(format: "jwk", key: CryptoKey): Promise<JsonWebKey>;
  exportKey(format: "raw" | "spki" | "pkcs8", key: CryptoKey): Promise<ArrayBuffer>;
  exportKey(format: KeyFormat, key: CryptoKey): Promise<ArrayBuffer | JsonWebKey>;
  generateKey(algorithm: { name: "HMAC"; hash: Hash; length?: number } | { name: AesName; length: 128 | 192 | 256 }, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  /** A pair of RSA has 2048 to 4096 bits and the exponent 65537. It takes long, and waits for its turn. */
  generateKey(
    algorithm: PairAlgorithm | { name: RsaName; hash: Hash; modulusLength: number; publicExponent: Uint8Array },
    extractable: boolean,
    usages: Iterable<KeyUsage>,
  ): Promise<CryptoKeyPair>;
  sign(algorithm: SignAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  verify(algorithm: SignAlgorithm, key: CryptoKey, signature: BufferSource, data: BufferSource): Promise<boolean>;
  encrypt(algorithm: CipherAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  decrypt(algorithm: CipherAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  /** `length` is in bits. With PBKDF2 and HKDF it must be a multiple of 8; with ECDH and X25519, null returns all bits. */
  deriveBits(algorithm: DeriveAlgorithm, key: CryptoKey, length?: number | null): Promise<ArrayBuffer>;
  deriveKey(algorithm: DeriveAlgorithm, key: CryptoKey, derived: SecretAlgorithm | DeriverAlgorithm, extractable: boolean, usages: Iterable<KeyUsage>): Promise<CryptoKey>;
  wrapKey(format: KeyFormat, key: CryptoKey, wrappingKey: CryptoKey, algorithm: WrapAlgorithm): Promise<ArrayBuffer>;
  unwrapKey(
    format: KeyFormat,
    wrapped: BufferSource,
    unwrappingKey: CryptoKey,
    algorithm: WrapAlgorithm,
    keyAlgorithm: KeyAlgorithm,
    extractable: boolean,
    usages: Iterable<KeyUsage>,
  ): Promise<CryptoKey>;
}

/** Randomness, new in every request, and the Web Cryptography API. */
declare class Crypto {
  private constructor();
  /** Fills a typed array of integers, at most 65536 bytes. */
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  readonly subtle: SubtleCrypto;
}

declare var crypto: Crypto;

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  /** Several of one name are joined with ", ". */
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(does: (value: string, name: string, headers: Headers) => void, self?: unknown): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

interface QueuingStrategy<T = any> {
  highWaterMark?: number;
  size?: (chunk: T) => number;
}

declare class ByteLengthQueuingStrategy implements QueuingStrategy<ArrayBufferView> {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk: ArrayBufferView) => number;
}

declare class CountQueuingStrategy implements QueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk: any) => 1;
}

type ReadableStreamReadResult<T> = { done: false; value: T } | { done: true; value: T | undefined };

interface UnderlyingDefaultSource<R = any> {
  type?: undefined;
  start?: (controller: ReadableStreamDefaultController<R>) => unknown;
  pull?: (controller: ReadableStreamDefaultController<R>) => void | PromiseLike<void>;
  cancel?: (reason?: any) => void | PromiseLike<void>;
}

interface UnderlyingByteSource {
  type: "bytes";
  autoAllocateChunkSize?: number;
  start?: (controller: ReadableByteStreamController) => unknown;
  pull?: (controller: ReadableByteStreamController) => void | PromiseLike<void>;
  cancel?: (reason?: any) => void | PromiseLike<void>;
}

interface StreamPipeOptions {
  preventAbort?: boolean;
  preventCancel?: boolean;
  preventClose?: boolean;
  signal?: AbortSignal;
}

interface ReadableWritablePair<R = any, W = any> {
  readable: ReadableStream<R>;
  writable: WritableStream<W>;
}

/** A stream of the Streams Standard. With type "bytes", a reader can fill a buffer of yours: getReader({ mode: "byob" }). */
declare class ReadableStream<R = any> {
  constructor(source: UnderlyingByteSource, strategy?: { highWaterMark?: number });
  constructor(source?: UnderlyingDefaultSource<R>, strategy?: QueuingStrategy<R>);
  static from<T>(iterable: Iterable<T | PromiseLike<T>> | AsyncIterable<T>): ReadableStream<T>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(options: { mode: "byob" }): ReadableStreamBYOBReader;
  getReader(options?: { mode?: undefined }): ReadableStreamDefaultReader<R>;
  pipeThrough<T>(transform: { readable: ReadableStream<T>; writable: WritableStream<R> }, options?: StreamPipeOptions): ReadableStream<T>;
  pipeTo(destination: WritableStream<R>, options?: StreamPipeOptions): Promise<void>;
  tee(): [ReadableStream<R>, ReadableStream<R>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<R>;
  [Symbol.asyncIterator](options?: { preventCancel?: boolean }): AsyncIterableIterator<R>;
}

declare class ReadableStreamDefaultReader<R = any> {
  constructor(stream: ReadableStream<R>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read(): Promise<ReadableStreamReadResult<R>>;
  releaseLock(): void;
}

declare class ReadableStreamBYOBReader {
  constructor(stream: ReadableStream<Uint8Array>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  /** The view's buffer is transferred: use the view of the result. */
  read<T extends ArrayBufferView>(view: T, options?: { min?: number }): Promise<ReadableStreamReadResult<T>>;
  releaseLock(): void;
}

declare class ReadableStreamDefaultController<R = any> {
  private constructor();
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk?: R): void;
  error(error?: any): void;
}

declare class ReadableByteStreamController {
  private constructor();
  readonly byobRequest: ReadableStreamBYOBRequest | null;
  readonly desiredSize: number | null;
  close(): void;
  /** The chunk's buffer is transferred. */
  enqueue(chunk: ArrayBufferView): void;
  error(error?: any): void;
}

declare class ReadableStreamBYOBRequest {
  private constructor();
  readonly view: Uint8Array | null;
  respond(bytesWritten: number): void;
  respondWithNewView(view: ArrayBufferView): void;
}

interface UnderlyingSink<W = any> {
  type?: undefined;
  start?: (controller: WritableStreamDefaultController) => unknown;
  write?: (chunk: W, controller: WritableStreamDefaultController) => void | PromiseLike<void>;
  close?: () => void | PromiseLike<void>;
  abort?: (reason?: any) => void | PromiseLike<void>;
}

declare class WritableStream<W = any> {
  constructor(sink?: UnderlyingSink<W>, strategy?: QueuingStrategy<W>);
  readonly locked: boolean;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  getWriter(): WritableStreamDefaultWriter<W>;
}

declare class WritableStreamDefaultWriter<W = any> {
  constructor(stream: WritableStream<W>);
  readonly closed: Promise<void>;
  readonly desiredSize: number | null;
  readonly ready: Promise<void>;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  releaseLock(): void;
  write(chunk?: W): Promise<void>;
}

declare class WritableStreamDefaultController {
  private constructor();
  readonly signal: AbortSignal;
  error(error?: any): void;
}

interface Transformer<I = any, O = any> {
  readableType?: undefined;
  writableType?: undefined;
  start?: (controller: TransformStreamDefaultController<O>) => unknown;
  transform?: (chunk: I, controller: TransformStreamDefaultController<O>) => void | PromiseLike<void>;
  flush?: (controller: TransformStreamDefaultController<O>) => void | PromiseLike<void>;
  cancel?: (reason?: any) => void | PromiseLike<void>;
}

declare class TransformStream<I = any, O = any> {
  constructor(transformer?: Transformer<I, O>, writableStrategy?: QueuingStrategy<I>, readableStrategy?: QueuingStrategy<O>);
  readonly readable: ReadableStream<O>;
  readonly writable: WritableStream<I>;
}

declare class TransformStreamDefaultController<O = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk?: O): void;
  error(reason?: any): void;
  terminate(): void;
}

interface URLPatternInit {
  protocol?: string;
  username?: string;
  password?: string;
  hostname?: string;
  port?: string;
  pathname?: string;
  search?: string;
  hash?: string;
  baseURL?: string;
}

type URLPatternInput = string | URL | URLPatternInit;

interface URLPatternComponentResult {
  input: string;
  groups: Record<string, string | undefined>;
}

interface URLPatternResult {
  inputs: [input: string | URLPatternInit, baseURL?: string];
  protocol: URLPatternComponentResult;
  username: URLPatternComponentResult;
  password: URLPatternComponentResult;
  hostname: URLPatternComponentResult;
  port: URLPatternComponentResult;
  pathname: URLPatternComponentResult;
  search: URLPatternComponentResult;
  hash: URLPatternComponentResult;
}

declare class URLPattern {
  constructor(input: string, baseURL: string | URL, options?: { ignoreCase?: boolean });
  constructor(input?: URLPatternInput, options?: { ignoreCase?: boolean });
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly hostname: string;
  readonly port: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
  /** Whether a group has a regular expression of its own. */
  readonly hasRegExpGroups: boolean;
  test(input?: URLPatternInput, baseURL?: string | URL): boolean;
  exec(input?: URLPatternInput, baseURL?: string | URL): URLPatternResult | null;
}

type CompressionFormat = "brotli" | "deflate" | "deflate-raw" | "gzip";

declare class CompressionStream {
  constructor(format: CompressionFormat);
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
}

declare class DecompressionStream {
  constructor(format: CompressionFormat);
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
}

declare class TextEncoderStream {
  readonly encoding: "utf-8";
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<string>;
}

declare class TextDecoderStream {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
}

type BlobPart = string | ArrayBuffer | ArrayBufferView | Blob;

interface BlobPropertyBag {
  type?: string;
  /** `native` replaces each line end in strings by "\n". */
  endings?: "transparent" | "native";
}

declare class Blob {
  constructor(parts?: Iterable<BlobPart>, options?: BlobPropertyBag);
  readonly size: number;
  readonly type: string;
  slice(start?: number, end?: number, type?: string): Blob;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  stream(): ReadableStream<Uint8Array>;
}

declare class File extends Blob {
  constructor(parts: Iterable<BlobPart>, name: string, options?: BlobPropertyBag & { lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
}

type FormDataEntryValue = string | File;

declare class FormData {
  constructor();
  append(name: string, value: string | Blob): void;
  append(name: string, value: Blob, filename?: string): void;
  set(name: string, value: string | Blob): void;
  set(name: string, value: Blob, filename?: string): void;
  delete(name: string): void;
  get(name: string): FormDataEntryValue | null;
  getAll(name: string): FormDataEntryValue[];
  has(name: string): boolean;
  forEach(does: (value: FormDataEntryValue, name: string, form: FormData) => void, self?: unknown): void;
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

type RequestMode = "cors" | "navigate" | "no-cors" | "same-origin";
type RequestCredentials = "include" | "omit" | "same-origin";
type RequestCache = "default" | "force-cache" | "no-cache" | "no-store" | "only-if-cached" | "reload";
type RequestRedirect = "error" | "follow" | "manual";
type ReferrerPolicy =
  | "" | "no-referrer" | "no-referrer-when-downgrade" | "origin" | "origin-when-cross-origin" | "same-origin" | "strict-origin"
  | "strict-origin-when-cross-origin" | "unsafe-url";

/** Only `method`, `headers`, `body`, `redirect` and `signal` change what `fetch` does. The others are checked and kept. */
interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: RequestRedirect;
  signal?: AbortSignal | null;
  /** Required if the body is a ReadableStream. */
  duplex?: "half";
  cache?: RequestCache;
  credentials?: RequestCredentials;
  integrity?: string;
  keepalive?: boolean;
  mode?: RequestMode;
  priority?: "auto" | "high" | "low";
  referrer?: string;
  referrerPolicy?: ReferrerPolicy;
  window?: null;
}

interface Request extends Body {}
declare class Request {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: RequestRedirect;
  readonly signal: AbortSignal;
  readonly cache: RequestCache;
  readonly credentials: RequestCredentials;
  readonly destination: "";
  readonly duplex: "half";
  readonly integrity: string;
  readonly isHistoryNavigation: false;
  readonly isReloadNavigation: false;
  readonly keepalive: boolean;
  readonly mode: RequestMode;
  readonly referrer: string;
  readonly referrerPolicy: ReferrerPolicy;
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
  readonly type: "basic" | "default" | "error";
  clone(): Response;
}

/** What fetch gives. */
type FetchResponse = Response;

/** Says that something is not waited for any more. */
declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: EventHandler;
  throwIfAborted(): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

/**
 * Sends a request to an origin that the schema declares with `outbound`, and gives the
 * answer when it has come whole, whatever its status. Several go on side by side. One
 * that fails rejects with a TypeError whose `code` is `denied`, `unavailable`, `deadline`
 * or `too_large`; it counts as a HostError too. A URL with `data:` needs no host. A handler that has sent one is not run again on a conflict: write
 * first, and call out last. `timeout` is in seconds, 10 without one. `publicOnly` requires a public
 * host that the schema does not list: set it for URLs that clients send. With a `signal`
 * that is aborted it rejects with the signal's reason; the request itself goes on, until
 * its time or the handler's is over.
 */
declare function fetch(
  input: string | URL | Request,
  init?: RequestInit & { timeout?: number; publicOnly?: boolean },
): Promise<Response>;
