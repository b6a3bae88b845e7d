// The controller of readable byte streams (Streams Standard, 4.7 and 4.9.5).

import { apply } from "./common.ts";
import { Controller, Readable, type Reader, type ReadRequest, State, waiting } from "./readable.ts";

/** Bytes in the queue. Its size in the queue is the length. */
interface Chunk {
  buffer: ArrayBuffer;
  offset: number;
  length: number;
}

/** A buffer that must be filled (4.7.2, pull-into descriptor). */
interface PullInto extends Chunk {
  /** The length of the buffer. */
  whole: number;
  filled: number;
  least: number;
  unit: number;
  view: new (buffer: ArrayBuffer, offset: number, length: number) => ArrayBufferView;
  /** Who reads it: a default reader (false), a reader of bytes (true), or a reader that was released. */
  byob: boolean | undefined;
}

const { transfer, slice } = ArrayBuffer.prototype as ArrayBuffer & { transfer(): ArrayBuffer };
const detached = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "detached")!.get!;
// The name of a typed array's class; undefined for a DataView.
const nameOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)!.get!;

export const isDetached = (buffer: ArrayBufferLike): boolean => apply(detached, buffer, []);
const move = (buffer: ArrayBufferLike): ArrayBuffer => {
  if (isDetached(buffer)) throw new TypeError("the buffer was transferred before");
  return apply(transfer, buffer, []);
};
const copy = ({ buffer, offset, length }: Chunk): ArrayBuffer => apply(slice, buffer, [offset, offset + length]);

/** A ReadableStreamBYOBRequest (4.8). */
export class ByobRequest {
  declare controller: ByteController | undefined;
  declare view: Uint8Array | null;
  declare seen: object | undefined;

  constructor(controller: ByteController, view: Uint8Array) {
    this.controller = controller;
    this.view = view;
    this.seen = undefined;
  }
}

export class ByteController extends Controller {
  declare queue: Controller["queue"] & { head: { value: Chunk; size: number } | undefined };
  declare readonly auto: number | undefined;
  declare pending: PullInto[];
  declare request: ByobRequest | null;

  constructor(stream: Readable, mark: number, auto?: number) {
    super(stream, mark);
    this.auto = auto;
    this.pending = [];
    this.request = null;
  }

  byobRequest(): ByobRequest | null {
    const [first] = this.pending;
    if (this.request === null && first) {
      this.request = new ByobRequest(this, new Uint8Array(first.buffer, first.offset + first.filled, first.length - first.filled));
    }
    return this.request;
  }
  private invalidate(): void {
    if (this.request) {
      this.request.controller = undefined;
      this.request.view = null;
      this.request = null;
    }
  }

  close(): void {
    if (!this.open()) return;
    const [first] = this.pending;
    if (this.queue.length === 0 && first && first.filled % first.unit !== 0) {
      const error = new TypeError("close: the bytes of the last element are not complete");
      this.error(error);
      throw error;
    }
    this.closing = true;
    if (this.queue.length === 0) this.drained();
  }
  override error(error: unknown): void {
    if (this.stream.state !== State.readable) return;
    this.invalidate();
    this.pending = [];
    super.error(error);
  }
  override cancel(reason: unknown): Promise<unknown> {
    this.invalidate();
    this.pending = [];
    return super.cancel(reason);
  }
  override released(): void {
    const [first] = this.pending;
    if (!first) return;
    first.byob = undefined;
    this.pending = [first];
  }

  enqueue(chunk: ArrayBufferView): void {
    const { stream } = this;
    if (!this.open()) return;
    const { byteOffset: offset, byteLength: length } = chunk;
    const buffer = move(chunk.buffer);
    const [first] = this.pending;
    if (first) {
      first.buffer = move(first.buffer);
      this.invalidate();
      if (first.byob === undefined) this.abandoned(first);
    }
    const { reader } = stream;
    if (reader && !reader.byob) {
      while (reader.requests.length > 0 && this.queue.length > 0) this.give(reader.requests.take());
      if (reader.requests.length === 0) {
        this.queue.add({ buffer, offset, length }, length);
      } else {
        this.pending.shift();
        reader.requests.take().chunk(new Uint8Array(buffer, offset, length));
      }
    } else {
      this.queue.add({ buffer, offset, length }, length);
      if (reader) this.commit(this.fillPending());
    }
    this.pullIfNeeded();
  }
  /** Queues the bytes in the first buffer, whose reader was released. */
  private abandoned(first: PullInto): void {
    if (first.filled > 0) this.queue.add({ buffer: copy({ ...first, length: first.filled }), offset: 0, length: first.filled }, first.filled);
    this.pending.shift();
  }

