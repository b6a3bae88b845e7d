// The way down: the host's functions, and what an operation is.

import { misplaced, noJSON, plain } from "./plain.ts";

/** What the build and the runtime script hand to the SDK. */
export interface Runner {
  HostError: new (code: string, message?: string, op?: string, entity?: string, field?: string) => Error & {
    readonly code: string;
    readonly op?: string;
    readonly entity?: string;
    readonly field?: string;
  };
  /** A fetch that got no answer. */
  NetworkError: new (error: HostError) => HostError;
  /** The functions of the guest ABI; one that writes gives what it wrote, a negative number is an errno. */
  host: Host;
  /** The names of the errnos, by number. */
  errnos: Record<string, string>;
  /** The source map of the handlers' script; each line of the mappings counts from 0. */
  sources: string[];
  mappings: string;
  /** The expressions that are called, constructed or iterated in that script: see callSites in develop/toolchain/typescript/callsites.go. */
  calls: string;
  /** The names in the source of names that the bundler has changed, by the changed name. */
  renamed: Record<string, string>;
  /** There is a request. */
  live: boolean;
  /** The first thing that was done while there was none, and needs one. */
  violation: Error | null;
  /** What was drawn or read from the clock while there was none, and is the same in every request: an error with its place for each, set by freeze. */
  frozen: Error[];
  freeze(what: string): void;
  demand(what: string): void;
  /** Called when a promise without a handler is rejected (handled 0), and when it gets a handler later (1). */
  rejected(promise: object, reason: unknown, handled: number): void;
  /** The reasons of rejected promises without a handler. */
  lost(): unknown[];
  /** How many those are. */
  unseen: number;
  /** Describes an error in one line, with the places in the handlers' own files. */
  trace(error: unknown): string;
  /** Returns the text of a report: lines with the kind, with the error or another message, and with each frame: those of the error, or others. */
  report(kind: string, error: unknown, message?: string, frames?: string[]): string;
  /** Reports an uncaught error that does not fail the handler. */
  uncaught(error: unknown, kind?: string): void;
  /** Returns the stack of an error as the engine has written it. */
  raw(error: unknown): unknown;
  /** Returns the frames of such a stack that have a place in the app's files. */
  located(stack: unknown): string[];
  /** Returns the line of a stack for a call site that prepareStackTrace gets, in few steps. */
  line(site: object): string;
  /** Replaces the frames of an error by those of a stack. */
  moved(error: object, stack: unknown): void;
  /** How many milliseconds there are until the next timer; undefined without one. */
  pause(): number | undefined;
  /** Runs the next timer, if it is time. */
  wake(): void;
  /** How many timers of the handler run, and the first of them, as an error with its place. */
  timers: number;
  timer(): Error | undefined;
  /** What the handler waits for, as an error with its place. */
  waiting(): Error | undefined;
  /** How many timers run and operations are under way. */
  busy(): number;
  /** The rejected promises without a handler, and their reasons. */
  rejections: Map<object, unknown>;
  /** Set by web/errors.ts. handled tells listeners of an uncaught error, and returns whether one has handled it; notify tells them of rejections, and returns whether there were some. */
  handled?: (error: unknown) => boolean;
  notify?: () => boolean;
  /** Runs a function when the jobs are done and that many milliseconds have passed. If the handler answers before, it is discarded. */
  later(name: string, does: () => unknown, after: number): void;
  /** Dispatches a trusted event to a target, or to the global; returns false if it was canceled. */
  fire(target: object, event: object): boolean;
  /** The function of an event handler attribute such as onmessage, and how it is set. */
  handlerOf(target: object, type: string): ((event: any) => unknown) | null;
  setHandler(target: object, type: string, does: unknown): void;
  /** The prototypes of interfaces: see expose in web/define.ts. */
  interfaces: Set<object>;
  /** The lengths of functions by their paths, where they are not what define.ts finds. */
  lengths: Record<string, number>;
  /** Copies a value (structuredClone), and transfers objects: gives the copy, and what was received for each of them. */
  clone(value: unknown, transfer: Iterable<object>): [copy: any, received: object[]];
  /**
   * How objects of interfaces are cloned. A class with [Serializable] adds a function that copies its objects, and
   * returns undefined for all others. It copies the values in them with clone.
   */
  clones: ((value: object, clone: (value: any) => any) => object | undefined)[];
  /**
   * How objects are transferred. A class with [Transferable] adds a function. It returns undefined for other objects
   * and for those that cannot be transferred now, else a new object, and a function that moves the state to it. This
   * is called after all other values were cloned, and may throw a DataCloneError.
   */
  transfers: ((value: object) => { receiver: object; move(): void } | undefined)[];
  /** Discards timers, the results of operations that are under way, and rejected promises. */
  abandon(): void;
  /** Called when nothing but these can go on; true says that it has found something to do. */
  idle?: () => boolean;
  /** The body of a Response of the Fetch Standard, once. */
  take(response: object): string | Uint8Array | { base64: string };
  /** The headers of a Response of the Fetch Standard, in order. */
  headers(response: object): readonly (readonly [name: string, value: string])[];
  /** Reads the stream of its body to the end, for take; undefined if there is nothing to wait for. */
  gather(response: object): Promise<void> | undefined;
  /** The stream of its body; undefined if the body is there as a whole. */
  stream(response: object): ReadableStream | undefined;
  /** The Request of the Fetch Standard that a client has sent. Its URL and headers are not parsed. The function returns its whole body, which the Request owns. */
  received(url: string, method: string, headers: [name: string, value: string][], whole: (() => Uint8Array) | null): object;
  /** The body of the request that a client has sent, as it comes. */
  incoming(): ReadableStream<Uint8Array>;
  /** Begins an operation that goes on beside the handler. */
  begin(op: string, args: unknown): Promise<any>;
  /** Waits until one of those is done, or so many milliseconds; false says that none is under way. */
  await(pause: number | undefined): boolean;
  /** Set by serve: what is never used, but there; the rest is for the build. */
  kept: unknown[];
  names: string;
  defaults: string;
  dispatch(handler: number): number;
  finish(): number;
  /** Called with the error that a job of the engine has thrown. */
  threw(error: unknown): void;
  /** Called when the run is over, before the engine throws an error that cannot be caught. */
  interrupted(): void;
  /** Logs where the run was when it was stopped. */
  stopped(): void;
  seal(): void;
  /** Set by node/async_hooks.ts: the object with the state of AsyncLocalStorage. */
  flow?: object;
  /** Set by the script collation.ts: the class of Intl. */
  Collator?: unknown;
}

