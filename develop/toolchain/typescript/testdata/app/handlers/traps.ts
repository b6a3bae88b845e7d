import { getContext, HostError, ok, type RouteRequest } from "@runner/sdk";
import { lengthOf } from "./lib/length.ts";

let visits = 0;
const seen = new Map<string, number>();

export const random = () => ok([Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint32Array(4))]]);

export function counts() {
  seen.set("visits", ++visits);
  return ok([visits, seen.size]);
}

const down = (n: number): number => 1 + down(n + 1);
export const deep = () => ok(down(0));
export function deepCaught() {
  try {
    down(0);
  } catch (e) {
    return ok([(e as Error).name, e instanceof RangeError]);
  }
}
/** How deep a plain recursion goes. */
export function depth() {
  let n = 0;
  const down = () => {
    n++;
    down();
  };
  try {
    down();
  } catch {}
  return ok(n);
}
/** Whatever way functions call themselves, the end is an error that can be caught. */
export function deepWays(req: RouteRequest) {
  const nest = (wrap: (inner: any) => any, n = 20_000) => {
    let value: any = 1;
    for (let i = 0; i < n; i++) value = wrap(value);
    return value;
  };
  class Up {
    constructor() {
      new (class extends Up {})();
    }
  }
  const handler: any = {};
  const proxy: any = new Proxy({}, handler);
  handler.get = () => proxy.x + 1;
  handler.has = () => "y" in proxy;
  handler.apply = () => 0;
  const ways: Record<string, () => unknown> = {
    many: () => { const f = (a: any, b: any, c: any, d: any, ...e: any[]): any => f(a, b, c, d, ...e) + a + b; return f(1, 2, 3, 4); },
    spread: () => { const f = (...a: any[]): any => f(...a); return f(1, 2, 3); },
    apply: () => { const f = (): any => Reflect.apply(f, null, []); return f(); },
    call: () => { const f = function (this: any): any { return f.call(this); }; return f.call({}); },
    bound: () => { let f: any = () => f(); const g = nest((inner) => inner.bind(null), 0) && f.bind(null); f = g.bind(null, 1); return f(); },
    boundChain: () => nest((inner) => (typeof inner === "function" ? inner.bind(null) : () => 1), 20_000)(),
    construct: () => new Up(),
    getter: () => { const o = { get x(): any { return this.x; } }; return o.x; },
    setter: () => { const o = { set x(v: any) { this.x = v; } }; o.x = 1; },
    proxyGet: () => proxy.x,
    proxyHas: () => "z" in proxy,
    proxyChain: () => nest((inner) => new Proxy(typeof inner === "object" ? inner : {}, {}), 20_000).x,
    toString: () => { const o: any = { toString: () => `${o}` }; return `${o}`; },
    valueOf: () => { const o: any = { valueOf: () => +o }; return +o; },
    iterator: () => { const o: any = { [Symbol.iterator]: () => [...o][Symbol.iterator]() }; return [...o]; },
    generator: () => { function* g(): any { yield* g(); } return [...g()]; },
    map: () => { const f = (): any => [1].map(f); return f(); },
    reduce: () => { const f = (): any => [1, 2].reduce(f); return f(); },
    from: () => { const f = (): any => Array.from([1], f); return f(); },
    sort: () => { const f = (): any => [3, 2, 1].sort(f).length; return f(); },
    typedSort: () => { const f = (): any => new Uint8Array([3, 2]).sort(f).length; return f(); },
    replace: () => { const f = (): any => "a".replace(/a/g, f); return f(); },
    replaceSymbol: () => { const f = (): any => /a/[Symbol.replace]("a", f); return f(); },
    stringify: () => { const o: any = { toJSON: () => JSON.stringify([o]) }; return JSON.stringify(o); },
    reviver: () => { const f = (): any => JSON.parse("[1]", f); return f(); },
    nestedStringify: () => JSON.stringify(nest((inner) => [inner], 6_000)),
    nestedParse: () => JSON.parse("[".repeat(20_000) + "]".repeat(20_000)),
    nestedJoin: () => String(nest((inner) => [inner])),
    nestedFlat: () => nest((inner) => [inner]).flat(Infinity),
    nestedClone: () => structuredClone(nest((inner) => ({ inner }))),
    nestedPattern: () => new RegExp("(".repeat(50_000) + ")".repeat(50_000)),
    source: () => new Function("return " + "(".repeat(20_000) + ")".repeat(20_000)),
    expression: () => new Function("return " + "1+(".repeat(50_000) + "1" + ")".repeat(50_000))(),
    has: () => { const o: any = new Proxy({}, { getOwnPropertyDescriptor: () => Object.getOwnPropertyDescriptor(o, "x") }); return Object.keys(Object.assign({}, o)) && Object.getOwnPropertyDescriptor(o, "x"); },
    instance: () => { const o: any = { [Symbol.hasInstance]: (v: any) => v instanceof o }; return {} instanceof o; },
    species: () => { class A extends Array { static get [Symbol.species](): any { return new A(1).map((x) => x) && A; } } return new A(1).map((x) => x); },
    template: () => { const f = (s: any): any => f`${s}`; return f`a`; },
    async: () => { const f = async (): Promise<any> => f(); f().catch(() => {}); },
    promise: () => { const o: any = { get then() { return Promise.resolve(o); } }; return Promise.resolve(o).catch(() => {}); },
  };
  if (!req.query.way) return ok(Object.keys(ways));
  try {
    ways[req.query.way]();
    return ok("done");
  } catch (e) {
    return ok(e instanceof Error ? e.name : String(e));
  }
}
export function deepCallbacks() {
  const nested = (): number => [1, 2].sort(() => nested())[0];
  const told: string[] = [];
  const object = { toJSON: (): string => JSON.stringify(object) };
  for (const f of [nested, () => JSON.stringify(object), () => "a".replace(/a/, () => String(down(0)))]) {
    try {
      f();
    } catch (e) {
      told.push((e as Error).name);
    }
  }
  return ok(told);
}

