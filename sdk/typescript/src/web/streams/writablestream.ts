// WritableStream (Streams Standard, 5.2), its writer (5.3) and controller (5.4), as scripts see them.

import { apply, call, callOften, deferred, dictionary, markOf, method, strategyOf } from "./common.ts";
import { inner, made, stamp } from "./inner.ts";
import { abortStream, closeWritable, closing, desiredSize, releaseWriter, Writable, WritableController, write, Writer } from "./writable.ts";

/** The state of a stream; throws if the value is not a WritableStream. */
export const innerWritable = (stream: unknown): Writable => inner(stream, Writable, " WritableStream");

/** The state of a stream; throws if it has a writer, whose methods must be used then. */
function unlocked(stream: unknown): Writable {
  const of = innerWritable(stream);
  if (of.writer) throw new TypeError("the stream is locked: use its writer");
  return of;
}

const close = (stream: Writable): Promise<undefined> => {
  if (closing(stream)) throw new TypeError("close: the stream is being closed already");
  return closeWritable(stream);
};

export class WritableStream {
  constructor(sink: any = undefined, strategy: any = undefined) {
    if (sink instanceof Writable) {
      stamp(this, sink);
      return;
    }
    const from = dictionary(sink, "the sink of a stream", true);
    const given = strategyOf(strategy);
    const aborts = method(from, "abort");
    const closes = method(from, "close");
    const start = method(from, "start");
    if (from.type !== undefined) throw new RangeError("type of a sink is not supported: leave it out");
    const writes = method(from, "write");
    const stream = new Writable();
    const controller = new WritableController(stream, markOf(given, 1), given.size, {
      write: (chunk) => callOften(writes, sink, chunk, seen),
      close: () => call(closes, sink),
      abort: (reason) => call(aborts, sink, reason),
    });
    const seen = new WritableStreamDefaultController(controller);
    controller.starts(start && apply(start, sink, [seen]));
    stamp(this, stream);
  }
  get locked(): boolean {
    return innerWritable(this).writer !== undefined;
  }
  abort(reason: unknown = undefined): Promise<undefined> {
    try {
      return abortStream(unlocked(this), reason);
    } catch (error) {
      return Promise.reject(error);
    }
  }
  close(): Promise<undefined> {
    try {
      return close(unlocked(this));
    } catch (error) {
      return Promise.reject(error);
    }
  }
  getWriter(): WritableStreamDefaultWriter {
    innerWritable(this);
    return new WritableStreamDefaultWriter(this);
  }
}

/** The stream of a writer; throws if the writer was released. */
function streamOf(writer: unknown): Writable {
  const { stream } = inner(writer, Writer);
  if (!stream) throw new TypeError("the writer was released");
  return stream;
}

export class WritableStreamDefaultWriter {
  constructor(stream: unknown) {
    stamp(this, new Writer(innerWritable(stream)));
  }
  get closed(): Promise<undefined> {
    try {
      return inner(this, Writer).closed.promise;
    } catch (error) {
      return Promise.reject(error);
    }
  }
  get desiredSize(): number | null {
    return desiredSize(streamOf(this));
  }
  get ready(): Promise<undefined> {
    try {
      return inner(this, Writer).ready.promise;
    } catch (error) {
      return Promise.reject(error);
    }
  }
  abort(reason: unknown = undefined): Promise<undefined> {
    try {
      return abortStream(streamOf(this), reason);
    } catch (error) {
      return Promise.reject(error);
    }
  }
  close(): Promise<undefined> {
    try {
      return close(streamOf(this));
    } catch (error) {
      return Promise.reject(error);
    }
  }
  releaseLock(): void {
    const writer = inner(this, Writer);
    if (writer.stream) releaseWriter(writer);
  }
  write(chunk: unknown = undefined): Promise<undefined> {
    try {
      streamOf(this);
      const request = deferred();
      write(inner(this, Writer), chunk, request);
      return request.promise;
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

export class WritableStreamDefaultController {
  constructor(...given: unknown[]) {
    stamp(this, made(given[0], WritableController));
  }
  get signal(): AbortSignal {
    return inner(this, WritableController).abortable()[0] as unknown as AbortSignal;
  }
  error(error: unknown = undefined): void {
    inner(this, WritableController).error(error);
  }
}
