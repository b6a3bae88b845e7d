// Readable of node:stream.

import { Buffer } from "./buffer.ts";
import events from "./events.ts";
import { coded } from "./errors.ts";
import { addAbort, common, configure, define, duplex, inherit, later, sizeFrom, Stream, toBytes, whenReady } from "./streambase.ts";
import { StringDecoder } from "./string_decoder.ts";

export function Readable(this: any, options: any = {}): any {
  if (!(this instanceof (Readable as any))) return new (Readable as any)(options);
  events.call(this, options);
  common(this, options);
  const objects = Boolean(options?.objectMode || options?.readableObjectMode);
  const stream = this;
  // Packages read members of the state, such as destroyed.
  this._readableState = {
    get destroyed() {
      return common(stream).destroyed;
    },
    get errored() {
      return common(stream).errored;
    },
    buffer: [] as any[],
    length: 0,
    objectMode: objects,
    highWaterMark: sizeFrom(options, "readableHighWaterMark", objects),
    decoder: options?.encoding ? new StringDecoder(options.encoding) : null,
    encoding: options?.encoding ?? null,
    flowing: null as boolean | null,
    ended: false,
    endScheduled: false,
    endEmitted: false,
    errorEmitted: false,
    reading: false,
    scheduled: false,
    readableListening: false,
    didRead: false,
    pipes: [] as any[],
  };
  configure(this, options, this[duplex] ? ["read"] : ["read", "destroy", "construct"]);
  if (options?.signal) addAbort(options.signal, this);
}
inherit(Readable, Stream);
export const R: any = Readable;

const sizeOf = (state: any, chunk: any): number => (state.objectMode ? 1 : chunk.length);

function push(stream: any, chunk: any, encoding: string | undefined, front: boolean): boolean {
  const state = stream._readableState;
  if (chunk === null) {
    state.reading = false;
    if (state.ended) return false;
    const rest = state.decoder?.end();
    if (rest) add(state, rest, false);
    state.ended = true;
    flow(stream);
    return false;
  }
  if (!state.objectMode) {
    if (typeof chunk === "string") {
      if (state.encoding !== (encoding ?? "utf8")) chunk = Buffer.from(chunk, encoding);
      else if (chunk === "") chunk = Buffer.alloc(0);
    } else {
      try {
        chunk = toBytes(chunk);
      } catch (error) {
        stream.destroy(error);
        return false;
      }
    }
  }
  state.reading = false;
  if (front ? state.endEmitted : state.ended) {
    stream.destroy(coded(Error, front ? "ERR_STREAM_UNSHIFT_AFTER_END_EVENT" : "ERR_STREAM_PUSH_AFTER_EOF", front ? "stream.unshift() after end event" : "stream.push() after EOF"));
    return false;
  }
  if (common(stream).destroyed) return false;
  if (state.objectMode || chunk.length > 0) {
    if (state.decoder && typeof chunk !== "string" && !front) chunk = state.decoder.write(chunk);
    if (state.objectMode || chunk.length > 0) add(state, chunk, front);
  }
  flow(stream);
  return state.length < state.highWaterMark;
}

function add(state: any, chunk: any, front: boolean): void {
  state.length += sizeOf(state, chunk);
  if (front) state.buffer.unshift(chunk);
  else state.buffer.push(chunk);
}

/** In a microtask, passes chunks to listeners, or asks for more. */
function flow(stream: any): void {
  const state = stream._readableState;
  if (state.scheduled) return;
  state.scheduled = true;
  later(() => {
    state.scheduled = false;
    if (common(stream).destroyed) return;
    if (state.flowing && !state.readableListening) {
      while (state.flowing && state.buffer.length > 0) stream.emit("data", take(state));
    } else if (state.readableListening && (state.length > 0 || (state.ended && !state.endEmitted))) {
      const before = state.length;
      stream.emit("readable");
      if (state.length < before && state.length > 0) flow(stream);
    }
    ending(stream);
    if (state.flowing || state.length < state.highWaterMark) ask(stream);
  });
}

/** Calls _read, unless the buffer is full or a call is running. */
function ask(stream: any): void {
  const state = stream._readableState;
  if (state.ended || state.reading || common(stream).destroyed) return;
  if (state.flowing === null && !state.readableListening && !state.didRead) return; // it has no reader yet
  if (state.flowing === false && !state.readableListening && state.length >= state.highWaterMark) return;
  if (state.length >= state.highWaterMark && state.length > 0) return;
  state.reading = true;
  whenReady(stream, () => {
    try {
      stream._read(state.highWaterMark);
    } catch (error) {
      stream.destroy(error);
    }
  });
}

function ending(stream: any): void {
  const state = stream._readableState;
  if (!state.ended || state.length > 0 || state.endEmitted || state.endScheduled || (state.flowing === null && !state.readableListening && !state.didRead)) return;
  if (state.flowing === false && !state.readableListening && !state.didRead) return;
  state.endScheduled = true;
  later(() => {
    state.endScheduled = false;
    if (common(stream).errored || state.endEmitted || state.length > 0) return; // unshift may have put something back
    state.endEmitted = true;
    stream.emit("end");
    const w = stream._writableState;
    if (w && stream.allowHalfOpen === false && !w.ending) stream.end();
    if (common(stream).autoDestroy && (!w || w.finished)) stream.destroy();
  });
}

function take(state: any, size?: number): any {
  if (state.objectMode) {
    state.length--;
    return state.buffer.shift();
  }
  if (size === undefined || size >= state.buffer[0].length) {
    if (size === undefined || size === state.buffer[0].length) {
      const first = state.buffer.shift();
      state.length -= first.length;
      return first;
    }
    const all = state.decoder ? state.buffer.join("") : Buffer.concat(state.buffer);
    state.buffer = [all];
  }
  const first = state.buffer[0];
  const part = first.slice(0, size);
  state.length -= part.length;
  if (part.length === first.length) state.buffer.shift();
  else state.buffer[0] = first.slice(size);
  return part;
}