export interface Host {
  request_method(): string;
  request_path(): string;
  request_pairs(kind: number): string[] | number;
  request_body(offset: number): string | number;
  request_body_bytes(offset: number): Uint8Array | number;
  /** The next bytes of the body, for which it waits; none at the end. */
  request_read(): Uint8Array | number;
  /** The body, parsed as JSON, or an errno; undefined: that must be tried with its text. */
  request_body_value(offset: number): unknown;
  context(): string | number;
  response_header(name: string, value: string | Uint8Array): number;
  response_send(status: number, body: string | Uint8Array): number;
  /** A list or an object is sent as JSON; undefined: it must be made text first. */
  response_send(status: number, body: object): number | undefined;
  response_error(status: number, code: string, message: string): number;
  response_send_result(status: number, part: number): number;
  call(op: string, args: string): number;
  /** Arguments are passed as JSON; undefined: they must be made text first, as something in them has perhaps no form in JSON. */
  call(op: string, args: unknown): number | undefined;
  call_result(offset: number): string | number;
  /** The result, parsed as JSON, or an errno; undefined: that must be tried with its text. */
  call_result_value(offset: number): unknown;
  call_start(op: string, args: string): number;
  call_wait(): number;
  call_take(ticket: number): number;
  keep_writes(): void;
  log(level: number, text: string): void;
  random(count: number): Uint8Array;
  encode(text: string): Uint8Array;
  decode(bytes: Uint8Array): string;
  /** Returns 1 if memory was refused in this request, else 0. */
  exhausted(): number;
  /** How many levels deep a text of JSON nests. */
  nesting(text: string): number;
  /** Has a promise call one of the functions once it is settled; none of them may throw. */
  react(promise: object, done: (value: unknown) => void, failed: (reason: unknown) => void): void;
  /** Whether a function is one that the engine makes to resolve a promise, as for await. */
  resolves(done: unknown): number;
}

export const runner = (globalThis as unknown as { __runner: Runner }).__runner;

const isOf = Function.prototype[Symbol.hasInstance];

/** A failed host call. Both scripts have this file, and one class. */
export const HostError: Runner["HostError"] = (runner.HostError ??= class HostError extends Error {
  readonly code: string;
  declare readonly op?: string;
  declare readonly entity?: string;
  declare readonly field?: string;
  static [Symbol.hasInstance](value: unknown): boolean {
    return isOf.call(this, value) || (this === HostError && isOf.call(NetworkError, value));
  }
  constructor(code: string, message = "", op?: string, entity?: string, field?: string) {
    super(message);
    this.name = "HostError";
    this.code = code;
    if (op !== undefined) this.op = op;
    if (entity !== undefined) this.entity = entity;
    if (field !== undefined) this.field = field;
  }
});
export type HostError = InstanceType<typeof HostError>;

