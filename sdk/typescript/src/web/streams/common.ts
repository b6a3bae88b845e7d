// What all streams use: promises, queues with sizes (Streams Standard, 8.1), and arguments (Web IDL, 3.2).

import { runner } from "../../host.ts";
import { isObject } from "../idl.ts";

export type Callback = (...args: any[]) => any;

const { host } = runner;
const { then } = Promise.prototype;
export const { apply } = Reflect;

export const nothing = (): undefined => undefined;
export const settled: Promise<any> = Promise.resolve();
export const done = (): Promise<any> => settled;

/** Calls the original then of a promise, also if a script has replaced it. */
export const upon = (promise: Promise<any>, done?: Callback, failed?: Callback): Promise<any> => apply(then, promise, [done, failed]);

/** The same, but returns no promise, which takes a third of the time. The functions must not throw. */
export function react(promise: Promise<any>, does: Callback, failed: Callback): void {
  const refused: unknown = host.react(promise, does, failed);
  if (refused !== undefined) upon(promise, does, failed); // while the module is built
}

/** Calls a function in a job of its own. */
export const later = (does: () => void): void => react(settled, does, nothing);

/** Marks a promise as handled: its rejection is not reported. */
export const handled = (promise: Promise<any>): Promise<any> => (react(promise, nothing, nothing), promise);

/** The functions that settle a promise. */
export interface Settle {
  resolve(value?: unknown): void;
  reject(reason: unknown): void;
}

export interface Deferred extends Settle {
  promise: Promise<any>;
}

export function deferred(): Deferred {
  let resolve!: (value?: unknown) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<any>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

/** The promise closed or ready of a reader or writer, which is made when it is first read. Its rejection is not reported. */
export class LazyPromise {
  declare pending: boolean;
  declare private made: Deferred | undefined;
  declare private failed: { error: unknown } | undefined;
  declare private waits: (() => void) | undefined;

  constructor() {
    this.pending = true;
    this.made = this.failed = this.waits = undefined;
  }
  get promise(): Promise<any> {
    if (!this.made) {
      this.made = deferred();
      if (!this.pending) this.settle();
    }
    return this.made.promise;
  }
  private settle(): void {
    const { made, failed } = this;
    if (made && failed) {
      made.reject(failed.error);
      handled(made.promise);
    } else {
      made?.resolve();
    }
  }
  /** Calls a function once it is fulfilled. Only one can wait. */
  wait(does: () => void): void {
    if (this.pending) this.waits = does;
    else if (!this.failed) later(does);
  }
  fulfill(): void {
    const { waits } = this;
    if (!this.pending) return;
    this.pending = false;
    this.settle();
    if (waits) later(waits);
  }
  /** Rejects it. If it is settled, it returns another one that is rejected. */
  reject(error: unknown): LazyPromise {
    if (!this.pending) return new LazyPromise().reject(error);
    this.pending = false;
    this.failed = { error };
    this.settle();
    return this;
  }
}

/** The result of a callback as a promise. If it is a promise, this is another one, which is settled later. */
export const promiseOf = (result: unknown): Promise<any> => (result === undefined ? settled : new Promise((resolve) => resolve(result)));

/** Calls a callback that returns a promise. */
export function call(does: Callback | undefined, self: unknown, ...args: unknown[]): Promise<any> {
  if (does === undefined) return settled;
  try {
    return promiseOf(apply(does, self, args));
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Calls a callback that is called for each chunk: a promise that it returns is taken as it is, which is faster. */
export function callOften(does: Callback | undefined, self: unknown, ...args: unknown[]): Promise<any> {
  if (does === undefined) return settled;
  try {
    const result = apply(does, self, args);
    return result === undefined ? settled : Promise.resolve(result);
  } catch (error) {
    return Promise.reject(error);
  }
}

interface Node<T> {
  value: T;
  size: number;
  next: Node<T> | undefined;
}

/** A queue whose values have sizes; a size that is negative or not finite is a RangeError. */
export class Queue<T> {
  declare head: Node<T> | undefined;
  declare last: Node<T> | undefined;
  declare length: number;
  declare total: number;

  constructor() {
    this.clear();
  }
  clear(): void {
    this.head = this.last = undefined;
    this.length = this.total = 0;
  }
  add(value: T, size = 0): void {
    if (!(size >= 0 && size < Infinity)) throw new RangeError(`the size of a chunk is ${size}, and must be a finite number of at least 0`);
    const node = { value, size, next: undefined };
    if (this.last) this.last.next = node;
    else this.head = node;
    this.last = node;
    this.length++;
    this.total += size;
  }
  /** Removes the first value, of a queue that is not empty. */
  take(): T {
    const { value, size, next } = this.head!;
    this.head = next;
    if (next === undefined) this.last = undefined;
    this.length--;
    this.total = Math.max(0, this.total - size); // rounding may make it negative
    return value;
  }
}

const none = Object.freeze(Object.create(null));

/** An argument that is a dictionary. Null is a dictionary without members, unless the standard requires an object (strict). */
export function dictionary(given: any, what: string, strict = false): any {
  if (given === undefined || (given === null && !strict)) return none;
  if (!isObject(given)) throw new TypeError(`${what} must be an object`);
  return given;
}

/** A member of a dictionary that is a function; undefined without one. */
export function method(of: any, name: string): Callback | undefined {
  const value = of[name];
  if (value !== undefined && typeof value !== "function") throw new TypeError(`${name} must be a function`);
  return value;
}

/** An argument that is an [EnforceRange] unsigned long long. */
export function wholeNumber(given: any, what: string): number {
  const n = Math.trunc(+given);
  if (!(n >= 0 && n <= Number.MAX_SAFE_INTEGER)) throw new TypeError(`${what} must be a whole number of at least 0`);
  return n + 0;
}

export interface Strategy {
  mark: number | undefined;
  size: Callback | undefined;
}

/** A QueuingStrategy (Streams Standard, 7.1). */
export function strategyOf(given: unknown): Strategy {
  const from = dictionary(given, "the queuing strategy");
  const mark = from.highWaterMark;
  return { mark: mark === undefined ? undefined : +mark, size: method(from, "size") };
}

/** Its high water mark (ExtractHighWaterMark). */
export function markOf(strategy: Strategy, otherwise: number): number {
  const { mark = otherwise } = strategy;
  if (!(mark >= 0)) throw new RangeError(`highWaterMark is ${mark}, and must be at least 0`);
  return mark;
}

/** The size of a chunk in a queue (ExtractSizeAlgorithm). */
export function sizeOf(size: Callback | undefined, chunk: unknown): number {
  return size === undefined ? 1 : +apply(size, undefined, [chunk]);
}