export const never = () => new Promise(() => {});
export async function neverHalf() {
  await null;
  await new Promise(() => {});
  return ok(1);
}

/** Calls the host until it refuses. */
export async function callsForever(req: RouteRequest) {
  const { read } = req.query;
  for (;;) {
    try {
      await getContext().secret("NOPE");
    } catch (error) {
      if ((error as HostError).code !== "limit") continue;
      if (read) req.text();
      throw error;
    }
  }
}

export function hoards() {
  const all = [];
  for (;;) all.push(new Uint8Array(1 << 20).fill(1));
}
export function hoardsSmall() {
  const all = [];
  for (;;) all.push({});
}
export function hoardsChain() {
  let all = {};
  for (;;) all = { all };
}
export function hoardsCaught() {
  try {
    hoards();
  } catch (e) {
    return ok((e as Error).message);
  }
}
export function spins() {
  for (;;);
}

export function fails() {
  return ok(lengthOf(undefined as unknown as string));
}
export async function failsLater() {
  await null;
  try {
    lengthOf(null as unknown as string);
  } catch (cause) {
    throw new Error("could not measure", { cause });
  }
}

const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
export async function waits() {
  const began = Date.now();
  const order: string[] = [];
  setTimeout((text: string) => order.push(text), 30, "third");
  setTimeout(() => order.push("second"), 10);
  clearTimeout(setTimeout(() => order.push("never"), 20));
  queueMicrotask(() => order.push("first"));
  let ticks = 0;
  const clock = setInterval(() => ++ticks === 3 && clearInterval(clock), 2);
  await pause(60);
  return ok([order, ticks, Date.now() - began >= 60]);
}
export function answersFirst() {
  setTimeout(() => console.log("too late"), 1);
  return ok(1);
}
export function answersAtTimeout() {
  AbortSignal.timeout(1000);
  return ok(1);
}
export async function answersAtInterval() {
  await pause(1);
  setInterval(() => {}, 5);
  setTimeout(() => {}, 5);
  return ok(1);
}
export async function failsInTimer() {
  setTimeout(() => {
    throw new Error("in a timer");
  });
  await pause(10_000);
}
export const waitsTooLong = () => pause(3_600_000);

export function forgets() {
  failsLater();
  const looked = failsLater();
  queueMicrotask(() => looked.catch(() => {}));
  return ok("fine");
}

export function logs() {
  console.debug("debug");
  console.log("text", 1, null, undefined, { a: [1, "x"], "b-c": new Map([[1, { d: 2n }]]) }, new Date(0), /x/g);
  console.warn(new RangeError("too far"));
  const a: Record<string, unknown> = {};
  a.self = a;
  console.error(a, [new Set([1])], () => 1, Symbol("s"), new Uint8Array(3));
  return ok();
}

export function logsMore() {
  console.log("%s is %d years and %i days, %o %% %c%s", "Ann", "41", 3.7, { a: 1 }, "color: red");
  console.log("100%", 1, "%s");
  console.log(new Proxy({}, { ownKeys() { throw new Error("no"); } }));
  console.log({ get a() { throw new Error("no"); } }, Object.create(null), { toString: 1 });
  console.table([{ a: 1 }]);
  console.dir({ a: 1 });
  console.group("outer %s", 1);
  console.warn("inner");
  console.group();
  console.log("innermost");
  console.groupEnd();
  console.groupEnd();
  console.groupEnd();
  console.log("outside");
  console.count();
  console.count();
  console.countReset();
  console.count("x");
  console.time();
  console.timeLog("default", 7);
  console.timeEnd();
  console.timeEnd("never");
  console.assert(true, "not this");
  console.assert(false, "because", 1);
  console.trace("here");
  console.log();
  return ok();
}

// Handlers that are stopped.
export function parsesForever() {
  const list = `[${"1,".repeat(100_000)}1]`;
  for (;;) JSON.parse(list); // parsing
}
export function matchesForever() {
  return ok(/^(a+)+\1b$/.test("a".repeat(40) + "c")); // matching
}
export async function loopsLater() {
  await null;
  return ok([1].map((n) => {
    while (n > 0) n = Math.max(n, 1); // looping
    return n;
  }));
}
export function logsForever() {
  for (;;) console.log("again"); // logging
}
export async function waitsForever() {
  await new Promise((done) =>
    setTimeout(done, 3_600_000), // waiting
  );
}
export function callsInLoop() {
  let n = 0;
  while (true) {
    n = Math.max(n, 1); // calling
    if (n < 0) break;
  }
}
export function sortsForever() {
  return ok([3, 1, 2].sort((a, b) => {
    while (a > 0) a = Math.max(a, 1); // comparing
    return a - b;
  }));
}
export function replacesForever() {
  return ok("aaa".replace(/a/g, (a) => {
    for (let n = 1; n > 0;) n = Math.max(n, 1); // replacing
    return a;
  }));
}
export function revivesForever() {
  return ok(JSON.parse("[1]", (_, a) => {
    while (true) a = Math.max(1, 1); // reviving
  }));
}
export function fromForever() {
  return ok(Array.from([3, 1, 2], (a) => {
    for (;;) a++; // from
  }));
}
export function sortsEmptyForever() {
  return ok([3, 1, 2].sort(() => { // comparing without a call
    for (;;);
  }));
}