/** A fetch that got no answer: a TypeError, as the Fetch Standard has it, which counts as a HostError too. */
export const NetworkError: Runner["NetworkError"] = (runner.NetworkError ??= class NetworkError extends TypeError {
  readonly code: string;
  readonly op: string;
  constructor({ code, message, op = "fetch" }: HostError) {
    super(message);
    this.code = code;
    this.op = op;
  }
});

export function errno(n: number): string {
  return runner.errnos[n] ?? "internal";
}

/** What a host function that is not an operation has refused. */
export function refusal(n: number): HostError {
  const code = errno(n);
  return new HostError(code, code === "limit" ? "the request has used its budget of host calls or of moved bytes" : "");
}

const { host } = runner;

/** An operation's arguments as JSON. A value that would become another one is an error that names it. */
export function written(op: string, args: unknown): string {
  return JSON.stringify(
    plain(args, (path, odd) => {
      throw new HostError("invalid", misplaced(op, args, path, odd), op);
    }),
  );
}

/** Runs an operation and leaves its result with the host. */
export function run(op: string, args: unknown): void {
  if (!runner.live) runner.demand(op);
  // With var, as each use of let and const is checked.
  var n = typeof args === "object" ? host.call(op, args) : undefined;
  n ??= host.call(op, written(op, args));
  if (n < 0) throw failure(n, op);
}

/** The error of an operation whose call, or the reading of its result, failed with n. */
export function failure(n: number, op?: string): HostError {
  const failure = host.call_result(0);
  if (typeof failure !== "string" || failure === "") return new HostError(errno(n), "", op);
  const { code, message, entity, field } = JSON.parse(failure);
  return new HostError(code, message, op, entity, field);
}

/**
 * Makes an error without a stack, in which there would be none of the handlers' files: it
 * gets one where it is thrown next, and that is where it is awaited.
 */
export function withoutPlace<E>(make: () => E): E {
  const made = Error as { prepareStackTrace?: unknown };
  const kept = made.prepareStackTrace;
  made.prepareStackTrace = () => undefined;
  try {
    return make();
  } finally {
    made.prepareStackTrace = kept;
  }
}

/** The error of an operation, so made. */
export const placeless = ({ code, message, op, entity, field }: HostError): HostError => withoutPlace(() => new HostError(code, message, op, entity, field));

/**
 * An error that code of the runtime has thrown in a job, for the promise that it rejects: the same without a place,
 * if it has none of the handlers' files.
 */
export function unplaced(error: unknown): unknown {
  if (!(error instanceof Error) || runner.located(runner.raw(error)).length > 0) return error;
  if (error instanceof HostError) return placeless(error);
  const { constructor: made, message, name, cause } = error;
  if (made === DOMException) return withoutPlace(() => new DOMException(message, name));
  if (made !== TypeError && made !== RangeError && made !== SyntaxError) return error;
  return withoutPlace(() => new (made as ErrorConstructor)(message, cause === undefined ? undefined : { cause }));
}

/** The result of the operation that was run last. */
export function result(): any {
  var value = host.call_result_value(0);
  if (typeof value === "number") throw failure(value); // a result is an object
  if (value !== undefined) return value;
  const text = host.call_result(0);
  if (typeof text === "number") throw failure(text);
  return JSON.parse(text);
}

/**
 * Objects for requests that the build makes: each request begins with them. A field of
 * theirs is set in far less time than a field is added to a new object.
 */
export function spares<T>(count: number, make: () => T): () => T {
  const all = Array.from({ length: count }, make);
  var used = 0;
  return () => (used < count ? all[used++] : make());
}

// The parts of a result that the host sends by itself.
export const All = 0;
export const Rows = 1;
export const Row = 2;

/** A change, which must be run. */
export interface Change {
  run: boolean;
  /** A description for messages. */
  readonly title: string;
  /** The change that was made before it. */
  readonly before: Change | undefined;
}

/** The last change that this request has made. The others are before it. */
export let latest: Change | undefined;

/** Adds a change to those that were made. */
export const begin = (change: Change): Change | undefined => {
  const before = latest;
  latest = change;
  return before;
};

/** Reports whether a change was run; shared by all steps that build it. */
export class Mark implements Change {
  // Set one by one: a class's fields are defined, which takes far longer.
  declare run: boolean;
  declare readonly before: Change | undefined;
  declare private readonly act: string;
  declare private readonly of: string;
  constructor(act: string, of = "") {
    this.run = false;
    this.before = begin(this);
    this.act = act;
    this.of = of;
  }
  get title(): string {
    return this.act + this.of;
  }
}

