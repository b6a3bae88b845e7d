// The base of the streams of Node.js: their common state, and how they are destroyed. The classes are functions, because
// packages call them on objects of their own.

import { Buffer } from "./buffer.ts";
import events from "./events.ts";
import { coded, wrongType } from "./errors.ts";

export type Callback = (error?: any, value?: any) => void;

export const later = (does: () => void): void => queueMicrotask(does);
export const define = (of: any, members: any): void => Object.defineProperties(of, Object.getOwnPropertyDescriptors(members));

/** Makes a constructor inherit from another one: its prototype and its static members. */
export function inherit(made: any, above: any): void {
  Object.setPrototypeOf(made, above);
  Object.setPrototypeOf(made.prototype, above.prototype);
}

export function Stream(this: any, options?: any): void {
  events.call(this, options);
}
inherit(Stream, events);
export const S: any = Stream;

/** The pipe of streams that only have events. */
S.prototype.pipe = function (this: any, into: any, options?: { end?: boolean }) {
  let over = false;
  const data = (chunk: any) => {
    if (into.writable && into.write(chunk) === false) this.pause?.();
  };
  const drain = () => this.readable && this.resume?.();
  const end = () => {
    if (!over) into.end();
    over = true;
  };
  const close = () => {
    if (!over) into.destroy?.();
    over = true;
  };
  const fails = function (this: any, error: unknown) {
    stop();
    if (this.listenerCount("error") === 0) this.emit("error", error);
  };
  const listeners = [[this, "data", data], [into, "drain", drain], [this, "error", fails], [into, "error", fails]] as [any, string, any][];
  if (options?.end !== false) listeners.push([this, "end", end], [this, "close", close]);
  const stop = () => {
    for (const [stream, name, listener] of listeners) stream.removeListener(name, listener);
  };
  for (const [stream, name, listener] of [...listeners]) stream.on(name, listener);
  listeners.push([this, "end", stop], [this, "close", stop], [into, "close", stop]);
  for (const [stream, name] of listeners.slice(-3)) stream.on(name, stop);
  into.emit("pipe", this);
  return into;
};

/** The state that Readable and Writable of a Duplex share. The constructor that runs first makes it. */
interface Common {
  destroyed: boolean;
  closed: boolean;
  errored: any;
  autoDestroy: boolean;
  emitClose: boolean;
  /** Whether _construct is done. */
  ready: boolean;
  waiting: (() => void)[];
}
const commons = new WeakMap<object, Common>();

export function common(stream: any, options: any = {}): Common {
  let state = commons.get(stream);
  if (!state) {
    state = { destroyed: false, closed: false, errored: null, autoDestroy: options.autoDestroy !== false, emitClose: options.emitClose !== false, ready: true, waiting: [] };
    commons.set(stream, state);
  }
  return state;
}

/** Takes the methods from the options of a constructor, and calls _construct. */
export function configure(stream: any, options: any, names: string[]): void {
  for (const name of names) if (typeof options?.[name] === "function") stream[`_${name}`] = options[name];
  const state = common(stream);
  if (typeof stream._construct !== "function" || !state.ready) return;
  state.ready = false;
  const made = (error?: any) => {
    state.ready = true;
    if (error) stream.destroy(error);
    for (const does of state.waiting.splice(0)) does();
  };
  later(() => {
    try {
      stream._construct(made);
    } catch (error) {
      made(error);
    }
  });
}

/** Runs the function once _construct is done. */
export const whenReady = (stream: any, does: () => void): void => {
  const state = common(stream);
  if (state.ready) does();
  else state.waiting.push(does);
};

/** Tells the callbacks that wait that the stream is destroyed. */
function rejectWaiting(stream: any): void {
  const state = stream._writableState;
  if (state.writing) return;
  const told = (method: string) => common(stream).errored ?? coded(Error, "ERR_STREAM_DESTROYED", `Cannot call ${method} after a stream was destroyed`);
  for (const { back } of state.queue.splice(0)) back(told("write"));
  for (const back of state.onEnd.splice(0)) back(told("end"));
}

const destroyMethods = {
  destroy(this: any, error?: any, back?: Callback) {
    const state = common(this);
    if (state.destroyed) {
      back?.(error);
      return this;
    }
    state.destroyed = true;
    if (error) state.errored ??= error;
    if (this._writableState) later(() => rejectWaiting(this));
    const closed = (failed?: any) => {
      if (failed && !state.errored) state.errored = failed;
      later(() => {
        back?.(failed);
        if (failed && !(this._readableState?.errorEmitted || this._writableState?.errorEmitted)) {
          for (const one of [this._readableState, this._writableState]) if (one) one.errorEmitted = true;
          this.emit("error", failed);
        }
        state.closed = true;
        if (state.emitClose) this.emit("close");
      });
    };
    whenReady(this, () => {
      try {
        this._destroy(error ?? null, closed);
      } catch (failed) {
        closed(failed);
      }
    });
    return this;
  },
  _destroy(error: any, back: Callback) {
    back(error);
  },
  get destroyed(): boolean {
    return common(this).destroyed;
  },
  set destroyed(value: boolean) {
    common(this).destroyed = value;
  },
  get closed(): boolean {
    return common(this).closed;
  },
  get errored(): any {
    return common(this).errored;
  },
};
define(S.prototype, destroyMethods);

export const defaultSize = (objects: boolean): number => (objects ? 16 : 65536);

/** The highWaterMark of the options. */
export function sizeFrom(options: any, own: string, objects: boolean): number {
  const name = options?.[own] != null ? own : "highWaterMark";
  const size = options?.[name] ?? defaultSize(objects);
  if (!Number.isInteger(size) || size < 0) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The property 'options.${name}' is invalid. Received ${typeof size === "string" ? `'${size}'` : String(size)}`);
  return size;
}

export function toBytes(chunk: any, encoding?: string): any {
  if (typeof chunk === "string") return Buffer.from(chunk, encoding);
  if (chunk instanceof Buffer) return chunk;
  if (ArrayBuffer.isView(chunk)) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw wrongType("chunk", "of type string or an instance of Buffer, TypedArray, or DataView", chunk);
}

/** Marks the prototype of Duplex, whose instances are readable and writable. */
export const duplex = Symbol("duplex");

/** The error of what is aborted, with the signal's reason, if there is one. */
export const abortError = (signal?: AbortSignal): Error =>
  Object.assign(new Error("The operation was aborted", signal && { cause: signal.reason }), { code: "ABORT_ERR", name: "AbortError" });

/** Destroys the stream when the signal is aborted. */
export function addAbort(signal: AbortSignal, stream: any): any {
  if (typeof signal !== "object" || !("aborted" in signal)) throw wrongType("signal", "an instance of AbortSignal", signal);
  const abort = () => stream.destroy(abortError(signal));
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return stream;
}
