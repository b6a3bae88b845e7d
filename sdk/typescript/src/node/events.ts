// node:events: EventEmitter, once and on.

import { coded, needFunction, outOfRange, wrongType, wrongProperty } from "./errors.ts";

type Listener = ((...values: any[]) => unknown) & { listener?: Listener };
type Name = string | symbol;

const rejection = Symbol.for("nodejs.rejection");
const errorMonitor = Symbol("events.errorMonitor");
const captures = Symbol("kCapture");

/** It is a function and not a class, because packages call it on objects of their own. */
export function EventEmitter(this: any, options?: { captureRejections?: boolean }): void {
  EventEmitter.init.call(this, options);
}
const made: any = EventEmitter;
const { prototype } = made;

function needLimit(name: string, n: unknown): void {
  if (typeof n !== "number") throw wrongType(name, "of type number", n);
  if (!(n >= 0)) throw outOfRange(name, ">= 0", n);
}

let defaultMaxListeners = 10;
Object.defineProperty(made, "defaultMaxListeners", {
  enumerable: true,
  get: () => defaultMaxListeners,
  set(n: number) {
    needLimit("defaultMaxListeners", n);
    defaultMaxListeners = n;
  },
});

EventEmitter.init = function (this: any, options?: { captureRejections?: boolean }) {
  if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
    this._events = Object.create(null);
    this._eventsCount = 0;
  }
  this._maxListeners = this._maxListeners || undefined;
  const given = options?.captureRejections;
  if (given !== undefined && typeof given !== "boolean") throw wrongProperty("options.captureRejections", "of type boolean", given);
  if (given ?? made.captureRejections) this[captures] = true;
};

prototype._events = undefined;
prototype._eventsCount = 0;
prototype._maxListeners = undefined;

/** A value in a message. util.inspect would make each module with events larger. */
function shown(value: unknown): string {
  if (typeof value === "string") return `'${value}'`;
  try {
    return (typeof value === "object" && JSON.stringify(value)) || String(value);
  } catch {
    return String(value);
  }
}

/** The listeners of an event, which are not changed in place. */
const listenersOf = (emitter: any, name: Name): Listener[] => {
  const found = emitter._events?.[name];
  return found === undefined ? [] : typeof found === "function" ? [found] : found;
};

function store(emitter: any, name: Name, list: Listener[]): void {
  const had = emitter._events[name] !== undefined;
  if (list.length === 0) {
    if (had && --emitter._eventsCount === 0) emitter._events = Object.create(null);
    else delete emitter._events[name];
    return;
  }
  if (!had) emitter._eventsCount++;
  emitter._events[name] = list.length === 1 ? list[0] : list;
}

function add(emitter: any, name: Name, listener: Listener, first: boolean): any {
  needFunction("listener", listener);
  if (emitter._events === undefined) {
    emitter._events = Object.create(null);
    emitter._eventsCount = 0;
  } else if (emitter._events.newListener !== undefined) {
    emitter.emit("newListener", name, listener.listener ?? listener);
  }
  const list = listenersOf(emitter, name);
  store(emitter, name, first ? [listener, ...list] : [...list, listener]);
  return emitter;
}

function onceOf(emitter: any, name: Name, listener: Listener): Listener {
  needFunction("listener", listener);
  let fired = false;
  const wrapped: Listener = function (this: any, ...values) {
    if (fired) return;
    fired = true;
    emitter.removeListener(name, wrapped);
    return listener.apply(emitter, values);
  };
  wrapped.listener = listener;
  return wrapped;
}

