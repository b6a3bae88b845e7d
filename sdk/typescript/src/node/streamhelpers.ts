// node:stream: pipeline, finished, the methods of iteration, and conversions to streams of the web.

import { coded, needFunction, outOfRange, wrongType } from "./errors.ts";
import { abortError } from "./streambase.ts";

type Callback = (error?: any, value?: any) => void;

const isReadable = (stream: any): boolean => typeof stream?.pipe === "function" && stream._readableState !== undefined;
const isWritable = (stream: any): boolean => typeof stream?.write === "function" && typeof stream.on === "function";
const isStream = (stream: any): boolean => isReadable(stream) || isWritable(stream) || (typeof stream?.pipe === "function" && typeof stream.on === "function");
const early = "ERR_STREAM_PREMATURE_CLOSE";
const closedEarly = () => coded(Error, early, "Premature close");
const count = (n: unknown): number => {
  if (!((n as number) >= 0)) throw outOfRange("number", ">= 0", n);
  return n as number;
};

/** Calls the function once the stream has ended, finished, or failed. */
function finished(stream: any, options: any, back?: Callback): () => void {
  if (typeof options === "function") [options, back] = [{}, options];
  needFunction("callback", back);
  if (!isStream(stream)) throw wrongType("stream", "an instance of ReadableStream, WritableStream, or Stream", stream);
  const readable = options?.readable ?? isReadable(stream);
  const writable = options?.writable ?? (isWritable(stream) && stream._writableState !== undefined);
  let ended = !readable || stream.readableEnded === true;
  let done = !writable || stream.writableFinished === true;
  let called = false;
  const call = (error?: any) => {
    if (called) return;
    called = true;
    stop();
    back!.call(stream, error);
  };
  const end = () => {
    ended = true;
    if (done) call();
  };
  const finish = () => {
    done = true;
    if (ended) call();
  };
  const close = () => call(ended && done ? undefined : (stream.errored ?? closedEarly()));
  const stop = () => {
    stream.removeListener("end", end);
    stream.removeListener("finish", finish);
    stream.removeListener("error", call);
    stream.removeListener("close", close);
  };
  stream.on("end", end);
  stream.on("finish", finish);
  if (options?.error !== false) stream.on("error", call);
  stream.on("close", close);
  if (stream.closed) queueMicrotask(close);
  else if (ended && done && (readable || writable)) queueMicrotask(() => call());
  if (options?.signal) {
    const abort = () => call(abortError(options.signal));
    if (options.signal.aborted) queueMicrotask(abort);
    else options.signal.addEventListener("abort", abort, { once: true });
  }
  return stop;
}

/** Iterates over the chunks, and destroys the stream if the loop ends early. */
async function* iterate(stream: any, { destroyOnReturn = true } = {}): AsyncGenerator<any> {
  let failure: any;
  let over = false;
  let wake: () => void = () => {};
  const next = () => wake();
  stream.on("readable", next);
  const stop = finished(stream, { writable: false }, (error) => {
    failure = error;
    over = true;
    next();
  });
  try {
    for (;;) {
      const { objectMode, buffer } = stream._readableState;
      const chunk = stream.destroyed ? null : stream.read(objectMode ? undefined : buffer?.[0]?.length); // one chunk after the other
      if (chunk !== null) yield chunk;
      else if (failure) throw failure;
      else if (over) return;
      else await new Promise<void>((done) => (wake = done));
    }
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    stream.removeListener("readable", next);
    // The listener of finished stays for the error of a loop that has ended before.
    if (stream.destroyed || over) stop();
    else if (destroyOnReturn) stream.destroy(abortError());
    else stop();
  }
}