  /** Gives the first bytes of the queue to a read. */
  private give(request: ReadRequest): void {
    const { buffer, offset, length }: Chunk = this.queue.take();
    this.drained();
    request.chunk(new Uint8Array(buffer, offset, length));
  }
  pull(request: ReadRequest): void {
    if (this.queue.length > 0) return this.give(request);
    const { auto: length } = this;
    if (length !== undefined) {
      let buffer: ArrayBuffer;
      try {
        buffer = new ArrayBuffer(length);
      } catch (error) {
        return request.error(error);
      }
      this.pending.push({ buffer, whole: length, offset: 0, length, filled: 0, least: 1, unit: 1, view: Uint8Array, byob: false });
    }
    this.stream.reader!.requests.add(request);
    this.pullIfNeeded();
  }
  /** Reads into a view, at least `least` of its elements (ReadableByteStreamControllerPullInto). */
  pullInto(view: ArrayBufferView, least: number, request: ReadRequest): void {
    const { stream, pending } = this;
    const { byteOffset: offset, byteLength: length } = view;
    const made: PullInto["view"] & { BYTES_PER_ELEMENT?: number } = (globalThis as any)[apply(nameOf, view, []) ?? "DataView"];
    const unit = made.BYTES_PER_ELEMENT ?? 1;
    let buffer: ArrayBuffer;
    try {
      buffer = move(view.buffer);
    } catch (error) {
      return request.error(error);
    }
    const into: PullInto = { buffer, whole: buffer.byteLength, offset, length, filled: 0, least: least * unit, unit, view: made, byob: true };
    if (pending.length === 0) {
      if (stream.state === State.closed) return request.close(new made(buffer, offset, 0));
      if (this.queue.length > 0) {
        if (this.fill(into)) {
          const filled = this.viewOf(into);
          this.drained();
          return request.chunk(filled);
        }
        if (this.closing) {
          const error = new TypeError("read: the stream has ended within an element");
          this.error(error);
          return request.error(error);
        }
      }
    }
    pending.push(into);
    stream.reader!.requests.add(request);
    this.pullIfNeeded();
  }

  /** Copies bytes of the queue to a buffer; returns whether it has enough. */
  private fill(into: PullInto): boolean {
    const { queue } = this;
    const most = Math.min(into.length, into.filled + queue.total);
    const aligned = most - (most % into.unit);
    const ready = aligned >= into.least;
    for (let left = (ready ? aligned : most) - into.filled; left > 0; ) {
      const { value: chunk } = queue.head!;
      const n = Math.min(left, chunk.length);
      new Uint8Array(into.buffer, into.offset + into.filled, n).set(new Uint8Array(chunk.buffer, chunk.offset, n));
      into.filled += n;
      left -= n;
      if (n === chunk.length) {
        queue.take();
        continue;
      }
      chunk.offset += n;
      queue.head!.size = chunk.length -= n;
      queue.total -= n;
    }
    return ready;
  }
  /** Fills the waiting buffers with what is in the queue; those that have enough wait no longer. */
  private fillPending(): PullInto[] {
    const filled: PullInto[] = [];
    while (this.pending.length > 0 && this.queue.length > 0 && this.fill(this.pending[0])) filled.push(this.pending.shift()!);
    return filled;
  }
  private viewOf(into: PullInto): ArrayBufferView {
    return new into.view(move(into.buffer), into.offset, into.filled / into.unit);
  }
  /** Passes filled buffers to their read requests. */
  private commit(all: PullInto[]): void {
    for (const into of all) {
      const request = this.stream.reader!.requests.take();
      const view = this.viewOf(into);
      if (this.stream.state === State.closed) request.close(view);
      else request.chunk(view);
    }
  }

  /** Called when the source has written bytes to the first buffer. */
  respond(written: number): void {
    const [first] = this.pending;
    if (this.stream.state === State.closed) {
      if (written !== 0) throw new TypeError("respond: the stream is closed, so bytesWritten must be 0");
    } else {
      if (written === 0) throw new TypeError("respond: bytesWritten must not be 0: to end the stream, close it before");
      if (first.filled + written > first.length) throw new RangeError("respond: bytesWritten is more than the length of the view");
    }
    first.buffer = move(first.buffer);
    this.responded(written);
  }
  respondWithNewView(view: ArrayBufferView): void {
    const [first] = this.pending;
    const { buffer, byteOffset, byteLength } = view;
    if (this.stream.state === State.closed) {
      if (byteLength !== 0) throw new TypeError("respondWithNewView: the stream is closed, so the view must be empty");
    } else if (byteLength === 0) {
      throw new TypeError("respondWithNewView: the view must not be empty: to end the stream, close it before");
    }
    if (first.offset + first.filled !== byteOffset || first.whole !== buffer.byteLength || first.filled + byteLength > first.length) {
      throw new RangeError("respondWithNewView: the view must begin where that of the request begins, and must not be longer");
    }
    first.buffer = move(buffer);
    this.responded(byteLength);
  }
  private responded(written: number): void {
    const { stream, pending } = this;
    const [first] = pending;
    this.invalidate();
    if (stream.state === State.closed) {
      if (first.byob === undefined) pending.shift();
      this.commit(pending.splice(0, waiting(stream, true)));
      return;
    }
    first.filled += written;
    if (first.byob === undefined) {
      this.abandoned(first);
      this.commit(this.fillPending());
    } else if (first.filled >= first.least) {
      pending.shift();
      const length = first.filled % first.unit;
      if (length > 0) {
        this.queue.add({ buffer: copy({ buffer: first.buffer, offset: first.offset + first.filled - length, length }), offset: 0, length }, length);
        first.filled -= length;
      }
      this.commit([first, ...this.fillPending()]);
    }
    this.pullIfNeeded();
  }

  /** Closes, and ends the reads that wait for bytes (4.7, close a ReadableStream). */
  end(): void {
    this.close();
    if (this.pending.length > 0) this.respond(0);
  }
}

/** Reads into a view with a reader of bytes that has a stream. */
export function readInto({ stream }: Reader, view: ArrayBufferView, least: number, request: ReadRequest): void {
  stream!.disturbed = true;
  if (stream!.state === State.errored) request.error(stream!.error);
  else (stream!.controller as ByteController).pullInto(view, least, request);
}

/** A stream of bytes that this runtime makes. */
export function byteStream(pulls: () => Promise<unknown>, cancels?: (reason: unknown) => Promise<unknown>, mark = 0, stream = new Readable()): Readable {
  const controller = new ByteController(stream, mark);
  controller.pulls = pulls;
  controller.cancels = cancels;
  controller.starts(undefined);
  return stream;
}
