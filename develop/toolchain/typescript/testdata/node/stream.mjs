import Stream, { Readable, Writable, Duplex, Transform, PassThrough, pipeline, finished } from "node:stream";
import { pipeline as piped, finished as over } from "stream/promises";
import { arrayBuffer, blob, buffer, json, text } from "node:stream/consumers";
import { ReadableStream, WritableStream } from "stream/web";
import { inherits } from "util";

const collect = (into) => new Writable({ write(chunk, encoding, done) { into.push(String(chunk)); done(); } });
const upper = () => new Transform({ transform(chunk, encoding, done) { done(null, String(chunk).toUpperCase()); } });
const all = async (stream) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
};
const events = (stream, names) => {
  const seen = [];
  for (const name of names) stream.on(name, (value) => seen.push(value === undefined ? name : [name, String(value)]));
  return seen;
};

export const cases = {
  readable: async () => {
    const source = ["a", "b", "c", null];
    const stream = new Readable({ read() { this.push(source.shift()); } });
    return (await all(stream)).map(String);
  },
  from: async () => [await all(Readable.from(["a", "b"])), await all(Readable.from((async function* () { yield 1; yield 2; })())), await all(Readable.from("text")), (await all(Readable.from(Buffer.from("x")))).map(String)],
  flowing: async () => {
    const stream = Readable.from(["a", "b"]);
    const seen = events(stream, ["data", "end", "close"]);
    await over(stream);
    await new Promise((done) => setTimeout(done, 5));
    return seen;
  },
  encoding: async () => {
    const bytes = Buffer.from("a€b");
    const stream = new Readable({ read() {} });
    stream.setEncoding("utf8");
    for (const byte of bytes) stream.push(Buffer.from([byte]));
    stream.push(null);
    return (await all(stream)).join("");
  },
  read: async () => {
    const stream = new Readable({ read() {} });
    stream.push("abcdef");
    stream.push(null);
    await new Promise((done) => stream.once("readable", done));
    return [String(stream.read(2)), String(stream.read(1)), String(stream.read()), stream.read()];
  },
  writable: async () => {
    const seen = [];
    const stream = new Writable({ decodeStrings: false, highWaterMark: 3, write(chunk, encoding, done) { seen.push([chunk, encoding]); setTimeout(done, 1); }, final(done) { seen.push("final"); done(); } });
    const noted = events(stream, ["drain", "finish", "close"]);
    const room = [stream.write("a"), stream.write("bc")];
    await new Promise((done) => stream.once("drain", done));
    stream.end("last", () => seen.push("ended"));
    await over(stream);
    await new Promise((done) => setTimeout(done, 5));
    return [room, seen, noted, stream.writableFinished, stream.destroyed];
  },
  writev: async () => {
    const seen = [];
    const stream = new Writable({ writev(chunks, done) { seen.push(chunks.map(({ chunk }) => String(chunk))); done(); } });
    stream.cork();
    stream.write("a");
    stream.write("b");
    stream.uncork();
    stream.end();
    await over(stream);
    return seen;
  },
  pipe: async () => {
    const seen = [];
    const end = collect(seen);
    Readable.from(["a", "b"]).pipe(upper()).pipe(end);
    await over(end);
    return seen;
  },
  slow: async () => {
    const seen = [];
    const end = new Writable({ objectMode: true, highWaterMark: 1, write(chunk, _, done) { seen.push(chunk); setTimeout(done, 1); } });
    await piped(Readable.from(Array.from({ length: 20 }, (_, i) => i)), new PassThrough({ objectMode: true, highWaterMark: 2 }), end);
    return seen;
  },
  pipeline: () => new Promise((done) => {
    const seen = [];
    pipeline(Readable.from(["x", "y"]), upper(), collect(seen), (error) => done([error ?? null, seen]));
  }),
  pipelineFunctions: async () => {
    const seen = [];
    await piped(["a", "b"], async function* (source) { for await (const one of source) yield one + one; }, async (source) => { for await (const one of source) seen.push(String(one)); });
    return seen;
  },
  pipelineFails: async () => {
    const source = Readable.from(["a"]);
    const end = collect([]);
    const broken = new Transform({ transform(_c, _e, done) { done(new Error("broken")); } });
    const error = await piped(source, broken, end).catch((e) => e.message);
    return [error, source.destroyed, end.destroyed, broken.destroyed];
  },
  flush: async () => {
    const stream = new Transform({ transform(c, _e, done) { this.push(c); this.push("-"); done(); }, flush(done) { done(null, "end"); } });
    stream.write("a");
    stream.end("b");
    return (await all(stream)).map(String).join("");
  },
  duplex: async () => {
    const written = [];
    const stream = new Duplex({ read() { this.push("out"); this.push(null); }, write(c, _e, done) { written.push(String(c)); done(); } });
    stream.end("in");
    return [(await all(stream)).map(String), written, stream instanceof Writable, stream instanceof Readable, stream instanceof Stream];
  },
  destroy: async () => {
    const stream = new Readable({ read() {} });
    const seen = events(stream, ["error", "close", "end"]);
    stream.destroy(new Error("gone"));
    await new Promise((done) => setTimeout(done, 5));
    return [seen, stream.destroyed, stream.errored.message, stream.closed];
  },
  breaks: async () => {
    const stream = Readable.from(["a", "b", "c"]);
    for await (const one of stream) if (one === "b") break;
    return stream.destroyed;
  },
  iterationFails: async () => all(new Readable({ read() { this.destroy(new Error("read")); } })),
  early: async () => {
    const stream = new Readable({ read() {} });
    setTimeout(() => stream.destroy(), 1);
    return over(stream);
  },
  afterEnd: async () => {
    const stream = collect([]);
    stream.end();
    const seen = events(stream, ["error"]);
    const error = await new Promise((done) => stream.write("x", done));
    await new Promise((done) => setTimeout(done, 5));
    return [error.code, seen.length];
  },
  old: async () => {
    function Old(list) {
      Readable.call(this, { objectMode: true });
      this.list = list;
    }
    inherits(Old, Readable);
    Old.prototype._read = function () {
      this.push(this.list.length > 0 ? this.list.shift() : null);
    };
    function Sink() {
      Writable.call(this, { objectMode: true });
      this.seen = [];
    }
    inherits(Sink, Writable);
    Sink.prototype._write = function (chunk, _encoding, done) {
      this.seen.push(chunk);
      done();
    };
    const sink = new Sink();
    await piped(new Old([1, 2, 3]), sink);
    return sink.seen;
  },
  helpers: async () => [await Readable.from([1, 2, 3]).map((x) => x * 2).toArray(), await Readable.from([1, 2, 3]).filter((x) => x > 1).toArray(), await Readable.from([1, 2, 3]).reduce((a, b) => a + b, 0), await Readable.from([1, 2, 3]).take(2).toArray()],
  objects: async () => [await all(Readable.from([{ a: 1 }, 0, false])), new Readable({ objectMode: true }).readableObjectMode, new Writable().writableHighWaterMark > 0],
  unshift: async () => {
    const stream = new Readable({ read() {} });
    stream.push("b");
    stream.unshift("a");
    stream.push(null);
    return (await all(stream)).join("");
  },
  pauses: async () => {
    const stream = Readable.from(["a", "b", "c"]);
    const seen = [];
    stream.on("data", (chunk) => {
      seen.push(chunk);
      stream.pause();
      setTimeout(() => stream.resume(), 1);
    });
    await over(stream);
    return seen;
  },
  finished: () => new Promise((done) => {
    const stream = collect([]);
    finished(stream, (error) => done(error ?? "done"));
    stream.end();
  }),
  web: async () => {
    const web = Readable.toWeb(Readable.from([Buffer.from("a"), Buffer.from("b")]));
    const parts = [];
    const reader = web.getReader();
    for (let step = await reader.read(); !step.done; step = await reader.read()) parts.push([step.value instanceof Uint8Array, String.fromCharCode(...step.value)]);
    const back = Readable.fromWeb(new ReadableStream({ start(c) { c.enqueue("x"); c.enqueue("y"); c.close(); } }), { objectMode: true });
    const seen = [];
    const writer = Writable.toWeb(collect(seen)).getWriter();
    await writer.write("w");
    await writer.close();
    const into = Writable.fromWeb(new WritableStream({ write(chunk) { seen.push(["web", String(chunk)]); } }), { objectMode: true });
    await piped(Readable.from(["p"]), into);
    return [parts, await all(back), seen];
  },
  webFails: async () => all(Readable.fromWeb(new ReadableStream({ start(c) { c.error(new Error("web")); } }))),
  webCancels: async () => {
    const source = Readable.from(["a", "b"]);
    await Readable.toWeb(source).cancel();
    await new Promise((done) => setTimeout(done, 5));
    return source.destroyed;
  },
  consumers: async () => [await text(Readable.from(["a", "é"])), await json(new Response('{"a":1}').body), (await buffer(Readable.from([Buffer.from("b")]))).toString(), (await arrayBuffer(Readable.from(["abc"]))).byteLength, (await blob(Readable.from(["abc"]))).size],
  unimplemented: async () => all(new Readable()),
  badChunk: () => new Writable({ write() {} }).write(5),
  nullChunk: () => new Writable({ write() {} }).write(null),
  emptyObjects: () => all(Readable.from(["a", "", Buffer.alloc(0), [], "b"])),
  unshiftAfterRead: async () => {
    const r = new Readable({ read() {} });
    r.push("header\nbody");
    r.push(null);
    await new Promise((done) => r.once("readable", done));
    const both = String(r.read());
    r.unshift(both.slice(7));
    return [both.slice(0, 6), await text(r)];
  },
  syncWrites: async () => {
    const seen = [];
    const w = new Writable({ write(chunk, encoding, done) { seen.push(String(chunk)); done(); } });
    for (const x of "abc") w.write(x, () => seen.push(`${x} written`));
    seen.push("after");
    w.on("prefinish", () => seen.push("prefinish"));
    w.end(() => seen.push("end"));
    await over(w);
    return seen;
  },
  throwingWrite: async () => {
    const w = new Writable({ write() { throw new Error("thrown"); } });
    try { w.write("a"); } catch (error) { return [error.message, w.destroyed]; }
  },
  throwingDestroy: () => new Promise((done) => new Readable({ read() {}, destroy() { throw new Error("in destroy"); } }).on("error", (error) => done(error.message)).destroy()),
  waitingCallbacks: async () => {
    const seen = [];
    const w = new Writable({ construct(done) { done(new Error("construct")); }, write(chunk, encoding, done) { done(); } });
    w.on("error", (error) => seen.push(error.message));
    w.write("a", (error) => seen.push(`a ${error.message}`));
    await new Promise((done) => w.on("close", done));
    return seen;
  },
  endTwice: async () => {
    const codes = [];
    const w = new Writable({ write(chunk, encoding, done) { done(); } });
    w.end();
    await over(w);
    await new Promise((done) => w.end((error) => done(codes.push(error.code))));
    return codes;
  },
  badPush: () => new Promise((done) => new Readable({ read() {} }).on("error", (error) => done(error.code)).push({})),
  badSize: () => new Readable({ highWaterMark: -1 }),
  stepEndsEarly: async () => {
    const source = Readable.from(["a", "b", "c"]);
    const seen = [];
    await piped(source, async function* (chunks) { for await (const chunk of chunks) { yield chunk; return; } }, async (chunks) => { for await (const chunk of chunks) seen.push(chunk); });
    return [seen, source.destroyed];
  },
  stepThrows: async () => {
    const source = Readable.from(["a", "b"]);
    try { await piped(source, async function* (chunks) { for await (const _ of chunks) throw new Error("step"); }, new PassThrough()); } catch (error) { return [error.message, source.destroyed]; }
  },
  pipelineKeepsOpen: async () => {
    const into = new PassThrough();
    await piped(Readable.from(["a"]), into, { end: false });
    return into.writableEnded;
  },
  loopEndsEarly: async () => {
    const caught = [];
    const r = Readable.from((async function* () { try { yield 1; yield 2; } catch (error) { caught.push(error.name); throw error; } finally { caught.push("finally"); } })());
    for await (const _ of r) break;
    await new Promise((done) => (r.closed ? done() : r.once("close", done)));
    return [r.errored?.name, caught];
  },
  wrap: async () => {
    const old = new Stream();
    const read = text(new Readable().wrap(old));
    old.emit("data", Buffer.from("old"));
    old.emit("end");
    return read;
  },
  compose: async () => {
    const both = Stream.compose(upper(), async function* (chunks) { for await (const chunk of chunks) yield `${chunk}!`; });
    both.end("a");
    return [await text(both), await Readable.from(["a", "b"]).compose(async function* (chunks) { for await (const chunk of chunks) yield chunk + 1; }).toArray()];
  },
  duplexFrom: async () => {
    const lettered = Duplex.from(async function* (chunks) { for await (const chunk of chunks) yield String(chunk).toUpperCase(); });
    lettered.end("abc");
    const written = [];
    const pair = Duplex.from({ readable: Readable.from(["r"]), writable: collect(written) });
    pair.end("w");
    const web = Duplex.fromWeb(new TransformStream());
    web.end("web");
    return [await text(lettered), await text(pair), written, await text(web)];
  },
  stateOfPackages: async () => {
    const w = new Writable({ write(chunk, encoding, done) { done(); } });
    const before = [w._writableState.ended, w._writableState.destroyed, w.writableAborted];
    w.end();
    await over(w);
    return [before, w._writableState.ended, new Readable()._readableState.destroyed];
  },
  badHelpers: async () => [await Readable.from([]).reduce((a) => a).catch((error) => error.code)],
  badTake: () => Readable.from([1]).take(-1),
  oldPipe: async () => {
    const old = new Stream();
    const seen = [];
    const into = old.pipe(collect(seen));
    old.emit("data", "a");
    old.emit("data", "b");
    old.emit("end");
    await over(into);
    return [seen, old.listenerCount("data")];
  },
};