/** The changes that were never run, because they were never awaited. */
export function forgotten(): string[] {
  const all: string[] = [];
  for (let change = latest; change !== undefined; change = change.before) if (!change.run) all.unshift(change.title);
  return all;
}

/** Whether there are any. */
export function hasForgotten(): boolean {
  for (var change = latest; change !== undefined; change = change.before) if (!change.run) return true;
  return false;
}

/** Discards what operations made during the build have left: changes, and the time of the first one. */
export function forget(): void {
  latest = undefined;
  first = undefined;
}

/** The operation that ran last, for the log of a run that is stopped. */
export let last: Operation<unknown> | undefined;
let first: number | undefined; // when the first one was made

// How many milliseconds after the first operation the places of others are kept. Keeping one
// takes about a tenth of the time of an operation, and a run that is stopped has run for longer.
const placesAfter = 20;
// The monotonic clock: a live route whose handler reads the calendar's time runs again every second.
const passed: () => number = performance.now.bind(performance);

/** Keeps the place where the operation is made, for the log of a run that is stopped in it. */
export function placed<T extends Operation<unknown>>(operation: T): T {
  const now = passed();
  if (now - (first ??= now) > placesAfter) operation.at = new Error();
  return operation;
}

/** Notes that the operation runs. */
export function starts(operation: Operation<unknown>): void {
  last = operation;
}

// The result of then if its functions return nothing.
const settled = Promise.resolve();

/**
 * An operation that is run once it is awaited. As the body of an answer, not
 * awaited, the host sends its result without handing it to the handler.
 */
export abstract class Operation<T> implements PromiseLike<T> {
  /**
   * Runs it, leaves the result with the host, and returns which part of it is the body.
   * Without doing anything it gives undefined when only perform makes the value.
   */
  abstract leave(): number | undefined;
  /** Runs it. */
  abstract perform(): T;
  /** Where it became the body of an answer, or was made. */
  declare at?: Error;
  /** A description for messages. */
  abstract get title(): string;

  /** Within a body it is not awaited, and its fields are private. */
  toJSON(): never {
    throw new TypeError(`${this.title} was not awaited, and only its result can be part of a body: add await`);
  }

  then<A = T, B = never>(
    done?: ((value: T) => A | PromiseLike<A>) | null,
    failed?: ((reason: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    starts(this);
    var promise: Promise<T>;
    try {
      var value = this.perform();
      if (host.resolves(done) === 1) { // the function that await passes
        done!(value);
        return settled as Promise<any>;
      }
      promise = Promise.resolve(value);
    } catch (error) {
      promise = Promise.reject(error instanceof HostError ? placeless(error) : error);
    }
    return promise.then(done, failed);
  }

  catch<B = never>(failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, failed);
  }

  finally(done?: (() => void) | null): Promise<T> {
    return this.then().finally(done);
  }
}

/**
 * Whether an object of a class has options that are none of its own members: a promise that was not
 * awaited, a Map, getters. They would count as left out, and a default would be taken.
 */
function hides(options: object, names: readonly string[]): boolean {
  const prototype = Object.getPrototypeOf(options);
  if (prototype === Object.prototype || prototype === null) return false;
  return Object.keys(options).length === 0 || noJSON(options) !== undefined || names.some((name) => name in options && !Object.hasOwn(options, name));
}

/** Returns the options of an operation; a member that it does not know is an error, as in what it sends as a whole. */
export function known<T extends object>(op: string, options: T, ...names: (keyof T & string)[]): T {
  if (typeof options !== "object" || options === null || Array.isArray(options) || hides(options, names)) {
    throw new TypeError(`${op}: the options are an object with ${names.join(", ")}`);
  }
  for (const name in options) {
    if (!names.includes(name)) throw new TypeError(`${op}: unknown option "${name}"; known: ${names.join(", ")}`);
  }
  return options;
}

/** An operation whose whole result is the value, unless something makes it one. */
export class Whole<T> extends Operation<T> {
  // Set one by one: a class's fields are defined, which takes far longer.
  declare private readonly op: string;
  declare private readonly args: unknown;
  declare private readonly make: ((result: any) => T) | undefined;
  declare private readonly mark: Mark | undefined;
  constructor(op: string, args: unknown, make?: (result: any) => T, mark?: Mark) {
    super();
    this.op = op;
    this.args = args;
    this.make = make;
    this.mark = mark;
    placed(this);
  }
  get title(): string {
    return this.op;
  }
  leave(): number | undefined {
    if (this.make) return undefined;
    if (this.mark) this.mark.run = true;
    run(this.op, this.args);
    return All;
  }
  perform(): T {
    if (this.mark) this.mark.run = true;
    run(this.op, this.args);
    return this.make ? this.make(result()) : result();
  }
}
