import { ok } from "@runner/sdk";
import { all, counting, equal, fails, turn } from "./lib/claims.ts";

/** A stream that notes what it is told, and writes when release is called. */
function noting(strategy?: QueuingStrategy) {
  const told: unknown[] = [];
  let release = () => {};
  const stream = new WritableStream({
    write(chunk) {
      told.push(chunk);
      return new Promise<void>((done) => (release = done));
    },
    close: () => void told.push("close"),
    abort: (reason) => void told.push(`abort ${reason}`),
  }, strategy);
  return { stream, told, release: () => release() };
}

export async function writableStreams() {
  const { stream, told, release } = noting({ highWaterMark: 2 });
  const writer = stream.getWriter();
  const sizes = [writer.desiredSize];
  await turn();
  const one = writer.write("a");
  const two = writer.write("b");
  sizes.push(writer.desiredSize);
  let ready = false;
  void writer.ready.then(() => (ready = true));
  await turn();
  const before = [ready, told.length];
  release();
  await one;
  await turn();
  sizes.push(writer.desiredSize);
  const after = [ready, told.length];
  const closed = writer.close();
  const late = await fails(() => writer.write("c"));
  release();
  await Promise.all([two, closed, writer.closed]);

  const abortable = noting();
  const aborter = abortable.stream.getWriter();
  await turn();
  const pending = aborter.write("a");
  const queued = aborter.write("b");
  const aborted = aborter.abort("stop");
  abortable.release();
  await aborted;
  const rejected = await fails(() => queued);
  await pending;

  let signal!: AbortSignal;
  const signalled = new WritableStream({ start: (c) => void (signal = c.signal) });
  await signalled.abort("why");
  const broken = new WritableStream({ write: () => Promise.reject("broken") }).getWriter();
  const free = new WritableStream();
  const old = free.getWriter();
  old.releaseLock();
  return ok({
    sizes: equal(sizes, [2, 0, 1]),
    backpressure: equal(before, [false, 1]) && equal(after, [true, 2]),
    closes: equal(told, ["a", "b", "close"]) && late === "TypeError" && writer.desiredSize === 0,
    aborts: equal(abortable.told, ["a", "abort stop"]) && rejected === "stop" && (await fails(() => aborter.closed)) === "stop",
    signal: signal.aborted && signal.reason === "why",
    fails: (await fails(() => broken.write("a"))) === "broken" && (await fails(() => broken.write("b"))) === "broken" && (await fails(() => broken.closed)) === "broken",
    locked: stream.locked && (await fails(() => stream.getWriter())) === "TypeError" && (await fails(() => stream.close())) === "TypeError" && (await fails(() => stream.abort())) === "TypeError",
    released: !free.locked && (await fails(() => old.write("a"))) === "TypeError" && (await fails(() => old.desiredSize)) === "TypeError",
    wrongSink: (await fails(() => new WritableStream({ type: "bytes" as any }))) === "RangeError" && (await fails(() => new WritableStream({ write: 1 as any }))) === "TypeError",
  });
}

export async function transforms() {
  const upper = new TransformStream<string, string>({
    start: (controller) => controller.enqueue("("),
    transform: (chunk, controller) => controller.enqueue(chunk.toUpperCase()),
    flush: (controller) => controller.enqueue(")"),
  });
  const asked = counting("a", "b");
  const through = asked.stream.pipeThrough(upper);
  const ended = counting("a", "b", "c");
  const first = ended.stream.pipeThrough(new TransformStream({ transform: (chunk, c) => (c.enqueue(chunk), c.terminate()) }));
  const chunks = await all(first);
  await turn();
  const failing = counting("a").stream.pipeThrough(new TransformStream({ transform: () => Promise.reject("broken") }));
  const same = new TransformStream();
  const writer = same.writable.getWriter();
  const write = writer.write("x");
  const read = await same.readable.getReader().read();
  await write;
  const reasons: unknown[] = [];
  const cancelled = new TransformStream({ cancel: (reason) => void reasons.push(reason) });
  await cancelled.readable.cancel("r");
  const aborted = new TransformStream({ cancel: (reason) => void reasons.push(reason) });
  await aborted.writable.abort("w");
  return ok({
    changes: equal(await all(through), ["(", "A", "B", ")"]),
    same: equal(read, { value: "x", done: false }),
    terminates: equal(chunks, ["a"]) && ended.asked.at(-1)!.startsWith("cancel TypeError"),
    fails: (await fails(() => all(failing))) === "broken",
    cancels: equal(reasons, ["r", "w"]) && (await fails(() => cancelled.writable.getWriter().closed)) === "r" && (await fails(() => aborted.readable.getReader().read())) === "w",
    wrong: (await fails(() => new TransformStream({ readableType: "bytes" as any }))) === "RangeError",
  });
}

