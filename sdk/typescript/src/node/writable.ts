// Writable of node:stream.

import events from "./events.ts";
import { coded } from "./errors.ts";
import { addAbort, type Callback, common, configure, define, duplex, inherit, later, sizeFrom, Stream, toBytes, whenReady } from "./streambase.ts";

export function Writable(this: any, options: any = {}): any {
  if (!(this instanceof (Writable as any))) return new (Writable as any)(options);
  events.call(this, options);
  common(this, options);
  initWritable(this, options);
  configure(this, options, ["write", "writev", "final", "destroy", "construct"]);
  if (options?.signal) addAbort(options.signal, this);
}
inherit(Writable, Stream);
export const W: any = Writable;

export function initWritable(stream: any, options: any): void {
  const objects = Boolean(options?.objectMode || options?.writableObjectMode);
  // Packages read members of the state, such as ended and destroyed.
  stream._writableState = {
    get ended() {
      return this.ending;
    },
    get destroyed() {
      return common(stream).destroyed;
    },
    get errored() {
      return common(stream).errored;
    },
    queue: [] as any[],
    length: 0,
    objectMode: objects,
    highWaterMark: sizeFrom(options, "writableHighWaterMark", objects),
    decodeStrings: options?.decodeStrings !== false,
    defaultEncoding: options?.defaultEncoding ?? "utf8",
    writing: false,
    /** How many callbacks of writes have yet to be called. */
    pending: 0,
    corked: 0,
    needDrain: false,
    ending: false,
    finalCalled: false,
    prefinished: false,
    finished: false,
    errorEmitted: false,
    onEnd: [] as Callback[],
  };
}

/** Writes what waits, one after the other. */
function pump(stream: any): void {
  const state = stream._writableState;
  while (!state.writing && state.corked === 0 && state.queue.length > 0 && common(stream).ready && !common(stream).destroyed && !common(stream).errored) {
    const many = state.queue.length > 1 && typeof stream._writev === "function";
    writeItems(stream, state.queue.splice(0, many ? state.queue.length : 1), many);
  }
  if (state.queue.length === 0) finishing(stream);
}

function writeItems(stream: any, items: any[], many: boolean): void {
  const state = stream._writableState;
  let sync = true;
  let called = false;
  state.writing = true;
  const done = (error?: any) => {
    if (called) return stream.destroy(coded(Error, "ERR_MULTIPLE_CALLBACK", "Callback called multiple times"));
    called = true;
    state.writing = false;
    for (const item of items) state.length -= item.size;
    const after = () => {
      state.pending--;
      if (error) {
        for (const { back } of items) back(error);
        return stream.destroy(error);
      }
      if (state.needDrain && state.length === 0 && !state.ending && !common(stream).destroyed) {
        state.needDrain = false;
        stream.emit("drain");
      }
      for (const { back } of items) back(null);
      pump(stream);
    };
    state.pending++;
    if (error) common(stream).errored ??= error;
    if (sync) later(after);
    else after();
  };
  // What _write throws is the caller's, as in Node.js.
  if (many || typeof stream._write !== "function") stream._writev(items.map(({ chunk, encoding }: any) => ({ chunk, encoding })), done);
  else stream._write(items[0].chunk, items[0].encoding, done);
  sync = false;
}

/** Calls _final once all is written, and finishes once all callbacks are called. */
function finishing(stream: any): void {
  const state = stream._writableState;
  if (!state.ending || state.writing || !common(stream).ready || common(stream).destroyed || common(stream).errored) return;
  if (state.prefinished && state.pending === 0) return later(() => finish(stream));
  if (state.finalCalled) return;
  state.finalCalled = true;
  const done = (error?: any) => {
    if (error) return stream.destroy(error);
    state.prefinished = true;
    stream.emit("prefinish");
    finishing(stream);
  };
  if (typeof stream._final !== "function") return done();
  later(() => {
    try {
      stream._final(done);
    } catch (error) {
      done(error);
    }
  });
}

function finish(stream: any): void {
  const state = stream._writableState;
  if (state.finished || (common(stream).destroyed && common(stream).errored)) return;
  state.finished = true;
  for (const back of state.onEnd.splice(0)) back();
  stream.emit("finish");
  if (common(stream).autoDestroy && (!stream._readableState || stream._readableState.endEmitted)) stream.destroy();
}

