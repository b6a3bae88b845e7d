import process, { nextTick } from "node:process";
import timers from "timers";
import { setTimeout as wait, setImmediate as soon, setInterval as every } from "node:timers/promises";
import channels, { channel, tracingChannel } from "diagnostics_channel";
import { performance } from "perf_hooks";

export const cases = {
  process: () => [process.platform, typeof process.version, /^\d+\./.test(process.versions.node), typeof process.env, process.env.NOT_THERE, Array.isArray(process.argv), typeof process.cwd(), typeof process.hrtime.bigint(), process.hrtime([0, 0]).length, String(process), typeof process.uptime(), globalThis.process === undefined || globalThis.process === process],
  ticks: async () => {
    const seen = [];
    nextTick((a, b) => seen.push(a + b), 1, 2);
    seen.push("sync");
    await wait(1);
    return seen;
  },
  env: () => {
    process.env.SET = "x";
    return [process.env.SET, "SET" in process.env, typeof global, global === globalThis];
  },
  waits: async () => [await wait(2, "value"), await soon("soon")],
  intervals: async () => {
    let n = 0;
    for await (const value of every(1, "v")) if (++n === 3) return [n, value];
  },
  aborted: async () => {
    const control = new AbortController();
    queueMicrotask(() => control.abort());
    await wait(1000, null, { signal: control.signal });
  },
  timers: () => [typeof timers.setTimeout, typeof timers.clearTimeout, typeof timers.promises.setTimeout, typeof performance.now()],
  channels: () => {
    const seen = [];
    const note = (message, name) => seen.push([name, message]);
    channels.subscribe("a", note);
    channel("a").publish({ n: 1 });
    const there = [channels.hasSubscribers("a"), channel("a") === channel("a"), channels.unsubscribe("a", note), channel("a").hasSubscribers];
    channel("a").publish({ n: 2 });
    return [seen, there];
  },
  tracing: async () => {
    const seen = [];
    const trace = tracingChannel("t");
    trace.subscribe(Object.fromEntries(["start", "end", "asyncStart", "asyncEnd", "error"].map((name) => [name, (m) => seen.push([name, m.result, m.error?.message])])));
    const sync = trace.traceSync((a) => a + 1, {}, null, 1);
    const later = await trace.tracePromise(async () => 5, {});
    await trace.tracePromise(async () => { throw new Error("no"); }, {}).catch(() => {});
    return [sync, later, seen];
  },
};