const methods: Record<string, (this: any, ...given: any[]) => unknown> = {
  setMaxListeners(n: number) {
    needLimit("setMaxListeners", n);
    this._maxListeners = n;
    return this;
  },
  getMaxListeners() {
    return this._maxListeners ?? defaultMaxListeners;
  },
  emit(name: Name, ...values: any[]) {
    if (name === "error") {
      if (this._events?.[errorMonitor] !== undefined) this.emit(errorMonitor, ...values);
      if (this._events?.error === undefined) {
        const [error] = values;
        if (error instanceof Error) throw error;
        throw Object.assign(coded(Error, "ERR_UNHANDLED_ERROR", `Unhandled error. (${shown(error)})`), { context: error });
      }
    }
    const found = this._events?.[name];
    if (found === undefined) return false;
    for (const listener of typeof found === "function" ? [found] : found) {
      const result = listener.apply(this, values);
      if (result !== undefined && result !== null && this[captures]) capture(this, result, name, values);
    }
    return true;
  },
  on(name: Name, listener: Listener) {
    return add(this, name, listener, false);
  },
  prependListener(name: Name, listener: Listener) {
    return add(this, name, listener, true);
  },
  once(name: Name, listener: Listener) {
    return this.on(name, onceOf(this, name, listener));
  },
  prependOnceListener(name: Name, listener: Listener) {
    return this.prependListener(name, onceOf(this, name, listener));
  },
  removeListener(name: Name, listener: Listener) {
    needFunction("listener", listener);
    const list = listenersOf(this, name);
    const at = list.findLastIndex((one) => one === listener || one.listener === listener);
    if (at < 0) return this;
    const [removed] = list.slice(at, at + 1);
    store(this, name, list.toSpliced(at, 1));
    if (this._events.removeListener !== undefined) this.emit("removeListener", name, removed.listener ?? removed);
    return this;
  },
  removeAllListeners(name?: Name) {
    if (this._events === undefined) return this;
    const names = arguments.length > 0 ? [name!] : [...Reflect.ownKeys(this._events).filter((one) => one !== "removeListener"), "removeListener"];
    for (const one of names) {
      if (this._events.removeListener === undefined) {
        if (this._events[one] !== undefined) store(this, one, []);
      } else {
        for (const listener of listenersOf(this, one).toReversed()) this.removeListener(one, listener);
      }
    }
    return this;
  },
  listeners(name: Name) {
    return listenersOf(this, name).map((one) => one.listener ?? one);
  },
  rawListeners(name: Name) {
    return [...listenersOf(this, name)];
  },
  listenerCount(name: Name, listener?: Listener) {
    const list = listenersOf(this, name);
    return listener ? list.filter((one) => one === listener || one.listener === listener).length : list.length;
  },
  eventNames() {
    return this._eventsCount > 0 ? Reflect.ownKeys(this._events) : [];
  },
};
methods.addListener = methods.on;
methods.off = methods.removeListener;
Object.assign(prototype, methods);

/** Passes the rejection of a listener's promise to the emitter (captureRejections). */
function capture(emitter: any, result: any, name: Name, values: unknown[]): void {
  if (typeof result.then !== "function") return;
  result.then(undefined, (error: unknown) => {
    queueMicrotask(() => {
      if (typeof emitter[rejection] === "function") emitter[rejection](error, name, ...values);
      else emitter.emit("error", error);
    });
  });
}

const aborted = (signal: any): Error => Object.assign(new Error("The operation was aborted", { cause: signal.reason }), { code: "ABORT_ERR", name: "AbortError" });
const isTarget = (emitter: any): boolean => typeof emitter.on !== "function" && typeof emitter.addEventListener === "function";

function needSignal(signal: any): void {
  if (signal !== undefined && (typeof signal !== "object" || signal === null || !("aborted" in signal))) throw wrongProperty("options.signal", "an instance of AbortSignal", signal);
}
function needEmitter(emitter: any): void {
  if (typeof emitter?.on !== "function" && typeof emitter?.addEventListener !== "function") throw wrongType("emitter", "an instance of EventEmitter", emitter);
}

function listen(emitter: any, name: Name, listener: Listener, only: boolean): void {
  if (!isTarget(emitter)) emitter[only ? "once" : "on"](name, listener);
  else emitter.addEventListener(name, listener, { once: only });
}
function unlisten(emitter: any, name: Name, listener: Listener): void {
  if (!isTarget(emitter)) emitter.removeListener(name, listener);
  else emitter.removeEventListener(name, listener);
}