define(R.prototype, {
  push(this: any, chunk: any, encoding?: string) {
    return push(this, chunk, encoding, false);
  },
  unshift(this: any, chunk: any, encoding?: string) {
    return push(this, chunk, encoding, true);
  },
  _read() {
    throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _read() method is not implemented");
  },
  read(this: any, size?: number) {
    const state = this._readableState;
    state.didRead = true;
    let chunk: any = null;
    if (size !== 0 && state.length > 0) {
      if (state.objectMode) chunk = take(state);
      else if (size === undefined || Number.isNaN(size)) {
        chunk = state.flowing && state.buffer.length > 0 ? take(state) : take(state, state.length);
      } else if (size <= state.length || state.ended) chunk = take(state, Math.min(size, state.length));
      else state.highWaterMark = Math.max(state.highWaterMark, size);
    }
    if (chunk === null && !state.ended) state.needReadable = true;
    ask(this);
    if (chunk !== null && this.listenerCount("data") > 0) this.emit("data", chunk);
    ending(this);
    return chunk;
  },
  on(this: any, name: string, listener: any) {
    events.prototype.on.call(this, name, listener);
    const state = this._readableState;
    if (name === "data") {
      if (state.flowing !== false) this.resume();
    } else if (name === "readable" && !state.endEmitted) {
      state.readableListening = true;
      state.flowing = false;
      flow(this);
    }
    return this;
  },
  removeListener(this: any, name: string, listener: any) {
    events.prototype.removeListener.call(this, name, listener);
    if (name === "readable") this._readableState.readableListening = this.listenerCount("readable") > 0;
    return this;
  },
  resume(this: any) {
    const state = this._readableState;
    if (!state.flowing) {
      state.flowing = !state.readableListening;
      later(() => this.emit("resume"));
    }
    flow(this);
    return this;
  },
  pause(this: any) {
    if (this._readableState.flowing !== false) {
      this._readableState.flowing = false;
      this.emit("pause");
    }
    return this;
  },
  /** Reads a stream that has only events, and perhaps pause and resume. */
  wrap(this: any, old: any) {
    let paused = false;
    old.on("data", (chunk: any) => {
      if (this.push(chunk) || typeof old.pause !== "function") return;
      paused = true;
      old.pause();
    });
    old.on("end", () => this.push(null));
    old.on("error", (error: unknown) => this.destroy(error));
    old.on("close", () => this.destroy());
    this._read = () => {
      if (paused) old.resume?.();
      paused = false;
    };
    return this;
  },
  isPaused(this: any) {
    return this._readableState.flowing === false;
  },
  setEncoding(this: any, encoding: string) {
    const state = this._readableState;
    state.decoder = new StringDecoder(encoding);
    state.encoding = state.decoder.encoding;
    const text = state.buffer.map((chunk: any) => state.decoder.write(chunk)).join("");
    state.buffer = text === "" ? [] : [text];
    state.length = text.length;
    return this;
  },
  pipe(this: any, into: any, options: { end?: boolean } = {}) {
    const state = this._readableState;
    const data = (chunk: any) => {
      if (into.write(chunk) === false) {
        this.pause();
        into.once("drain", drain);
      }
    };
    const drain = () => this.resume();
    const end = () => into.end();
    const fails = (error: unknown) => {
      this.unpipe(into);
      if (into.listenerCount("error") === 0) into.destroy ? into.destroy(error) : into.emit("error", error);
    };
    const close = () => this.unpipe(into);
    const stop = () => {
      this.removeListener("data", data);
      this.removeListener("end", end);
      into.removeListener("drain", drain);
      into.removeListener("error", fails);
      into.removeListener("close", close);
    };
    state.pipes.push({ into, stop });
    this.on("data", data);
    if (options?.end !== false) {
      if (state.endEmitted) later(end);
      else this.once("end", end);
    }
    into.prependListener?.("error", fails);
    into.once("close", close);
    into.emit("pipe", this);
    this.resume();
    return into;
  },
  unpipe(this: any, into?: any) {
    const state = this._readableState;
    const gone = state.pipes.filter((one: any) => into === undefined || one.into === into);
    state.pipes = state.pipes.filter((one: any) => !gone.includes(one));
    for (const { into, stop } of gone) {
      stop();
      into.emit("unpipe", this, { hasUnpiped: false });
    }
    if (gone.length > 0 && state.pipes.length === 0 && this.listenerCount("data") === 0) this.pause();
    return this;
  },
  get readable(): boolean {
    const { _readableState: state }: any = this;
    return state !== undefined && !state.endEmitted && !common(this).destroyed && !common(this).errored;
  },
  get readableLength() {
    return (this as any)._readableState.length;
  },
  get readableFlowing() {
    return (this as any)._readableState.flowing;
  },
  get readableEnded() {
    return (this as any)._readableState?.endEmitted ?? false;
  },
  get readableAborted() {
    return common(this).destroyed && !(this as any)._readableState.endEmitted;
  },
  get readableDidRead() {
    return (this as any)._readableState.didRead;
  },
  get readableEncoding() {
    return (this as any)._readableState.encoding;
  },
  get readableObjectMode() {
    return (this as any)._readableState.objectMode;
  },
  get readableHighWaterMark() {
    return (this as any)._readableState.highWaterMark;
  },
});
R.prototype.addListener = R.prototype.on;
R.prototype.off = R.prototype.removeListener;
