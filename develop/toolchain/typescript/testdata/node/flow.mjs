import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";

const store = new AsyncLocalStorage();
const other = new AsyncLocalStorage();
const get = () => store.getStore();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export const cases = {
  basic: () => [get(), store.run(1, get), store.run(1, () => store.run(2, get)), store.run(1, () => store.exit(get)), get(), store.run(1, (a, b) => [get(), a, b], 2, 3)],
  awaits: () => store.run("a", async () => {
    const seen = [get()];
    await null;
    seen.push(get());
    await pause(1);
    seen.push(get());
    try {
      await Promise.reject(new Error("x"));
    } catch {
      seen.push(get());
    } finally {
      await 1;
      seen.push(get());
    }
    return seen;
  }),
  outside: async () => {
    const inner = store.run("in", async () => {
      await null;
      return get();
    });
    const seen = [get(), await inner, get()];
    await store.run("x", () => pause(1));
    return [...seen, get()];
  },
  interleaved: async () => {
    const seen = [];
    const flow = (name, ms) => store.run(name, async () => {
      for (let i = 0; i < 3; i++) {
        await pause(ms);
        seen.push(get() === name);
        await null;
        seen.push(get() === name);
      }
      return get();
    });
    return [await Promise.all([flow("a", 1), flow("b", 2)]), seen];
  },
  all: () => store.run("all", async () => [await Promise.all([1, 2].map(async () => (await null, get()))), await Promise.allSettled([pause(1).then(get)]), await Promise.race([Promise.resolve().then(get)]), get()]),
  then: () => store.run("t", () => Promise.resolve(1).then(get).finally(() => {}).then((x) => [x, get()])),
  thenLater: async () => {
    let done;
    const promise = new Promise((resolve) => (done = resolve));
    const seen = store.run("registered", () => promise.then(get));
    store.run("resolved", done);
    return seen;
  },
  microtasks: () => store.run("m", () => new Promise((done) => queueMicrotask(() => done(get())))),
  timers: () => store.run("t", async () => [await new Promise((done) => setTimeout((a) => done([get(), a]), 1, "arg")), await new Promise((done) => setImmediate(() => done(get()))), await new Promise((done) => {
    const id = setInterval(() => {
      clearInterval(id);
      done(get());
    }, 1);
  })]),
  thenable: () => store.run("thenable", async () => {
    const seen = await { then(done) { done(get()); } };
    return [seen, get()];
  }),
  generators: () => store.run("g", async () => {
    const seen = [];
    async function* items() {
      yield get();
      await null;
      yield get();
    }
    for await (const item of items()) seen.push(item, get());
    return seen;
  }),
  enter: async () => {
    const seen = [];
    await (async () => {
      await null;
      store.enterWith("entered");
      seen.push(get());
      await null;
      seen.push(get());
    })();
    return seen;
  },
  two: () => store.run(1, () => other.run(2, async () => {
    await null;
    return [get(), other.getStore(), store.exit(() => [get(), other.getStore()])];
  })),
  throwing: () => {
    try {
      store.run(1, () => { throw new Error("out"); });
    } catch (error) {
      return [error.message, get()];
    }
  },
  resources: async () => {
    const resource = store.run("made", () => new AsyncResource("R"));
    const bound = store.run("bound", () => AsyncResource.bind(get));
    const snapshot = store.run("snap", () => AsyncLocalStorage.snapshot());
    const binding = store.run("bind", () => AsyncLocalStorage.bind((x) => [get(), x]));
    return [resource.runInAsyncScope(get), bound(), snapshot(get), binding(5), resource.bind(get)()];
  },
  undefinedValue: () => store.run(undefined, async () => (await null, get())),
  badBind: () => AsyncLocalStorage.bind(5),
  lengths: () => [AsyncLocalStorage.bind((a, b) => [a, b]).length, AsyncResource.bind((a) => a).length],
  badType: () => new AsyncResource(),
};
