import EventEmitter, { once, on, EventEmitter as Named } from "node:events";
import { inherits } from "util";

const record = () => {
  const seen = [];
  return [seen, (name) => (...values) => void seen.push([name, ...values])];
};

export const cases = {
  order: () => {
    const [seen, note] = record();
    const e = new EventEmitter();
    e.on("a", note(1)).prependListener("a", note(2)).once("a", note(3)).addListener("a", note(4));
    return [e.emit("a", "x", 1), e.emit("a"), e.emit("none"), seen, e.listenerCount("a"), e.eventNames()];
  },
  remove: () => {
    const [seen, note] = record();
    const e = new EventEmitter();
    const f = note("f");
    e.on("a", f).on("a", f).once("b", f);
    e.off("a", f);
    e.removeListener("b", f);
    e.emit("a");
    e.emit("b");
    e.on("c", f).on(Symbol.for("s"), f);
    const names = e.eventNames().map(String);
    e.removeAllListeners("c");
    e.removeAllListeners();
    return [seen, names, e.eventNames(), e.listeners("a").length];
  },
  duringEmit: () => {
    const [seen, note] = record();
    const e = new EventEmitter();
    const late = note("late");
    e.on("a", () => e.on("a", late));
    e.on("a", function () {
      seen.push(this === e);
    });
    e.emit("a");
    e.emit("a");
    return seen;
  },
  newListener: () => {
    const [seen, note] = record();
    const e = new EventEmitter();
    e.on("newListener", (name) => seen.push(["new", name]));
    e.on("removeListener", (name) => seen.push(["removed", name]));
    const f = note("f");
    e.once("a", f);
    e.emit("a", 1);
    return [seen, e.rawListeners("newListener").length];
  },
  raw: () => {
    const e = new EventEmitter();
    const f = () => 5;
    e.once("a", f);
    return [e.listeners("a")[0] === f, e.rawListeners("a")[0] === f, e.rawListeners("a")[0].listener === f];
  },
  old: () => {
    function Old() {
      EventEmitter.call(this);
    }
    inherits(Old, EventEmitter);
    const o = new Old();
    const seen = [];
    o.on("x", (v) => seen.push(v));
    o.emit("x", 1);
    class New extends Named {}
    return [seen, o instanceof EventEmitter, new New() instanceof Named, Named === EventEmitter, Old.super_ === EventEmitter];
  },
  unhandled: () => new EventEmitter().emit("error", new RangeError("lost")),
  unhandledText: () => new EventEmitter().emit("error", "text"),
  monitor: () => {
    const e = new EventEmitter();
    const seen = [];
    e.on(EventEmitter.errorMonitor, (x) => seen.push(x.message));
    try {
      e.emit("error", new Error("m"));
    } catch (error) {
      seen.push(error.message);
    }
    return seen;
  },
  badListener: () => new EventEmitter().on("a", 5),
  badMax: () => new EventEmitter().setMaxListeners(-1),
  max: () => [new EventEmitter().getMaxListeners(), new EventEmitter().setMaxListeners(3).getMaxListeners(), EventEmitter.defaultMaxListeners],
  once: async () => {
    const e = new EventEmitter();
    queueMicrotask(() => e.emit("a", 1, 2));
    const first = await once(e, "a");
    queueMicrotask(() => e.emit("error", new Error("failed")));
    return [first, await once(e, "a").catch((x) => x.message), e.eventNames()];
  },
  onceAborted: async () => {
    const control = new AbortController();
    control.abort();
    return once(new EventEmitter(), "a", { signal: control.signal });
  },
  on: async () => {
    const e = new EventEmitter();
    queueMicrotask(() => {
      e.emit("a", 1);
      e.emit("a", 2);
      queueMicrotask(() => e.emit("a", 3));
    });
    const seen = [];
    for await (const [n] of on(e, "a")) {
      seen.push(n);
      if (n === 3) break;
    }
    return [seen, e.listenerCount("a")];
  },
  onFails: async () => {
    const e = new EventEmitter();
    queueMicrotask(() => e.emit("error", new Error("failed")));
    for await (const _ of on(e, "a"));
  },
  target: async () => {
    const t = new EventTarget();
    queueMicrotask(() => t.dispatchEvent(new Event("go")));
    const [event] = await once(t, "go");
    return event.type;
  },
  allCaptured: async () => {
    EventEmitter.captureRejections = true;
    const e = new EventEmitter();
    EventEmitter.captureRejections = false;
    e.on("a", async () => { throw new Error("captured"); });
    return new Promise((done) => { e.on("error", (error) => done(error.message)); e.emit("a"); });
  },
  badOptions: () => [() => new EventEmitter({ captureRejections: 1 }), () => new EventEmitter().setMaxListeners("a"), () => EventEmitter.setMaxListeners(-1), () => on({}, "a")].map((does) => { try { return typeof does(); } catch (error) { return [error.code, error.message]; } }),
  badOnce: async () => [await once({}, "a").catch((error) => error.code), await once(new EventEmitter(), "a", { signal: 5 }).catch((error) => error.code)],
};
