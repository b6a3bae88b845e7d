// ReadableStreamDefaultReader and ReadableStreamBYOBReader (Streams Standard, 4.3 to 4.5).

import { dictionary, wholeNumber } from "./common.ts";
import { ByteController, readInto } from "./bytes.ts";
import { usable } from "./controllers.ts";
import { inner, share, stamp } from "./inner.ts";
import { cancelStream, read, Readable, Reader, release, type ReadRequest } from "./readable.ts";

const released = (): TypeError => new TypeError("the reader was released");

/** A read request, and the promise that read has returned. */
export class Read implements ReadRequest {
  declare resolve: (result: unknown) => void;
  declare error: (error: unknown) => void;

  chunk(value: unknown): void {
    this.resolve({ value, done: false });
  }
  close(value: unknown): void {
    this.resolve({ value, done: true });
  }
}

/** The result of read. */
function promised(does: (request: ReadRequest) => void): Promise<unknown> {
  const request = new Read();
  return new Promise((resolve, reject) => {
    request.resolve = resolve;
    request.error = reject;
    does(request);
  });
}

export class ReadableStreamDefaultReader {
  constructor(stream: unknown) {
    stamp(this, new Reader(inner(stream, Readable, " ReadableStream")));
  }
  get closed(): Promise<undefined> {
    try {
      return inner(this, Reader).closed.promise;
    } catch (error) {
      return Promise.reject(error);
    }
  }
  cancel(reason: unknown = undefined): Promise<undefined> {
    try {
      const { stream } = inner(this, Reader);
      if (!stream) throw released();
      return cancelStream(stream, reason);
    } catch (error) {
      return Promise.reject(error);
    }
  }
  read(): Promise<unknown> {
    try {
      const reader = inner(this, Reader);
      if (reader.byob) inner(undefined, Reader);
      if (!reader.stream) throw released();
      return promised((request) => read(reader, request));
    } catch (error) {
      return Promise.reject(error);
    }
  }
  releaseLock(): void {
    const reader = inner(this, Reader);
    if (reader.stream) release(reader);
  }
}

export class ReadableStreamBYOBReader {
  constructor(stream: unknown) {
    const of = inner(stream, Readable, " ReadableStream");
    if (!of.reader && !(of.controller instanceof ByteController)) {
      throw new TypeError('only a stream of bytes has a reader with mode "byob": make the stream with type "bytes"');
    }
    stamp(this, new Reader(of, true));
  }
  read(view: any, options: any = undefined): Promise<unknown> {
    try {
      const reader = inner(this, Reader);
      if (!reader.byob) inner(undefined, Reader);
      if (!ArrayBuffer.isView(view)) throw new TypeError("read: the argument must be a view of an ArrayBuffer");
      const { min } = dictionary(options, "the options of read");
      const least = min === undefined ? 1 : wholeNumber(min, "min");
      usable(view, "read: the view");
      if (least === 0) throw new TypeError("read: min must not be 0");
      if (least > ((view as Uint8Array).length ?? view.byteLength)) throw new RangeError("read: min is more than the length of the view");
      if (!reader.stream) throw released();
      return promised((request) => readInto(reader, view, least, request));
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

share(ReadableStreamDefaultReader, ReadableStreamBYOBReader, "closed", "cancel", "releaseLock");