export async function pipes() {
  const got: unknown[] = [];
  const sink = () => new WritableStream({ write: (chunk) => void got.push(chunk), close: () => void got.push("close"), abort: (reason) => void got.push(`abort ${reason}`) });
  await counting("a", "b").stream.pipeTo(sink());
  const plain = got.splice(0);
  const open = sink();
  await counting("a").stream.pipeTo(open, { preventClose: true });
  const unclosed = got.splice(0);
  const failing = () => new ReadableStream({ pull: () => Promise.reject("broken") });
  const forward = await fails(() => failing().pipeTo(sink()));
  const forwarded = got.splice(0);
  const prevented = await fails(() => failing().pipeTo(sink(), { preventAbort: true }));
  const nothing = got.splice(0);
  const source = counting("a", "b", "c");
  const backward = await fails(() => source.stream.pipeTo(new WritableStream({ write: () => Promise.reject("full") })));
  const kept = counting("a", "b");
  await fails(() => kept.stream.pipeTo(new WritableStream({ write: () => Promise.reject("full") }), { preventCancel: true }));
  const stop = new AbortController();
  const endless = counting(...Array(5).fill("x"));
  const slow = endless.stream.pipeTo(new WritableStream({
    write() {
      stop.abort("enough");
    },
    abort: (reason) => void got.push(`abort ${reason}`),
  }), { signal: stop.signal });
  const stopped = await fails(() => slow);
  const before = counting("a");
  const already = await fails(() => before.stream.pipeTo(sink(), { signal: AbortSignal.abort("no") }));
  const order: string[] = [];
  const late = new WritableStream({ write: async () => (await turn(), void order.push("written")) });
  await new ReadableStream({ start: (c) => (c.enqueue("a"), c.close()) }).pipeTo(late, { preventClose: true });
  order.push("piped");
  const finished = sink();
  await finished.close();
  got.length = 0;
  return ok({
    plain: equal(plain, ["a", "b", "close"]),
    preventClose: equal(unclosed, ["a"]) && !open.locked,
    waitsForWrites: equal(order, ["written", "piped"]),
    forward: forward === "broken" && equal(forwarded, ["abort broken"]) && prevented === "broken" && nothing.length === 0,
    backward: backward === "full" && source.asked.at(-1) === "cancel full" && !source.stream.locked,
    preventCancel: !kept.asked.some((step) => step.startsWith("cancel")) && !kept.stream.locked,
    signal: stopped === "enough" && endless.asked.at(-1) === "cancel enough",
    signalBefore: already === "no" && before.asked.at(-1) === "cancel no",
    toClosed: (await fails(() => counting("a").stream.pipeTo(finished))) === "TypeError",
    wrong: (await fails(() => counting("a").stream.pipeTo({} as any))) === "TypeError" && (await fails(() => counting("a").stream.pipeTo(sink(), { signal: {} as any }))) === "TypeError",
    throughLocked: (await fails(() => { const s = counting("a").stream; s.getReader(); s.pipeThrough(new TransformStream()); })) === "TypeError",
  });
}

export async function texts() {
  const encoded = await all(ReadableStream.from(["a", "\ud83d", "\ude00", "", "é\ud800"]).pipeThrough(new TextEncoderStream()));
  const bytes = new TextEncoder().encode("\ufeffé😀");
  const split = Array.from(bytes, (byte) => Uint8Array.of(byte));
  const decoded = await all(ReadableStream.from(split).pipeThrough(new TextDecoderStream()));
  const cut = await all(ReadableStream.from([bytes.subarray(3, 4)]).pipeThrough(new TextDecoderStream()));
  const decoder = new TextDecoderStream("utf-16le", { ignoreBOM: true });
  return ok({
    encoded: equal(encoded.flatMap((chunk) => [...chunk]), [...new TextEncoder().encode("a😀é\ud800")]) && encoded.length === 4,
    decoded: decoded.join("") === "é😀" && decoded.every((text) => text !== ""),
    cut: equal(cut, ["\ufffd"]),
    fatal: (await fails(() => all(ReadableStream.from([Uint8Array.of(255)]).pipeThrough(new TextDecoderStream("utf-8", { fatal: true }))))) === "TypeError",
    wrongChunk: (await fails(() => all(ReadableStream.from(["text"] as any[]).pipeThrough(new TextDecoderStream())))) === "TypeError",
    attributes: equal([decoder.encoding, decoder.fatal, decoder.ignoreBOM, new TextEncoderStream().encoding], ["utf-16le", false, true, "utf-8"]),
  });
}

export async function transfers() {
  const chunk = { a: [1] };
  const { stream } = counting(chunk, "b");
  const moved = structuredClone(stream, { transfer: [stream] });
  const taken = [stream.locked];
  const [first, second] = await all(moved);
  const got: unknown[] = [];
  const sink = new WritableStream({ write: (chunk) => void got.push(chunk), close: () => void got.push("close") });
  const movedSink = structuredClone({ sink }, { transfer: [sink] }).sink;
  taken.push(sink.locked);
  await ReadableStream.from(["x", "y"]).pipeTo(movedSink);
  await turn();
  const transform = new TransformStream({ transform: (chunk, c) => c.enqueue(chunk + chunk) });
  const movedTransform = structuredClone(transform, { transfer: [transform] });
  taken.push(transform.readable.locked, transform.writable.locked);
  const doubled = await all(ReadableStream.from(["x"]).pipeThrough(movedTransform));
  const failing = ReadableStream.from([() => 1]);
  const movedFailing = structuredClone(failing, { transfer: [failing] });
  const locked = new ReadableStream();
  locked.getReader();
  const kept = new ReadableStream();
  return ok({
    locks: taken.every(Boolean),
    readable: moved instanceof ReadableStream && equal([first, second], [{ a: [1] }, "b"]) && first !== chunk,
    writable: equal(got, ["x", "y", "close"]),
    transform: equal(doubled, ["xx"]),
    notCloneable: /^(TypeError|DataCloneError)$/.test(await fails(() => all(movedFailing))),
    locked: (await fails(() => structuredClone(locked, { transfer: [locked] }))) === "DataCloneError",
    failedMovesNothing: (await fails(() => structuredClone({ kept, no: () => 1 }, { transfer: [kept] }))) !== "nothing" && !kept.locked,
  });
}