/** Returns a promise of the values of the next event. */
async function once(emitter: any, name: Name, options: { signal?: AbortSignal } = {}): Promise<unknown[]> {
  const { signal } = options;
  needSignal(signal);
  needEmitter(emitter);
  if (signal?.aborted) throw aborted(signal);
  return new Promise((done, failed) => {
    const stop = () => {
      unlisten(emitter, name, fires);
      if (name !== "error" && !isTarget(emitter)) unlisten(emitter, "error", fails);
      signal?.removeEventListener("abort", abort);
    };
    const fires = (...values: unknown[]) => (stop(), done(values));
    const fails = (error: unknown) => (stop(), failed(error));
    const abort = () => (stop(), failed(aborted(signal)));
    listen(emitter, name, fires, true);
    if (name !== "error" && !isTarget(emitter)) listen(emitter, "error", fails, true);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Returns an iterator of the values of all events from now on. */
function on(emitter: any, name: Name, options: { signal?: AbortSignal; close?: Name[] } = {}): AsyncIterableIterator<unknown[]> {
  const { signal } = options;
  needSignal(signal);
  needEmitter(emitter);
  if (signal?.aborted) throw aborted(signal);
  const values: unknown[][] = [];
  const waiting: { done: (result: IteratorResult<unknown[]>) => void; failed: (reason: unknown) => void }[] = [];
  let failure: { error: unknown } | undefined;
  let over = false;
  const fires = (...given: unknown[]) => {
    const next = waiting.shift();
    if (next) next.done({ value: given, done: false });
    else values.push(given);
  };
  const fails = (error: unknown) => {
    const next = waiting.shift();
    if (next) next.failed(error);
    else failure = { error };
    stop();
  };
  const abort = () => fails(aborted(signal));
  const stop = () => {
    over = true;
    unlisten(emitter, name, fires);
    if (name !== "error" && !isTarget(emitter)) unlisten(emitter, "error", fails);
    for (const one of options.close ?? []) unlisten(emitter, one, stop);
    signal?.removeEventListener("abort", abort);
    for (const next of waiting.splice(0)) next.done({ value: undefined, done: true });
    return Promise.resolve({ value: undefined, done: true as const });
  };
  listen(emitter, name, fires, false);
  if (name !== "error" && !isTarget(emitter)) listen(emitter, "error", fails, false);
  for (const one of options.close ?? []) listen(emitter, one, stop, true);
  signal?.addEventListener("abort", abort, { once: true });
  return {
    next() {
      if (values.length > 0) return Promise.resolve({ value: values.shift()!, done: false });
      if (failure) {
        const { error } = failure;
        failure = undefined;
        return Promise.reject(error);
      }
      if (over) return Promise.resolve({ value: undefined, done: true });
      return new Promise((done, failed) => waiting.push({ done, failed }));
    },
    return: stop,
    throw(error: unknown) {
      if (!(error instanceof Error)) throw wrongType("EventEmitter.AsyncIterator", "an instance of Error", error);
      failure = { error };
      stop();
      return Promise.resolve({ value: undefined, done: true });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

class EventEmitterAsyncResource extends made {}

Object.assign(made, {
  EventEmitter,
  EventEmitterAsyncResource,
  once,
  on,
  errorMonitor,
  captureRejectionSymbol: rejection,
  captureRejections: false,
  usingDomains: false,
  listenerCount: (emitter: any, name: Name) => (isTarget(emitter) ? 0 : emitter.listenerCount(name)),
  getEventListeners: (emitter: any, name: Name) => (isTarget(emitter) ? [] : emitter.listeners(name)),
  getMaxListeners: (emitter: any) => emitter.getMaxListeners?.() ?? 0,
  setMaxListeners(n: number, ...emitters: any[]) {
    needLimit("setMaxListeners", n);
    if (emitters.length === 0) made.defaultMaxListeners = n;
    for (const emitter of emitters) emitter.setMaxListeners?.(n);
  },
  addAbortListener(signal: AbortSignal, listener: () => void) {
    if (signal.aborted) queueMicrotask(listener);
    else signal.addEventListener("abort", listener, { once: true });
    return { [(Symbol as any).dispose ?? Symbol.for("nodejs.dispose")]: () => signal.removeEventListener("abort", listener) };
  },
});

export default made;
