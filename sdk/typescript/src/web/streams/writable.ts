// Writable streams (Streams Standard, 5.5): their state and algorithms. The interfaces that scripts see are
// in writablestream.ts.

import { abortable } from "../abort.ts";
import { type Callback, type Deferred, deferred, done, LazyPromise, promiseOf, Queue, react, type Settle, settled, sizeOf } from "./common.ts";

export const enum Writing { writable, closed, erroring, errored }

/** In the queue of chunks: close the stream. */
const close = Symbol();

export class Writer {
  declare stream: Writable | undefined;
  declare closed: LazyPromise;
  declare ready: LazyPromise;

  constructor(stream: Writable) {
    if (stream.writer) throw new TypeError("the stream is locked: it has a writer already");
    this.stream = stream;
    this.closed = new LazyPromise();
    this.ready = new LazyPromise();
    stream.writer = this;
    const { state, error } = stream;
    if (state === Writing.closed || (state === Writing.writable && (closing(stream) || !stream.backpressure))) this.ready.fulfill();
    if (state >= Writing.erroring) this.ready.reject(error);
    if (state === Writing.closed) this.closed.fulfill();
    if (state === Writing.errored) this.closed.reject(error);
  }
}

export class Writable {
  declare state: Writing;
  declare error: unknown;
  declare writer: Writer | undefined;
  declare controller: WritableController;
  declare backpressure: boolean;
  /** The pending writes, and the one whose chunk the sink is writing. */
  declare readonly requests: Queue<Settle>;
  declare writing: Settle | undefined;
  /** The pending close, and the one that the sink is running. */
  declare toClose: Deferred | undefined;
  declare closes: Deferred | undefined;
  declare abort: { done: Deferred; reason: unknown; erroring: boolean } | undefined;

  constructor() {
    this.state = Writing.writable;
    this.requests = new Queue();
    this.backpressure = false;
    this.error = this.writer = this.writing = this.toClose = this.closes = this.abort = undefined;
  }
}

/** Whether the close is queued or running. */
export const closing = ({ toClose, closes }: Writable): boolean => toClose !== undefined || closes !== undefined;

export function abortStream(stream: Writable, reason: unknown): Promise<any> {
  const over = (): boolean => stream.state === Writing.closed || stream.state === Writing.errored;
  if (over()) return Promise.resolve();
  stream.controller.abortable()[1](reason);
  if (over()) return Promise.resolve(); // a listener of the signal has closed or failed it
  if (stream.abort) return stream.abort.done.promise;
  const erroring = stream.state === Writing.erroring;
  const abort = (stream.abort = { done: deferred(), reason: erroring ? undefined : reason, erroring });
  if (!erroring) startErroring(stream, reason);
  return abort.done.promise;
}

export function closeWritable(stream: Writable): Promise<any> {
  const { state, writer, controller } = stream;
  if (state === Writing.closed || state === Writing.errored) return Promise.reject(new TypeError(`close: the stream is ${state === Writing.closed ? "closed" : "errored"}`));
  const { promise } = (stream.toClose = deferred());
  if (writer && stream.backpressure && state === Writing.writable) writer.ready.fulfill();
  controller.queue.add(close);
  controller.advance();
  return promise;
}

export function startErroring(stream: Writable, reason: unknown): void {
  const { writer } = stream;
  stream.state = Writing.erroring;
  stream.error = reason;
  if (writer) writer.ready = writer.ready.reject(reason);
  if (!stream.writing && !stream.closes && stream.controller.started) finishErroring(stream);
}

function finishErroring(stream: Writable): void {
  const { controller, error, requests, abort } = stream;
  stream.state = Writing.errored;
  controller.queue.clear();
  while (requests.length > 0) requests.take().reject(error);
  stream.abort = undefined;
  if (!abort) return rejectClosed(stream);
  if (abort.erroring) {
    abort.done.reject(error);
    return rejectClosed(stream);
  }
  const result = controller.sink.abort(abort.reason);
  controller.clear();
  react(result, () => {
    abort.done.resolve();
    rejectClosed(stream);
  }, (error) => {
    abort.done.reject(error);
    rejectClosed(stream);
  });
}

function rejectClosed(stream: Writable): void {
  const { writer, error, toClose } = stream;
  stream.toClose = undefined;
  toClose?.reject(error);
  if (writer) writer.closed.reject(error);
}

function dealWithRejection(stream: Writable, error: unknown): void {
  if (stream.state === Writing.writable) startErroring(stream, error);
  else finishErroring(stream);
}

function setBackpressure(stream: Writable): void {
  const { writer } = stream;
  if (closing(stream) || stream.state !== Writing.writable) return;
  const backpressure = stream.controller.desired() <= 0;
  if (writer && backpressure !== stream.backpressure) {
    if (backpressure) writer.ready = new LazyPromise();
    else writer.ready.fulfill();
  }
  stream.backpressure = backpressure;
}

/** The functions of an underlying sink. */
export interface Sink {
  write(chunk: unknown): Promise<unknown>;
  close(): Promise<unknown>;
  abort(reason: unknown): Promise<unknown>;
}

