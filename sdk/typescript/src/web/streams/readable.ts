// Readable streams (Streams Standard, 4.9): their state and algorithms, and the default controller. The
// interfaces that scripts see are in readers.ts and readablestream.ts.

import { apply, type Callback, call, callOften, LazyPromise, nothing, promiseOf, Queue, react, settled, sizeOf, upon } from "./common.ts";

export const enum State { readable, closed, errored }

/** A pending read. With a BYOB reader, close gets an empty view, or undefined after cancel. */
export interface ReadRequest {
  chunk(chunk: any): void;
  close(chunk?: any): void;
  error(error: unknown): void;
}

export class Reader {
  declare stream: Readable | undefined;
  declare readonly requests: Queue<ReadRequest>;
  declare closed: LazyPromise;
  declare readonly byob: boolean;

  constructor(stream: Readable, byob = false) {
    if (stream.reader) throw new TypeError("the stream is locked: it has a reader already");
    this.stream = stream;
    this.requests = new Queue();
    this.byob = byob;
    this.closed = new LazyPromise();
    stream.reader = this;
    if (stream.state === State.closed) this.closed.fulfill();
    if (stream.state === State.errored) this.closed.reject(stream.error);
  }
}

export class Readable {
  declare state: State;
  declare error: unknown;
  declare reader: Reader | undefined;
  declare disturbed: boolean;
  declare controller: Controller;

  constructor() {
    this.state = State.readable;
    this.disturbed = false;
    this.error = this.reader = undefined;
  }
}

/** How many reads of a reader of that kind are pending. */
export const waiting = ({ reader }: Readable, byob = false): number => (reader && reader.byob === byob ? reader.requests.length : 0);

export function closeStream(stream: Readable): void {
  const { reader } = stream;
  stream.state = State.closed;
  if (!reader) return;
  reader.closed.fulfill();
  if (!reader.byob) while (reader.requests.length > 0) reader.requests.take().close();
}

export function errorStream(stream: Readable, error: unknown): void {
  const { reader } = stream;
  stream.state = State.errored;
  stream.error = error;
  if (!reader) return;
  reader.closed.reject(error);
  while (reader.requests.length > 0) reader.requests.take().error(error);
}

export function cancelStream(stream: Readable, reason: unknown): Promise<any> {
  const { reader } = stream;
  stream.disturbed = true;
  if (stream.state === State.closed) return Promise.resolve();
  if (stream.state === State.errored) return Promise.reject(stream.error);
  closeStream(stream);
  if (reader?.byob) while (reader.requests.length > 0) reader.requests.take().close();
  return upon(stream.controller.cancel(reason), nothing);
}

/** Reads a chunk with a default reader that has a stream. */
export function read({ stream }: Reader, request: ReadRequest): void {
  stream!.disturbed = true;
  if (stream!.state === State.closed) request.close();
  else if (stream!.state === State.errored) request.error(stream!.error);
  else stream!.controller.pull(request);
}

export function release(reader: Reader): void {
  const { stream, requests } = reader;
  const error = new TypeError("the reader was released before the read ended");
  reader.closed = reader.closed.reject(error);
  stream!.controller.released();
  stream!.reader = reader.stream = undefined;
  while (requests.length > 0) requests.take().error(error);
}

/** The base of both controllers of readable streams. */
export abstract class Controller {
  declare readonly stream: Readable;
  declare readonly queue: Queue<any>;
  declare readonly mark: number;
  declare started: boolean;
  /** The stream closes when the queue is empty. */
  declare closing: boolean;
  declare pulling: boolean;
  declare again: boolean;
  /** Calls pull of the source. Without a result, it calls pulled itself, later. */
  declare pulls: (() => Promise<unknown> | undefined) | undefined;
  declare cancels: ((reason: unknown) => Promise<unknown>) | undefined;
  /** Called when a pull has ended. */
  declare readonly pulled: () => void;
  declare readonly fails: (error: unknown) => void;
  /** The object of the interface, once a script has seen it. */
  declare seen: object | undefined;

