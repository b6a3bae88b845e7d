// Piping (Streams Standard, 4.9.1, ReadableStreamPipeTo).

import { AbortSignal, addAlgorithm, removeAlgorithm } from "../abort.ts";
import { deferred, dictionary, handled, later, nothing, react, type Settle, settled } from "./common.ts";
import { cancelStream, read, type Readable, Reader, release, State } from "./readable.ts";
import { abortStream, closeWritable, closing, desiredSize, releaseWriter, type Writable, write, Writer, Writing } from "./writable.ts";

export interface PipeOptions {
  preventAbort: boolean;
  preventCancel: boolean;
  preventClose: boolean;
  signal: AbortSignal | undefined;
}

/** StreamPipeOptions (4.2). */
export function pipeOptions(given: unknown): PipeOptions {
  const from = dictionary(given, "the options of a pipe");
  const preventAbort = Boolean(from.preventAbort);
  const preventCancel = Boolean(from.preventCancel);
  const preventClose = Boolean(from.preventClose);
  const { signal } = from;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError("the signal of a pipe must be an AbortSignal");
  return { preventAbort, preventCancel, preventClose, signal };
}

/** Pipes one stream to another; neither may be locked. If quiet, a rejection of the promise is not reported. */
export function pipe(from: Readable, to: Writable, { preventAbort, preventCancel, preventClose, signal }: PipeOptions, quiet: boolean): Promise<any> {
  const reader = new Reader(from);
  const writer = new Writer(to);
  const done = deferred();
  let down = false;
  let writes = 0; // how many chunks were read and are not written yet
  let after: (() => void) | undefined; // called when all are written
  from.disturbed = true;
  if (quiet) handled(done.promise);

  const finish = (failed: boolean, error: unknown): void => {
    releaseWriter(writer);
    release(reader);
    if (signal) removeAlgorithm(signal, abort);
    if (failed) done.reject(error);
    else done.resolve();
  };
  const over = (): void => {
    writes--;
    if (after && writes === 0) later(after);
  };
  /** Ends the pipe, after the action. */
  const shutdown = (action: (() => Promise<unknown>) | undefined, failed: boolean, error?: unknown): void => {
    if (down) return;
    down = true;
    const act = (): void => {
      if (action) react(action(), () => finish(failed, error), (error) => finish(true, error));
      else finish(failed, error);
    };
    if (to.state !== Writing.writable || closing(to)) act();
    else if (writes === 0) later(act);
    else after = act;
  };

  const abort = (): void => {
    const error = signal!.reason;
    shutdown(() => {
      const actions: Promise<unknown>[] = [];
      if (!preventAbort) actions.push(to.state === Writing.writable ? abortStream(to, error) : settled);
      if (!preventCancel) actions.push(from.state === State.readable ? cancelStream(from, error) : settled);
      return Promise.all(actions);
    }, true, error);
  };
  if (signal) {
    if (signal.aborted) {
      abort();
      return done.promise;
    }
    addAlgorithm(signal, abort);
  }

  const sourceFailed = (error: unknown): void => shutdown(preventAbort ? undefined : () => abortStream(to, error), true, error);
  const sourceClosed = (): void => shutdown(preventClose ? undefined : () => closed(to), false);
  const destinationFailed = (error: unknown): void => shutdown(preventCancel ? undefined : () => cancelStream(from, error), true, error);
  if (from.state === State.errored) sourceFailed(from.error);
  else react(reader.closed.promise, from.state === State.closed ? nothing : sourceClosed, sourceFailed);
  if (to.state === Writing.errored) destinationFailed(to.error);
  else react(writer.closed.promise, nothing, destinationFailed);
  if (from.state === State.closed) sourceClosed();
  if (closing(to) || to.state === Writing.closed) destinationFailed(new TypeError("the destination of the pipe is closed"));

  const request: Settle = { resolve: over, reject: over };
  const reads = {
    chunk(chunk: unknown): void {
      writes++;
      later(() => {
        if (writer.stream) write(writer, chunk, request);
        step();
      });
    },
    close: nothing,
    error: nothing,
  };
  const step = (): void => {
    const size = down ? null : desiredSize(to);
    if (size === null) return;
    if (size <= 0) writer.ready.wait(step);
    else read(reader, reads);
  };
  step();
  return done.promise;
}

/** WritableStreamDefaultWriterCloseWithErrorPropagation. */
function closed(to: Writable): Promise<unknown> {
  if (closing(to) || to.state === Writing.closed) return settled;
  return to.state === Writing.errored ? Promise.reject(to.error) : closeWritable(to);
}
