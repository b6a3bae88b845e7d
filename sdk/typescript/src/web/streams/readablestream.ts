// ReadableStream (Streams Standard, 4.2), as scripts see it. Its readers and controllers are in readers.ts and controllers.ts.

import { dictionary, markOf, method, strategyOf, wholeNumber } from "./common.ts";
import { ByteController } from "./bytes.ts";
import { ReadableByteStreamController, ReadableStreamDefaultController } from "./controllers.ts";
import { has, inner, stamp } from "./inner.ts";
import { fromIterable, iterate } from "./iterate.ts";
import { cancelStream, DefaultController, Readable, Reader, sourced } from "./readable.ts";
import { ReadableStreamBYOBReader, ReadableStreamDefaultReader } from "./readers.ts";
import { pipe, pipeOptions } from "./pipe.ts";
import { tee } from "./tee.ts";
import { type Writable } from "./writable.ts";
import { innerWritable } from "./writablestream.ts";

export const isReadable = (value: unknown): value is ReadableStream => has(value, Readable);

/** The state of a stream; throws if the value is not a ReadableStream. */
export const innerReadable = (stream: unknown): Readable => inner(stream, Readable, " ReadableStream");

const unlocked = (from: Readable, to?: Writable): void => {
  if (from.reader) throw new TypeError("the stream is locked: it has a reader already");
  if (to?.writer) throw new TypeError("the destination is locked: it has a writer already");
};

export class ReadableStream {
  constructor(source: any = undefined, strategy: any = undefined) {
    let stream = source;
    if (!(source instanceof Readable)) {
      const from = dictionary(source, "the source of a stream", true);
      const given = strategyOf(strategy);
      // Members are read in the order of their names.
      const { autoAllocateChunkSize } = from;
      const auto = autoAllocateChunkSize === undefined ? undefined : wholeNumber(autoAllocateChunkSize, "autoAllocateChunkSize");
      const cancel = method(from, "cancel");
      const pull = method(from, "pull");
      const start = method(from, "start");
      const { type } = from;
      if (type !== undefined && `${type}` !== "bytes") throw new TypeError('the only type of a source is "bytes"');
      const mark = markOf(given, type === undefined ? 1 : 0);
      stream = new Readable();
      let controller: DefaultController | ByteController;
      if (type === undefined) {
        controller = new DefaultController(stream, mark, given.size);
        controller.seen = new ReadableStreamDefaultController(controller);
      } else {
        if (given.size) throw new RangeError("the strategy of a stream of bytes cannot have a size function");
        if (auto === 0) throw new TypeError("autoAllocateChunkSize must not be 0");
        controller = new ByteController(stream, mark, auto);
        controller.seen = new ReadableByteStreamController(controller);
      }
      sourced(controller, source, start, pull, cancel);
    }
    stamp(this, stream);
  }
  static from(iterable: unknown): ReadableStream {
    return new ReadableStream(fromIterable(iterable));
  }
  get locked(): boolean {
    return innerReadable(this).reader !== undefined;
  }
  cancel(reason: unknown = undefined): Promise<undefined> {
    try {
      const stream = innerReadable(this);
      unlocked(stream);
      return cancelStream(stream, reason);
    } catch (error) {
      return Promise.reject(error);
    }
  }
  getReader(options: any = undefined): ReadableStreamDefaultReader | ReadableStreamBYOBReader {
    innerReadable(this);
    const { mode } = dictionary(options, "the options of getReader");
    if (mode === undefined) return new ReadableStreamDefaultReader(this);
    if (`${mode}` !== "byob") throw new TypeError('getReader: the only mode is "byob"');
    return new ReadableStreamBYOBReader(this);
  }
  pipeThrough(transform: any, options: any = undefined): ReadableStream {
    const from = innerReadable(this);
    const pair = dictionary(transform, "the transform of pipeThrough");
    const { readable } = pair;
    innerReadable(readable);
    const to = innerWritable(pair.writable);
    const how = pipeOptions(options);
    unlocked(from, to);
    pipe(from, to, how, true);
    return readable;
  }
  pipeTo(destination: unknown, options: any = undefined): Promise<undefined> {
    try {
      const from = innerReadable(this);
      const to = innerWritable(destination);
      const how = pipeOptions(options);
      unlocked(from, to);
      return pipe(from, to, how, false);
    } catch (error) {
      return Promise.reject(error);
    }
  }
  tee(): ReadableStream[] {
    const [one, two] = tee(innerReadable(this));
    return [new ReadableStream(one), new ReadableStream(two)];
  }
  values(options: any = undefined): unknown {
    const stream = innerReadable(this);
    const { preventCancel } = dictionary(options, "the options of values");
    return iterate(new Reader(stream), Boolean(preventCancel));
  }
}

Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, { value: ReadableStream.prototype.values, writable: true, configurable: true });