/** The error of a write that comes too late, if it does. */
function writeRefused(stream: any): Error | undefined {
  if (stream._writableState.ending) return coded(Error, "ERR_STREAM_WRITE_AFTER_END", "write after end");
  return common(stream).destroyed ? coded(Error, "ERR_STREAM_DESTROYED", "Cannot call write after a stream was destroyed") : undefined;
}

const none = (): void => {};

export const writableMethods = {
  write(this: any, chunk: any, encoding?: any, back?: Callback): boolean {
    const state = this._writableState;
    if (typeof encoding === "function") [encoding, back] = [undefined, encoding];
    if (chunk === null) throw coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
    encoding ??= state.defaultEncoding;
    if (!state.objectMode) {
      if (typeof chunk !== "string") [chunk, encoding] = [toBytes(chunk), "buffer"];
      else if (state.decodeStrings) [chunk, encoding] = [toBytes(chunk, encoding), "buffer"];
    }
    const error = writeRefused(this);
    if (error) {
      later(() => back?.(error));
      if (!common(this).destroyed) this.destroy(error);
      return false;
    }
    const size = state.objectMode ? 1 : chunk.length;
    state.length += size;
    state.queue.push({ chunk, encoding, size, back: back ?? none });
    const room = state.length < state.highWaterMark;
    if (!room) state.needDrain = true;
    whenReady(this, () => pump(this));
    return room && !common(this).errored && !common(this).destroyed;
  },
  end(this: any, chunk?: any, encoding?: any, back?: Callback) {
    const state = this._writableState;
    if (typeof chunk === "function") [chunk, back] = [undefined, chunk];
    else if (typeof encoding === "function") [encoding, back] = [undefined, encoding];
    const refused = state.ending || common(this).destroyed;
    if (chunk !== undefined && chunk !== null) this.write(chunk, encoding);
    if (state.corked > 0) {
      state.corked = 1;
      this.uncork();
    }
    if (refused) {
      let error: any;
      if (chunk !== undefined && chunk !== null) error = writeRefused(this);
      else if (state.finished) error = coded(Error, "ERR_STREAM_ALREADY_FINISHED", "Cannot call end after a stream was finished");
      else if (common(this).destroyed) error = coded(Error, "ERR_STREAM_DESTROYED", "Cannot call end after a stream was destroyed");
      if (back && error) later(() => back(error));
      else if (back) state.onEnd.push(back);
      return this;
    }
    if (back) state.onEnd.push(back);
    state.ending = true;
    whenReady(this, () => pump(this));
    return this;
  },
  cork(this: any) {
    this._writableState.corked++;
  },
  uncork(this: any) {
    const state = this._writableState;
    if (state.corked > 0 && --state.corked === 0) pump(this);
  },
  setDefaultEncoding(this: any, encoding: string) {
    this._writableState.defaultEncoding = encoding;
    return this;
  },
  _write(this: any, chunk: any, encoding: string, done: Callback) {
    if (typeof this._writev === "function") this._writev([{ chunk, encoding }], done);
    else throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _write() method is not implemented");
  },
  get writable(): boolean {
    const { _writableState: state }: any = this;
    return state !== undefined && !state.ending && !common(this).destroyed && !common(this).errored;
  },
  get writableAborted(): boolean {
    return common(this).destroyed && !(this as any)._writableState.finished;
  },
  get writableLength() {
    return (this as any)._writableState.length;
  },
  get writableEnded() {
    return (this as any)._writableState?.ending ?? false;
  },
  get writableFinished() {
    return (this as any)._writableState?.finished ?? false;
  },
  get writableNeedDrain() {
    const { _writableState: state }: any = this;
    return state.needDrain && !state.ending && !common(this).destroyed;
  },
  get writableCorked() {
    return (this as any)._writableState.corked;
  },
  get writableObjectMode() {
    return (this as any)._writableState.objectMode;
  },
  get writableHighWaterMark() {
    return (this as any)._writableState.highWaterMark;
  },
};
define(W.prototype, writableMethods);
W.prototype.pipe = function () {
  this.destroy(coded(Error, "ERR_STREAM_CANNOT_PIPE", "Cannot pipe, not readable"));
};
Object.defineProperty(Writable, Symbol.hasInstance, {
  value(this: any, value: any) {
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    return this === Writable && Boolean(value?.[duplex]);
  },
});