export function addHelpers(S: any, kinds: any): void {
  const { Readable, Writable, Duplex, defaultSize } = kinds;

  /** Makes a stream of a list, an iterator, or a generator. */
  function from(source: any, options: any = {}): any {
    if (typeof source === "string" || source instanceof Uint8Array) {
      return new Readable({ objectMode: true, ...options, read(this: any) {
        this.push(source);
        this.push(null);
      } });
    }
    const iterator = source?.[Symbol.asyncIterator]?.() ?? source?.[Symbol.iterator]?.();
    if (!iterator) throw wrongType("iterable", "an instance of Iterable", source);
    let reading = false;
    const stream = new Readable({ objectMode: true, highWaterMark: 1, ...options });
    stream._read = () => {
      if (reading) return;
      reading = true;
      void (async () => {
        try {
          for (;;) {
            const step = await iterator.next();
            if (step.done) return stream.push(null);
            const value = await step.value;
            if (value === null) throw coded(TypeError, "ERR_STREAM_NULL_VALUES", "May not write null values to stream");
            if (!stream.push(value)) break;
          }
          reading = false;
        } catch (error) {
          stream.destroy(error);
        }
      })();
    };
    stream._destroy = (error: any, back: Callback) => {
      void (async () => {
        if (error && typeof iterator.throw === "function") {
          const step = await iterator.throw(error);
          await step.value;
          if (step.done) return;
        }
        await iterator.return?.();
      })().then(() => back(error), (failed) => back(failed ?? error));
    };
    return stream;
  }

  /** The stream of a step of a pipeline, which may also be a generator function or an iterable. */
  function stepOf(step: any, before: any, last: boolean): any {
    if (isStream(step)) return step;
    if (typeof step === "function") {
      const made = step(before ?? undefined, {});
      if (last && typeof made?.then === "function") return made;
      return from(made);
    }
    if (typeof step?.getReader === "function") return Readable.fromWeb(step);
    if (typeof step?.getWriter === "function") return Writable.fromWeb(step);
    return from(step);
  }

  /** Pipes streams one into the next, and destroys all if one fails. */
  function pipeline(...given: any[]): any {
    const back: Callback = given.pop();
    needFunction("callback", back);
    let options: any = {};
    const list = Array.isArray(given[0]) && given.length === 1 ? given[0] : given;
    const tail = list.at(-1);
    if (tail && !isStream(tail) && typeof tail === "object" && typeof tail.write !== "function" && ("signal" in tail || "end" in tail)) options = list.pop();
    if (list.length < 2) throw coded(TypeError, "ERR_MISSING_ARGS", 'The "streams" argument must be specified');
    const streams: any[] = [];
    let left = 0;
    let failure: any;
    let value: any;
    let called = false;
    const settle = (error?: any) => {
      left--;
      if (error && (!failure || failure.code === early)) failure = error;
      if (left > 0 && !error) return;
      for (const { stream, iterated } of streams) if (!stream.destroyed && (failure || iterated)) stream.destroy?.(failure ?? abortError());
      if (called) return;
      called = true;
      const end = () => back(failure, value);
      if (failure?.code === early) (globalThis as any).setImmediate(end); // a better error may follow
      else queueMicrotask(end);
    };
    let before: any;
    for (const [i, step] of list.entries()) {
      const last = i === list.length - 1;
      const stream = stepOf(step, before, last);
      if (typeof stream.then === "function" && !isStream(stream)) {
        left++;
        stream.then((result: unknown) => ((value = result), settle()), settle);
        break;
      }
      // The function of the next step iterates the stream, and ends when it likes.
      const iterated = typeof list[i + 1] === "function";
      streams.push({ stream, iterated });
      stream.on("error", (error: any) => {
        if (iterated && error.code !== early && error.name !== "AbortError") settle(error);
      });
      if (!iterated && !(last && options.end === false)) {
        left++;
        finished(stream, { readable: !last && isReadable(stream), writable: i > 0 && isWritable(stream) && typeof step !== "function" }, settle);
      }
      if (before && typeof step !== "function") before.pipe(stream, { end: !last || options.end !== false });
      before = stream;
    }
    if (options.signal) for (const { stream } of streams) kinds.addAbortSignal(options.signal, stream);
    return before;
  }

  const promises = {
    pipeline: (...given: any[]) => new Promise((done, failed) => pipeline(...given, (error: any, value: any) => (error ? failed(error) : done(value)))),
    finished: (stream: any, options: any = {}) => new Promise<void>((done, failed) => void finished(stream, options, (error) => (error ? failed(error) : done()))),
  };

  /** One stream that reads from one stream and writes to another; either may be undefined. */
  function paired(readable: any, writable: any): any {
    let goOn: Callback | undefined;
    const both = new Duplex({
      readableObjectMode: readable?.readableObjectMode,
      writableObjectMode: writable?.writableObjectMode,
      read() {
        readable?.resume();
      },
      write(chunk: any, encoding: string, back: Callback) {
        if (writable.write(chunk, encoding === "buffer" ? undefined : encoding)) back();
        else goOn = back;
      },
      final(back: Callback) {
        if (!writable) return back();
        writable.end();
        writable.once("finish", () => back());
      },
      destroy(error: any, back: Callback) {
        for (const one of [readable, writable]) if (one && !one.destroyed) one.destroy(error ?? undefined);
        back(error);
      },
    });
    writable?.on("drain", () => {
      const back = goOn;
      goOn = undefined;
      back?.();
    });
    readable?.on("data", (chunk: any) => {
      if (!both.push(chunk)) readable.pause();
    });
    readable?.on("end", () => both.push(null));
    readable?.pause();
    if (!readable) both.push(null);
    if (!writable) both.end();
    for (const one of new Set([readable, writable])) one?.on("error", (error: unknown) => both.destroy(error));
    return both;
  }

  /** One stream of several steps: what is written to the first is read from the last. */
  function compose(...steps: any[]): any {
    const all = steps.map((step, i) => (isStream(step) ? step : i === 0 || typeof step === "function" ? duplexFrom(step) : stepOf(step, undefined, false)));
    if (all.length === 1) return all[0];
    const [first, last] = [all[0], all.at(-1)];
    const both = paired(isReadable(last) ? last : undefined, isWritable(first) ? first : undefined);
    pipeline(...all, (error: any) => error && both.destroy(error));
    return both;
  }

  /** A Duplex of what pipeline accepts as a step, or of a pair of streams. */
  function duplexFrom(source: any): any {
    if (isStream(source)) return source;
    if (typeof source === "function") {
      const input = new kinds.PassThrough({ objectMode: true });
      const made = source(input, {});
      if (typeof made?.then !== "function" || made[Symbol.asyncIterator]) return paired(from(made), input);
      const both = paired(undefined, input);
      made.then(undefined, (error: unknown) => both.destroy(error));
      return both;
    }
    if (source?.readable || source?.writable) {
      const [readable, writable] = [source.readable, source.writable];
      return paired(readable && stepOf(readable, undefined, false), writable && stepOf(writable, undefined, false));
    }
    return from(source);
  }

  const helpers: Record<string, any> = {
    [Symbol.asyncIterator]() {
      return iterate(this);
    },
    iterator(options: any) {
      return iterate(this, options);
    },
    map(does: any) {
      needFunction("fn", does);
      return from((async function* (stream) {
        for await (const one of stream) yield await does(one, {});
      })(this as any));
    },
    filter(does: any) {
      needFunction("fn", does);
      return from((async function* (stream) {
        for await (const one of stream) if (await does(one, {})) yield one;
      })(this as any));
    },
    flatMap(does: any) {
      needFunction("fn", does);
      return from((async function* (stream) {
        for await (const one of stream) yield* await does(one, {});
      })(this as any));
    },
    take(n: number) {
      count(n);
      return from((async function* (stream) {
        if (n > 0) for await (const one of stream) {
          yield one;
          if (--n <= 0) return;
        }
      })(this as any));
    },
    drop(n: number) {
      count(n);
      return from((async function* (stream) {
        for await (const one of stream) if (n-- <= 0) yield one;
      })(this as any));
    },
    async toArray() {
      const all: unknown[] = [];
      for await (const one of this as any) all.push(one);
      return all;
    },
    async forEach(does: any) {
      for await (const one of this as any) await does(one, {});
    },
    async reduce(does: any, initial?: any) {
      let value = initial;
      let empty = arguments.length < 2;
      for await (const one of this as any) {
        value = empty ? one : await does(value, one, {});
        empty = false;
      }
      if (empty) throw coded(TypeError, "ERR_MISSING_ARGS", "Reduce of an empty stream requires an initial value");
      return value;
    },
    async some(does: any) {
      for await (const one of this as any) if (await does(one, {})) return true;
      return false;
    },
    async every(does: any) {
      for await (const one of this as any) if (!(await does(one, {}))) return false;
      return true;
    },
    compose(step: any) {
      return compose(this, step);
    },
    async find(does: any) {
      for await (const one of this as any) if (await does(one, {})) return one;
      return undefined;
    },
  };
  for (const name of Reflect.ownKeys(helpers)) {
    Object.defineProperty(Readable.prototype, name, { value: helpers[name as string], writable: true, configurable: true });
  }

  Readable.from = from;
  Readable.toWeb = (stream: any) => {
    const iterator = iterate(stream);
    return new (globalThis as any).ReadableStream({
      async pull(controller: any) {
        const { value, done } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(ArrayBuffer.isView(value) ? new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength) : value);
      },
      cancel: (reason: any) => void stream.destroy(reason),
    });
  };
  Readable.fromWeb = (source: any, options?: any) => {
    const reader = source.getReader();
    return new Readable({
      ...options,
      read(this: any) {
        reader.read().then(({ value, done }: any) => this.push(done ? null : value), (error: unknown) => this.destroy(error));
      },
      destroy(error: any, back: Callback) {
        reader.cancel(error ?? undefined).then(() => back(error), () => back(error));
      },
    });
  };
  Writable.fromWeb = (target: any, options?: any) => {
    const writer = target.getWriter();
    return new Writable({
      ...options,
      write: (chunk: any, _encoding: string, back: Callback) => void writer.write(chunk).then(() => back(), back),
      final: (back: Callback) => void writer.close().then(() => back(), back),
      destroy(error: any, back: Callback) {
        if (error) writer.abort(error).catch(() => {});
        back(error);
      },
    });
  };
  Writable.toWeb = (stream: any) =>
    new (globalThis as any).WritableStream({
      write: (chunk: any) => new Promise<void>((done, failed) => stream.write(chunk, (error: any) => (error ? failed(error) : done()))),
      close: () => new Promise<void>((done) => stream.end(() => done())),
      abort: (reason: any) => void stream.destroy(reason),
    });
  Duplex.toWeb = (stream: any) => ({ readable: Readable.toWeb(stream), writable: Writable.toWeb(stream) });
  Duplex.fromWeb = ({ readable, writable }: any, options?: any) => paired(Readable.fromWeb(readable, options), Writable.fromWeb(writable, options));
  Duplex.from = duplexFrom;

  Object.assign(S, kinds, {
    finished,
    pipeline,
    promises,
    isReadable: (stream: any) => stream?.readable ?? null,
    isWritable: (stream: any) => stream?.writable ?? null,
    isErrored: (stream: any) => Boolean(stream?.errored),
    isDisturbed: (stream: any) => Boolean(stream?.readableDidRead),
    isDestroyed: (stream: any) => stream?.destroyed ?? null,
    getDefaultHighWaterMark: defaultSize,
    setDefaultHighWaterMark() {},
    destroy: (stream: any, error?: any) => stream.destroy(error),
    compose,
    _uint8ArrayToBuffer: (bytes: Uint8Array) => bytes,
    _isUint8Array: (value: unknown) => value instanceof Uint8Array,
  });
  delete S.defaultSize;
  Object.defineProperty(pipeline, Symbol.for("nodejs.util.promisify.custom"), { value: promises.pipeline });
  Object.defineProperty(finished, Symbol.for("nodejs.util.promisify.custom"), { value: promises.finished });
}