  constructor(stream: Readable, mark: number) {
    this.stream = stream;
    this.mark = mark;
    this.queue = new Queue();
    this.started = this.closing = this.pulling = this.again = false;
    this.pulls = this.cancels = this.seen = undefined;
    stream.controller = this;
    this.pulled = () => {
      this.pulling = false;
      if (!this.again) return;
      this.again = false;
      this.pullIfNeeded();
    };
    this.fails = (error) => this.error(error);
  }

  /** Begins to pull when the result of the source's start is fulfilled. */
  starts(result: unknown): void {
    react(promiseOf(result), () => {
      this.started = true;
      this.pullIfNeeded();
    }, this.fails);
  }
  /** Whether it can close or enqueue. */
  open(): boolean {
    return !this.closing && this.stream.state === State.readable;
  }
  desired(): number | null {
    const { state } = this.stream;
    return state === State.errored ? null : state === State.closed ? 0 : this.mark - this.queue.total;
  }
  pullIfNeeded(): void {
    const { stream } = this;
    if (!this.open() || !this.started || (waiting(stream) === 0 && waiting(stream, true) === 0 && this.desired()! <= 0)) return;
    if (this.pulling) {
      this.again = true;
      return;
    }
    this.pulling = true;
    const pulled = this.pulls ? this.pulls() : settled;
    if (pulled) react(pulled, this.pulled, this.fails);
  }
  /** Drops the source's functions, so that they can be collected. */
  clear(): void {
    this.pulls = this.cancels = undefined;
  }
  error(error: unknown): void {
    if (this.stream.state !== State.readable) return;
    this.queue.clear();
    this.clear();
    errorStream(this.stream, error);
  }
  cancel(reason: unknown): Promise<unknown> {
    this.queue.clear();
    const done = this.cancels ? this.cancels(reason) : settled;
    this.clear();
    return done;
  }
  /** Called when a chunk has left the queue. */
  drained(): void {
    if (this.closing && this.queue.length === 0) {
      this.clear();
      closeStream(this.stream);
    } else {
      this.pullIfNeeded();
    }
  }
  abstract pull(request: ReadRequest): void;
  abstract close(): void;
  abstract enqueue(chunk: any): void;
  released(): void {}
}

export class DefaultController extends Controller {
  declare size: Callback | undefined;

  constructor(stream: Readable, mark: number, size?: Callback) {
    super(stream, mark);
    this.size = size;
  }
  override clear(): void {
    super.clear();
    this.size = undefined;
  }
  pull(request: ReadRequest): void {
    if (this.queue.length > 0) {
      const chunk = this.queue.take();
      this.drained();
      request.chunk(chunk);
    } else {
      this.stream.reader!.requests.add(request);
      this.pullIfNeeded();
    }
  }
  close(): void {
    if (!this.open()) return;
    this.closing = true;
    if (this.queue.length === 0) this.drained();
  }
  enqueue(chunk: unknown): void {
    const { stream } = this;
    if (!this.open()) return;
    if (waiting(stream) > 0) {
      stream.reader!.requests.take().chunk(chunk);
    } else {
      try {
        this.queue.add(chunk, sizeOf(this.size, chunk));
      } catch (error) {
        this.error(error);
        throw error;
      }
    }
    this.pullIfNeeded();
  }
}

/** Connects a controller with the functions of an underlying source, which get the controller's object. */
export function sourced(controller: Controller, source: any, start: Callback | undefined, pull: Callback | undefined, cancel: Callback | undefined): void {
  const { seen } = controller;
  if (pull) controller.pulls = () => callOften(pull, source, seen);
  if (cancel) controller.cancels = (reason) => call(cancel, source, reason);
  controller.starts(start && apply(start, source, [seen]));
}

/** A stream whose source is this runtime. */
export function readable(mark: number, size: Callback | undefined, pulls?: () => Promise<unknown> | undefined, cancels?: (reason: unknown) => Promise<unknown>, start?: unknown): Readable {
  const stream = new Readable();
  const controller = new DefaultController(stream, mark, size);
  controller.pulls = pulls;
  controller.cancels = cancels;
  controller.starts(start);
  return stream;
}