const idle: Sink = { write: done, close: done, abort: done };

export class WritableController {
  declare readonly stream: Writable;
  declare readonly queue: Queue<unknown>;
  declare readonly mark: number;
  declare size: Callback | undefined;
  declare sink: Sink;
  declare started: boolean;
  /** Called when a chunk is written, and when that has failed. */
  declare private readonly written: () => void;
  declare private readonly failed: (error: unknown) => void;
  declare private aborts: ReturnType<typeof abortable> | undefined;
  /** It was cleared: all chunks have the size 1. */
  declare private cleared: boolean;

  constructor(stream: Writable, mark: number, size: Callback | undefined, sink: Sink) {
    this.stream = stream;
    this.queue = new Queue();
    this.mark = mark;
    this.size = size;
    this.sink = sink;
    this.started = this.cleared = false;
    this.aborts = undefined;
    stream.controller = this;
    setBackpressure(stream);
    const over = (): Settle => {
      const { writing } = stream;
      stream.writing = undefined;
      return writing!;
    };
    this.written = () => {
      over().resolve();
      this.queue.take();
      setBackpressure(stream);
      this.advance();
    };
    this.failed = (error) => {
      if (stream.state === Writing.writable) this.clear();
      over().reject(error);
      dealWithRejection(stream, error);
    };
  }
  /** Begins to write when the result of the sink's start is fulfilled. */
  starts(result: unknown): void {
    react(promiseOf(result), () => {
      this.started = true;
      this.advance();
    }, (error) => {
      this.started = true;
      dealWithRejection(this.stream, error);
    });
  }
  /** Its signal, and the function that aborts it. */
  abortable(): ReturnType<typeof abortable> {
    return (this.aborts ??= abortable());
  }
  desired(): number {
    return this.mark - this.queue.total;
  }
  /** Drops the sink's functions, so that they can be collected. */
  clear(): void {
    this.sink = idle;
    this.size = undefined;
    this.cleared = true;
  }
  error(error: unknown): void {
    if (this.stream.state !== Writing.writable) return;
    this.clear();
    startErroring(this.stream, error);
  }
  sizeOf(chunk: unknown): number {
    if (this.cleared) return 1;
    try {
      return sizeOf(this.size, chunk);
    } catch (error) {
      this.error(error);
      return 1;
    }
  }
  write(chunk: unknown, size: number): void {
    try {
      this.queue.add(chunk, size);
    } catch (error) {
      return this.error(error);
    }
    setBackpressure(this.stream);
    this.advance();
  }
  advance(): void {
    const { stream, queue } = this;
    if (!this.started || stream.writing) return;
    if (stream.state === Writing.erroring) return finishErroring(stream);
    if (queue.length === 0) return;
    const chunk = queue.head!.value;
    if (chunk === close) this.finish();
    else this.give(chunk);
  }
  private finish(): void {
    const { stream, queue, sink } = this;
    stream.closes = stream.toClose;
    stream.toClose = undefined;
    queue.take();
    const done = sink.close();
    this.clear();
    const over = (): Writable["abort"] => {
      const { abort } = stream;
      stream.closes = stream.abort = undefined;
      return abort;
    };
    react(done, () => {
      stream.closes!.resolve();
      stream.error = undefined;
      over()?.done.resolve();
      stream.state = Writing.closed;
      if (stream.writer) stream.writer.closed.fulfill();
    }, (error) => {
      stream.closes!.reject(error);
      over()?.done.reject(error);
      dealWithRejection(stream, error);
    });
  }
  private give(chunk: unknown): void {
    this.stream.writing = this.stream.requests.take();
    react(this.sink.write(chunk), this.written, this.failed);
  }
}

export function write(writer: Writer, chunk: unknown, request: Settle): void {
  const stream = writer.stream!;
  const { controller } = stream;
  const size = controller.sizeOf(chunk);
  const { state } = stream;
  if (stream !== writer.stream) return request.reject(new TypeError("write: the writer was released"));
  if (state === Writing.errored) return request.reject(stream.error);
  if (closing(stream) || state === Writing.closed) return request.reject(new TypeError("write: the stream is closed or closing"));
  if (state === Writing.erroring) return request.reject(stream.error);
  stream.requests.add(request);
  controller.write(chunk, size);
}

export function desiredSize({ state, controller }: Writable): number | null {
  return state >= Writing.erroring ? null : state === Writing.closed ? 0 : controller.desired();
}

export function releaseWriter(writer: Writer): void {
  const error = new TypeError("the writer was released");
  writer.ready = writer.ready.reject(error);
  writer.closed = writer.closed.reject(error);
  writer.stream = writer.stream!.writer = undefined;
}

/** A stream whose sink is this runtime. */
export function writable(mark: number, size: Callback | undefined, sink: Sink, start?: unknown): Writable {
  const stream = new Writable();
  new WritableController(stream, mark, size, sink).starts(start);
  return stream;
}
