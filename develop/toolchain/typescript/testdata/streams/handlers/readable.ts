import { ok } from "@runner/sdk";
import { all, counting, equal, fails, turn } from "./lib/claims.ts";

export async function defaultStreams() {
  const { stream, asked } = counting("a", "b");
  const reader = stream.getReader();
  const first = reader.read();
  const together = await Promise.all([first, reader.read(), reader.read(), reader.read()]);
  await reader.closed;

  let controller!: ReadableStreamDefaultController;
  const sized = new ReadableStream<string>({ start: (c) => void (controller = c) }, { highWaterMark: 5, size: (chunk) => chunk.length });
  const sizes = [controller.desiredSize];
  controller.enqueue("abc");
  sizes.push(controller.desiredSize);
  controller.enqueue("defg");
  sizes.push(controller.desiredSize);
  controller.close();
  const closedSizes = [controller.desiredSize];
  const rest = await all(sized);
  closedSizes.push(controller.desiredSize);

  const failed = new ReadableStream({ pull: () => Promise.reject("broken") });
  const cancelled = counting("a");
  await cancelled.stream.cancel("enough");
  const released = counting("a", "b").stream;
  const old = released.getReader();
  const waits = new ReadableStream().getReader();
  const waiting = waits.read();
  waits.releaseLock();
  old.releaseLock();
  return ok({
    inOrder: equal(together, [{ value: "a", done: false }, { value: "b", done: false }, { done: true }, { done: true }]),
    asksOnlyWhenRead: equal(asked, ["start", "pull", "pull", "pull"]),
    sizes: equal(sizes, [5, 2, -2]) && equal(closedSizes, [-2, 0]) && equal(rest, ["abc", "defg"]),
    wrongSize: (await fails(() => new ReadableStream({ start: (c) => c.enqueue(1) }, { size: () => -1 }))) === "RangeError",
    wrongMark: (await fails(() => new ReadableStream({}, { highWaterMark: NaN }))) === "RangeError",
    wrongSource: (await fails(() => new ReadableStream({ pull: 1 as any }))) === "TypeError" && (await fails(() => new ReadableStream(null as any))) === "TypeError",
    closedTwice: (await fails(() => controller.close())) === "TypeError" && (await fails(() => controller.enqueue("x"))) === "TypeError",
    errorOfPull: (await fails(() => failed.getReader().read())) === "broken" && (await fails(() => failed.cancel())) === "TypeError",
    startThrows: (await fails(() => new ReadableStream({ start() { throw new SyntaxError("x"); } }))) === "SyntaxError",
    cancelled: equal(cancelled.asked, ["start", "cancel enough"]) && equal(await all(cancelled.stream), []),
    locked: stream.locked && (await fails(() => stream.getReader())) === "TypeError" && (await fails(() => stream.cancel())) === "TypeError",
    released: !released.locked && (await fails(() => old.read())) === "TypeError" && (await fails(() => old.closed)) === "TypeError" && equal(await all(released), ["a", "b"]),
    releasedWhileReading: (await fails(() => waiting)) === "TypeError",
    constructors: (await fails(() => new (ReadableStreamDefaultController as any)())) === "TypeError" && new ReadableStreamDefaultReader(new ReadableStream()) instanceof ReadableStreamDefaultReader,
    notOne: (await fails(() => ReadableStream.prototype.locked)) === "TypeError" && (await fails(() => ReadableStream.prototype.cancel())) === "TypeError",
    strategies: equal([new CountQueuingStrategy({ highWaterMark: 3 }).size("x"), new ByteLengthQueuingStrategy({ highWaterMark: 3 }).size(new Uint8Array(7))], [1, 7])
      && (await fails(() => new CountQueuingStrategy({} as any))) === "TypeError" && Object.is(new CountQueuingStrategy({ highWaterMark: -1 }).highWaterMark, -1),
  });
}

