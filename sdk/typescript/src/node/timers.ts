// node:timers and node:timers/promises. A timer is a number, as on the web.

const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate } = globalThis as any;

interface Options {
  signal?: AbortSignal;
}

const aborted = (signal: AbortSignal): Error => Object.assign(new Error("The operation was aborted", { cause: signal.reason }), { name: "AbortError", code: "ABORT_ERR" });

function after<T>(start: (done: () => void) => number, stop: (id: number) => void, value: T, { signal }: Options = {}): Promise<T> {
  if (signal?.aborted) return Promise.reject(aborted(signal));
  return new Promise((done, failed) => {
    const abort = () => {
      stop(id);
      failed(aborted(signal!));
    };
    const id = start(() => {
      signal?.removeEventListener("abort", abort);
      done(value);
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}

const wait = <T>(delay?: number, value?: T, options?: Options) => after((done) => globalThis.setTimeout(done, delay), clearTimeout, value, options);

export const promises = {
  setTimeout: wait,
  setImmediate: <T>(value?: T, options?: Options) => after((done) => globalThis.setImmediate(done), clearImmediate, value, options),
  async *setInterval<T>(delay?: number, value?: T, options: Options = {}) {
    for (;;) yield await wait(delay, value, options);
  },
  scheduler: {
    wait: (delay: number, options?: Options) => wait(delay, undefined, options),
    yield: () => promises.setImmediate(),
  },
};

export default { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises };
