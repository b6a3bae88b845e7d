// Two streams from one (Streams Standard, 4.9.1: ReadableStreamDefaultTee and ReadableByteStreamTee).

import { apply, type Deferred, deferred, later, nothing, react, settled } from "./common.ts";
import { ByteController, byteStream, readInto } from "./bytes.ts";
import { cancelStream, type Readable, readable, read, Reader, type ReadRequest, release } from "./readable.ts";

/** The state that both branches share. */
export class Tee {
  declare readonly stream: Readable;
  declare reader: Reader;
  declare reading: boolean;
  /** For each branch: whether it has pulled during a read, whether it was cancelled, and why. */
  declare readonly again: boolean[];
  declare readonly cancelled: boolean[];
  declare readonly reasons: unknown[];
  declare readonly done: Deferred;
  declare branches: [Readable, Readable];

  constructor(stream: Readable) {
    this.stream = stream;
    this.reader = new Reader(stream);
    this.reading = false;
    this.again = [false, false];
    this.cancelled = [false, false];
    this.reasons = [undefined, undefined];
    this.done = deferred();
  }

  /** Runs does for each branch that was not cancelled. */
  each(does: (branch: any, i: number) => void): void {
    for (let i = 0; i < 2; i++) if (!this.cancelled[i]) does(this.branches[i].controller, i);
  }
  cancel(i: number, reason: unknown): Promise<unknown> {
    this.cancelled[i] = true;
    this.reasons[i] = reason;
    if (this.cancelled[1 - i]) this.done.resolve(cancelStream(this.stream, this.reasons));
    return this.done.promise;
  }
  /** Fails the branches with an error of the reader, unless it was replaced. */
  watch(): void {
    const { reader } = this;
    react(reader.closed.promise, nothing, (error) => {
      if (reader === this.reader) this.fail(error);
    });
  }
  fail(error: unknown, done: unknown = undefined): void {
    for (const { controller } of this.branches) controller.error(error);
    if (done !== undefined || !this.cancelled[0] || !this.cancelled[1]) this.done.resolve(done);
  }
  /** The result of does; if it throws, the stream is cancelled and the branches fail. */
  tried(does: () => unknown): unknown {
    try {
      return does();
    } catch (error) {
      this.fail(error, cancelStream(this.stream, error));
      return undefined;
    }
  }
  /** Called when a read has ended. Pulls again if a branch has pulled in the meantime. */
  over(pull: (i: number) => unknown): void {
    this.reading = false;
    if (this.again[0]) pull(0);
    else if (this.again[1]) pull(1);
  }
  /** Closes the branches, and resolves the promise of a cancelled one. */
  end(): void {
    this.reading = false;
    const open = !this.cancelled[0] || !this.cancelled[1];
    this.each((controller) => (controller instanceof ByteController ? controller.end() : controller.close()));
    if (open) this.done.resolve();
  }
}

/** With clone, the second branch gets copies. */
export function tee(stream: Readable, clone?: (chunk: unknown) => unknown): [Readable, Readable] {
  const shared = new Tee(stream);
  const bytes = stream.controller instanceof ByteController;
  const pull = (i: number): Promise<undefined> => {
    if (shared.reading) {
      shared.again[i] = true;
      return settled;
    }
    shared.reading = true;
    const request = bytes ? (shared.branches[i].controller as ByteController).byobRequest() : null;
    if (request) pullInto(shared, pull, i, request.view!);
    else pullChunk(shared, pull, bytes ? (chunk) => apply(slice, chunk, []) : clone, bytes);
    return settled;
  };
  const branch = (i: number): Readable => {
    const cancel = (reason: unknown) => shared.cancel(i, reason);
    return bytes ? byteStream(() => pull(i), cancel) : readable(1, undefined, () => pull(i), cancel);
  };
  shared.branches = [branch(0), branch(1)];
  shared.watch();
  return shared.branches;
}

const { slice } = Uint8Array.prototype;

/** Replaces the reader by one of the other kind. */
function replaced(shared: Tee, byob: boolean): void {
  if (shared.reader.byob === byob) return;
  release(shared.reader);
  shared.reader = new Reader(shared.stream, byob);
  shared.watch();
}

function pullChunk(shared: Tee, pull: (i: number) => unknown, clone: ((chunk: any) => unknown) | undefined, bytes: boolean): void {
  replaced(shared, false);
  read(shared.reader, {
    chunk: (chunk) =>
      later(() => {
        shared.again.fill(false);
        const { cancelled } = shared;
        let second = chunk;
        if (clone && !cancelled[1] && !(bytes && cancelled[0])) {
          second = shared.tried(() => clone(chunk));
          if (second === undefined && chunk !== undefined) return;
        }
        shared.each((controller, i) => controller.enqueue(i ? second : chunk));
        shared.over(pull);
      }),
    close: () => shared.end(),
    error: () => (shared.reading = false),
  });
}

/** Reads into the view that a branch's reader has given. */
function pullInto(shared: Tee, pull: (i: number) => unknown, i: number, view: Uint8Array): void {
  replaced(shared, true);
  const controllers = shared.branches.map(({ controller }) => controller as ByteController);
  const own = controllers[i];
  const other = controllers[1 - i];
  const { cancelled } = shared;
  const request: ReadRequest = {
    chunk: (chunk: Uint8Array) =>
      later(() => {
        shared.again.fill(false);
        if (!cancelled[1 - i]) {
          const copy = shared.tried(() => apply(slice, chunk, []));
          if (copy === undefined) return;
          if (!cancelled[i]) own.respondWithNewView(chunk);
          other.enqueue(copy as Uint8Array);
        } else if (!cancelled[i]) {
          own.respondWithNewView(chunk);
        }
        shared.over(pull);
      }),
    close: (chunk?: Uint8Array) => {
      shared.reading = false;
      const open = [!cancelled[i], !cancelled[1 - i]];
      if (open[0]) own.close();
      if (open[1]) other.close();
      if (chunk) {
        if (open[0]) own.respondWithNewView(chunk);
        if (open[1] && other.pending.length > 0) other.respond(0);
      }
      if (open[0] || open[1]) shared.done.resolve();
    },
    error: () => (shared.reading = false),
  };
  readInto(shared.reader, view, 1, request);
}
