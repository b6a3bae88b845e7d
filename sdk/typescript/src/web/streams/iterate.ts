// Streams from iterators and iterators from streams (Streams Standard, 4.2.5 and 4.9.1; Web IDL, 3.7.10).

import { apply, type Callback, call, settled, upon } from "./common.ts";
import { type Readable, read, readable, type Reader, cancelStream, release } from "./readable.ts";

const end = (value?: unknown): IteratorResult<unknown> => ({ value, done: true });

class AsyncIterator {
  #reader: Reader;
  #keep: boolean;
  #finished = false;
  #ongoing: Promise<any> | undefined;

  constructor(reader: Reader, keep: boolean) {
    this.#reader = reader;
    this.#keep = keep;
  }
  next(): Promise<unknown> {
    try {
      return this.#after(() => this.#step());
    } catch (error) {
      return Promise.reject(error);
    }
  }
  return(value: unknown): Promise<unknown> {
    try {
      return upon(this.#after(() => this.#stop(value)), () => end(value));
    } catch (error) {
      return Promise.reject(error);
    }
  }
  /** Runs does when the previous calls are done. */
  #after(does: () => Promise<unknown>): Promise<unknown> {
    const before = this.#ongoing;
    const ongoing = upon(before ? upon(before, does, does) : does(), (value) => {
      if (this.#ongoing === ongoing) this.#ongoing = undefined;
      return value;
    });
    return (this.#ongoing = ongoing);
  }
  #step(): Promise<unknown> {
    if (this.#finished) return Promise.resolve(end());
    const reader = this.#reader;
    const over = (): void => {
      this.#finished = true;
      release(reader);
    };
    return new Promise((resolve, reject) =>
      read(reader, {
        chunk: (value) => resolve({ value, done: false }),
        close: () => {
          over();
          resolve(end());
        },
        error: (error) => {
          over();
          reject(error);
        },
      }),
    );
  }
  #stop(value: unknown): Promise<unknown> {
    if (this.#finished) return settled;
    this.#finished = true;
    const done = this.#keep ? settled : cancelStream(this.#reader.stream!, value);
    release(this.#reader);
    return done;
  }
}

export type { AsyncIterator };

const prototype = AsyncIterator.prototype as any;
delete prototype.constructor;
for (const key of ["next", "return"]) Object.defineProperty(prototype, key, { enumerable: true });
Object.setPrototypeOf(prototype, Object.getPrototypeOf(Object.getPrototypeOf((async function* () {}).prototype)));

export const iterate = (reader: Reader, keep: boolean): AsyncIterator => new AsyncIterator(reader, keep);

const result = (of: any): any => {
  if (typeof of !== "object" || of === null) throw new TypeError("ReadableStream.from: the iterator must give objects with done and value");
  return of;
};

/** GetMethod (ECMA-262, 7.3.10). */
function optional(of: any, name: string | symbol): Callback | undefined {
  const value = of[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "function") throw new TypeError(`ReadableStream.from: ${String(name)} must be a function`);
  return value;
}

/** ReadableStreamFromIterable. */
export function fromIterable(given: any): Readable {
  if (given === undefined || given === null) throw new TypeError(`ReadableStream.from: ${given} cannot be iterated`);
  const async = optional(given, Symbol.asyncIterator);
  const make = async ?? optional(given, Symbol.iterator);
  if (!make) throw new TypeError("ReadableStream.from: the object must be iterable: it has no Symbol.asyncIterator and no Symbol.iterator");
  const iterator = apply(make, given, []);
  if ((typeof iterator !== "object" && typeof iterator !== "function") || iterator === null) throw new TypeError("ReadableStream.from: the iterator must be an object");
  const { next } = iterator;

  // The values of an iterator that is not asynchronous may be promises (ECMA-262, 27.1.6).
  const awaited = (of: unknown, closes: boolean): Promise<any> => {
    const { value, done } = result(of);
    return upon(Promise.resolve(value), (value) => ({ value, done }), (error) => {
      if (closes && !done) optional(iterator, "return")?.call(iterator);
      throw error;
    });
  };
  const asked = (does: Callback, closes: boolean, ...args: unknown[]): Promise<any> =>
    async ? call(does, iterator, ...args) : call(() => awaited(apply(does, iterator, args), closes), undefined);

  const stream: Readable = readable(
    0,
    undefined,
    () =>
      upon(asked(next, true), (of) => {
        const { controller } = stream;
        if (result(of).done) controller.close();
        else controller.enqueue(of.value);
      }),
    (reason) =>
      call(() => {
        const stop = optional(iterator, "return");
        return stop ? upon(asked(stop, false, reason), (of) => void result(of)) : undefined;
      }, undefined),
  );
  return stream;
}