export async function iteration() {
  const early = counting("a", "b", "c");
  for await (const chunk of early.stream) if (chunk === "a") break;
  const kept = counting("a", "b");
  for await (const chunk of kept.stream.values({ preventCancel: true })) if (chunk === "a") break;
  const unlocked = !kept.stream.locked;
  const iterator = counting("a").stream.values();
  const ended = [await iterator.next(), await iterator.next(), await iterator.next(), await iterator.return!("x")];

  const steps: string[] = [];
  const from = ReadableStream.from((function* () {
    try {
      yield 1;
      yield Promise.resolve(2);
      yield 3;
    } finally {
      steps.push("finally");
    }
  })());
  const two: unknown[] = [];
  for await (const chunk of from) if (two.push(chunk) === 2) break;
  const failing = ReadableStream.from((async function* () {
    yield "a";
    throw "broken";
  })());
  const failingReader = failing.getReader();
  return ok({
    breakCancels: equal(early.asked, ["start", "pull", "cancel undefined"]) && !early.stream.locked,
    breakKeeps: unlocked && equal(await all(kept.stream), ["b"]),
    ends: equal(ended, [{ value: "a", done: false }, { done: true }, { done: true }, { value: "x", done: true }]),
    from: equal(two, [1, 2]) && equal(steps, ["finally"]),
    fromArray: equal(await all(ReadableStream.from(["x", "y"])), ["x", "y"]),
    fromStream: equal(await all(ReadableStream.from(counting("x", "y").stream)), ["x", "y"]),
    fromFails: equal(await failingReader.read(), { value: "a", done: false }) && (await fails(() => failingReader.read())) === "broken",
    fromWhat: (await fails(() => ReadableStream.from({} as any))) === "TypeError" && (await fails(() => ReadableStream.from(null as any))) === "TypeError",
    prototype: Object.getPrototypeOf(Object.getPrototypeOf(iterator)) === Object.getPrototypeOf(Object.getPrototypeOf((async function* () {}).prototype))
      && ReadableStream.prototype.values === ReadableStream.prototype[Symbol.asyncIterator],
  });
}

export async function tees() {
  const { stream, asked } = counting("a", "b");
  const [one, two] = stream.tee();
  const fast = await all(one);
  const pulls = asked.length;
  const slow = await all(two);
  const both = counting("a");
  const [left, right] = both.stream.tee();
  const cancels = Promise.all([left.cancel("l"), right.cancel("r")]);
  await cancels;
  const half = counting("a", "b");
  const [stays, leaves] = half.stream.tee();
  void leaves.cancel("x");
  const failing = new ReadableStream({ pull: () => Promise.reject("broken") });
  const [ill, sick] = failing.tee();

  const bytes = new ReadableStream({ type: "bytes", start: (c) => (c.enqueue(Uint8Array.of(1, 2)), c.close()) });
  const [mine, yours] = bytes.tee();
  const [[a], [b]] = [await all(mine), await all(yours)];
  a[0] = 9;
  const views = new ReadableStream({ type: "bytes", pull: (c) => { const { view } = c.byobRequest!; view![0] = 7; c.byobRequest!.respond(1); } });
  const [byob, plain] = views.tee();
  const filled = await byob.getReader({ mode: "byob" }).read(new Uint8Array(4));
  return ok({
    sameChunks: equal(fast, ["a", "b"]) && equal(slow, ["a", "b"]) && pulls === asked.length,
    locked: stream.locked,
    cancelBoth: equal(both.asked.slice(-1), ["cancel l,r"]),
    cancelOne: equal(await all(stays), ["a", "b"]) && !half.asked.some((step) => step.startsWith("cancel")),
    fails: (await fails(() => all(ill))) === "broken" && (await fails(() => all(sick))) === "broken",
    bytesAreCopied: equal([...b], [1, 2]) && a.buffer !== b.buffer,
    bytesIntoViews: equal([...filled.value!], [7]) && equal([...(await plain.getReader().read()).value!], [7]),
  });
}

