// Transform streams (Streams Standard, 6).

import { apply, type Callback, call, callOften, type Deferred, deferred, dictionary, done, later, markOf, method, nothing, react, settled, strategyOf, upon } from "./common.ts";
import { unplaced } from "../../host.ts";
import { inner, made, stamp } from "./inner.ts";
import { readable, type Readable, State, waiting } from "./readable.ts";
import { ReadableStream } from "./readablestream.ts";
import { type Sink, writable, Writable, Writing } from "./writable.ts";
import { WritableStream } from "./writablestream.ts";

/** The functions of a transformer. */
export interface Transformer {
  transform(chunk: unknown): Promise<unknown>;
  flush(): Promise<unknown>;
  cancel(reason: unknown): Promise<unknown>;
}

const idle: Transformer = { transform: done, flush: done, cancel: done };

/** A TransformStream and its controller; the sink of its writable side. */
export class Transform implements Sink {
  declare readonly readable: Readable;
  declare readonly writable: Writable;
  declare transformer: Transformer;
  declare private backpressure: boolean;
  /** Resolved when that changes, if a write waits for it. */
  declare private changed: Deferred | undefined;
  /** The close, abort or cancel that ends it. */
  declare private ends: Deferred | undefined;

  constructor(transformer: Transformer, start: unknown, mark = 1, size?: Callback, readableMark = 0, readableSize?: Callback) {
    this.transformer = transformer;
    this.backpressure = true;
    this.changed = this.ends = undefined;
    this.writable = writable(mark, size, this, start);
    this.readable = readable(readableMark, readableSize, () => {
      this.setBackpressure(false);
      return undefined; // pulled is called when it has backpressure again
    }, (reason) => this.end(this.transformer.cancel, this.writable, (error) => this.errorWritable(error), reason), start);
  }
  close(): Promise<unknown> {
    const { controller } = this.readable;
    return this.end(this.transformer.flush, this.readable, (error) => (error === end ? controller.close() : controller.error(error)), end);
  }
  abort(reason: unknown): Promise<unknown> {
    return this.end(this.transformer.cancel, this.readable, (error) => this.readable.controller.error(error), reason);
  }

  /** TransformStreamDefaultControllerEnqueue. */
  enqueue(chunk: unknown): void {
    const { controller } = this.readable;
    if (!controller.open()) throw new TypeError("enqueue: the readable side is closed, or errored");
    try {
      controller.enqueue(chunk);
    } catch (error) {
      this.errorWritable(error);
      throw this.readable.error;
    }
    if (!this.backpressure && !(waiting(this.readable) > 0 || controller.desired()! > 0)) this.setBackpressure(true);
  }
  error(error: unknown): void {
    this.readable.controller.error(error);
    this.errorWritable(error);
  }
  terminate(): void {
    this.readable.controller.close();
    this.errorWritable(new TypeError("the transform stream was terminated"));
  }

  private setBackpressure(backpressure: boolean): void {
    const { changed } = this;
    this.changed = undefined;
    this.backpressure = backpressure;
    changed?.resolve();
    if (backpressure) later(this.readable.controller.pulled);
  }
  /** TransformStreamErrorWritableAndUnblockWrite. */
  private errorWritable(error: unknown): void {
    this.transformer = idle;
    this.writable.controller.error(error);
    if (this.backpressure) this.setBackpressure(false);
  }
  write(chunk: unknown): Promise<unknown> {
    if (!this.backpressure) return this.transform(chunk);
    return upon((this.changed ??= deferred()).promise, () => {
      if (this.writable.state === Writing.erroring) return Promise.reject(this.writable.error);
      return this.transform(chunk);
    });
  }
  private transform(chunk: unknown): Promise<unknown> {
    const done = this.transformer.transform(chunk);
    if (done === settled) return done;
    return upon(done, undefined, (error) => {
      this.error(error);
      return Promise.reject(error); // a throw would give it a place here
    });
  }
  /** Ends it, once: calls does, and then over with the reason, or with an error, which is the result too. */
  private end(does: (reason: unknown) => Promise<unknown>, other: Readable | Writable, over: (error: unknown) => void, reason: unknown): Promise<unknown> {
    if (this.ends) return this.ends.promise;
    const { promise, resolve, reject } = (this.ends = deferred());
    const result = does(reason);
    this.transformer = idle;
    react(result, () => {
      // The other side may have failed in the meantime.
      if (other instanceof Writable ? other.state === Writing.errored : other.state === State.errored) return reject(other.error);
      over(reason);
      resolve();
    }, (error) => {
      over(error);
      reject(error);
    });
    return promise;
  }
}

/** Passed in place of an error if the stream ends without one. */
const end = Symbol();

/** The two streams of an object with members readable and writable. */
export class Sides {
  declare readonly readable: ReadableStream;
  declare readonly writable: WritableStream;

  constructor(readable: Readable, writable: Writable) {
    this.readable = new ReadableStream(readable);
    this.writable = new WritableStream(writable);
  }
}

export class TransformStream {
  constructor(transformer: any = undefined, writableStrategy: any = undefined, readableStrategy: any = undefined) {
    if (transformer instanceof Sides) {
      stamp(this, transformer);
      return;
    }
    const from = dictionary(transformer, "the transformer of a stream", true);
    const writing = strategyOf(writableStrategy);
    const reading = strategyOf(readableStrategy);
    const cancel = method(from, "cancel");
    const flush = method(from, "flush");
    if (from.readableType !== undefined) throw new RangeError("readableType of a transformer is not supported: leave it out");
    const start = method(from, "start");
    const transforms = method(from, "transform");
    if (from.writableType !== undefined) throw new RangeError("writableType of a transformer is not supported: leave it out");
    const started = deferred();
    const readableMark = markOf(reading, 0);
    const stream: Transform = new Transform({
      transform: (chunk) => callOften(transforms ?? same, transformer, chunk, seen),
      flush: () => call(flush, transformer, seen),
      cancel: (reason) => call(cancel, transformer, reason),
    }, started.promise, markOf(writing, 1), writing.size, readableMark, reading.size);
    const seen = new TransformStreamDefaultController(stream);
    const same = (chunk: unknown): void => stream.enqueue(chunk);
    stamp(this, new Sides(stream.readable, stream.writable));
    started.resolve(start && apply(start, transformer, [seen]));
  }
  get readable(): ReadableStream {
    return inner(this, Sides).readable;
  }
  get writable(): WritableStream {
    return inner(this, Sides).writable;
  }
}

/** A stream whose chunks are the results of change, without those that are undefined. */
export function transformer(change: (chunk: any) => unknown, flush: () => unknown = nothing): Transform {
  const give = (does: (chunk: any) => unknown, chunk?: unknown): Promise<never> | undefined => {
    try {
      const result = does(chunk);
      if (result !== undefined) stream.enqueue(result);
      return undefined;
    } catch (error) {
      return Promise.reject(unplaced(error));
    }
  };
  const stream: Transform = new Transform({
    transform: (chunk) => callOften(give, undefined, change, chunk),
    flush: () => callOften(give, undefined, flush),
    cancel: done,
  }, undefined);
  return stream;
}

export class TransformStreamDefaultController {
  constructor(...given: unknown[]) {
    stamp(this, made(given[0], Transform));
  }
  get desiredSize(): number | null {
    return inner(this, Transform).readable.controller.desired();
  }
  enqueue(chunk: unknown = undefined): void {
    inner(this, Transform).enqueue(chunk);
  }
  error(reason: unknown = undefined): void {
    inner(this, Transform).error(reason);
  }
  terminate(): void {
    inner(this, Transform).terminate();
  }
}