export async function byteStreams() {
  const wanted: number[] = [];
  let left = 10;
  const source = new ReadableStream({
    type: "bytes",
    pull(controller) {
      const { view } = controller.byobRequest!;
      wanted.push(view!.byteLength);
      const n = Math.min(4, view!.byteLength, left);
      for (let i = 0; i < n; i++) view![i] = left--;
      if (n > 0) {
        controller.byobRequest!.respond(n);
      } else {
        controller.close();
        controller.byobRequest!.respond(0);
      }
    },
  });
  const reader = source.getReader({ mode: "byob" });
  const buffer = new ArrayBuffer(16);
  const first = await reader.read(new Uint8Array(buffer, 2, 3));
  const more = await reader.read(new Uint8Array(6), { min: 6 });
  const last = await reader.read(new Uint8Array(6), { min: 6 });
  const end = await reader.read(new Uint8Array(6));

  let controller!: ReadableByteStreamController;
  const queued = new ReadableStream({ type: "bytes", start: (c) => void (controller = c) });
  const chunk = Uint8Array.of(1, 2, 3, 4, 5);
  controller.enqueue(chunk);
  const transferred = chunk.byteLength;
  const words = queued.getReader({ mode: "byob" });
  const word = await words.read(new Uint16Array(1));
  const pair = await words.read(new DataView(new ArrayBuffer(2)));
  words.releaseLock();
  const plain = queued.getReader();
  const byte = await plain.read();
  plain.releaseLock();

  const auto = new ReadableStream({ type: "bytes", autoAllocateChunkSize: 8, pull: (c) => { c.byobRequest!.view![0] = 5; c.byobRequest!.respond(1); } });
  const given = await auto.getReader().read();

  let half!: ReadableByteStreamController;
  const odd = new ReadableStream({ type: "bytes", start: (c) => void (half = c) }).getReader({ mode: "byob" });
  const oddRead = odd.read(new Uint16Array(1));
  half.enqueue(Uint8Array.of(1));
  let request!: ReadableStreamBYOBRequest;
  const twice = new ReadableStream({ type: "bytes", pull: (c) => { request = c.byobRequest!; request.respondWithNewView(request.view!.subarray(0, 2)); } });
  const replaced = await twice.getReader({ mode: "byob" }).read(new Uint8Array(4));
  return ok({
    into: equal([...first.value!], [10, 9, 8]) && first.value!.byteOffset === 2 && first.value!.buffer.byteLength === 16 && buffer.byteLength === 0,
    least: equal([...more.value!], [7, 6, 5, 4, 3, 2]) && equal([...last.value!], [1]) && last.done === true,
    rest: equal(wanted, [3, 6, 2, 6, 5]) && end.done && end.value!.byteLength === 0 && end.value!.buffer.byteLength === 6,
    transferred: transferred === 0,
    elements: word.value instanceof Uint16Array && word.value[0] === 0x201 && pair.value instanceof DataView && pair.value.getUint8(1) === 4,
    defaultReader: equal([...byte.value!], [5]),
    auto: equal([...given.value!], [5]) && given.value!.buffer.byteLength === 8,
    halfAnElement: (await fails(() => half.close())) === "TypeError" && (await fails(() => oddRead)) === "TypeError",
    newView: replaced.value!.length === 2 && request.view === null && (await fails(() => request.respond(1))) === "TypeError",
    refused: equal(await Promise.all([
      () => new ReadableStream().getReader({ mode: "byob" }),
      () => auto.cancel(),
      () => new ReadableStream({ type: "bytes" }, { size: () => 1 } as any),
      () => new ReadableStream({ type: "text" as any }),
      () => new ReadableStream({ type: "bytes", autoAllocateChunkSize: 0 }),
      () => controller.enqueue(new Uint8Array(0)),
      () => controller.enqueue(chunk),
      () => words.read(new Uint8Array(1)),
      () => queued.getReader({ mode: "byob" }).read(new Uint8Array(0)),
      () => odd.read(new Uint8Array(new (ArrayBuffer as any)(4, { maxByteLength: 8 }))),
    ].map(fails)), ["TypeError", "TypeError", "RangeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError"]),
  });
}

// Streams also work while the module is built, and one that is not read then goes on in each request.
const early: unknown[] = [];
void ReadableStream.from([1, 2]).pipeThrough(new TransformStream()).pipeTo(new WritableStream({ write: (chunk) => void early.push(chunk), close: () => void early.push("close") }));
const kept = counting("a");

export async function atBuild() {
  return ok({ piped: equal(early, [1, 2, "close"]), kept: equal(kept.asked, ["start"]) && equal(await all(kept.stream), ["a"]) });
}

export async function cost() {
  await turn();
  const many = new ReadableStream({
    start(controller) {
      for (let i = 0; i < 20_000; i++) controller.enqueue(i);
      controller.close();
    },
  });
  let n = 0;
  for await (const i of many) if (i === n) n++;
  return ok({ manyInAQueue: n === 20_000 });
}
