// Watches live routes with the generated client, of a server that says byte for byte what is sent when. Each step waits
// for a request, an event or a call: nothing waits for time to pass.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { createClient, ProblemError } from "./out/client.js";

/** A client whose watches end with the test. */
function clientOf(t, options) {
  const ended = new AbortController();
  t.after(() => ended.abort());
  const client = createClient(options);
  for (const [name, watch] of Object.entries(client.watch)) {
    client.watch[name] = (request, onValue) => watch({ signal: ended.signal, ...request }, onValue);
  }
  return client;
}

// ---- the server ----

/** A queue whose next entry is waited for. */
function queue() {
  const entries = [];
  const waiting = [];
  return {
    entries,
    add: (entry) => (waiting.shift() ?? ((e) => entries.push(e)))(entry),
    next: () => (entries.length > 0 ? Promise.resolve(entries.shift()) : new Promise((resolve) => waiting.push(resolve))),
  };
}

/** A request that the test answers. `out` has the answer's head, bytes and end. */
const asked = (line, headers, body, closed, out) => ({
  line,
  headers,
  body: body && JSON.parse(body),
  /** The client has closed the connection, or its end was sent. */
  closed,
  open(token) {
    out.head(200, { "content-type": "text/event-stream" });
    out.write(`event: open\ndata: {"connection":"${token}"}\n\n`);
  },
  write: (text) => out.write(text),
  send(event, watch, id, data) {
    out.write(`event: ${event}\nwatch: ${watch}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
  },
  end: () => out.end(),
  answer(status, body, headers = {}) {
    out.head(status, { "content-type": "application/problem+json", ...headers });
    if (body) out.write(JSON.stringify(body));
    out.end();
  },
});

/** A server whose requests the test answers, one after the other. */
async function server(t) {
  const requests = queue();
  const http = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req.setEncoding("utf8")) body += chunk;
    const out = { head: (status, headers) => res.writeHead(status, headers), write: (text) => res.write(text), end: () => res.end() };
    requests.add(asked(`${req.method} ${req.url}`, req.headers, body, once(res, "close"), out));
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  return { next: requests.next, url: `http://127.0.0.1:${http.address().port}`, close: () => http.closeAllConnections() };
}

/** The same without a network, for tests that own the timers: those of Node's fetch would be theirs too. */
function inMemory() {
  const requests = queue();
  let fail;
  const fetch = (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      let to;
      const stream = new ReadableStream({ start: (controller) => void (to = controller) });
      const encoder = new TextEncoder();
      const closed = once(signal, "abort");
      fail = (reason) => {
        reject(reason);
        to.error(reason);
      };
      signal.addEventListener("abort", () => fail(signal.reason));
      const out = {
        head: (status, fields) => resolve(new Response(status === 204 ? null : stream, { status, headers: fields })),
        write: (text) => to.enqueue(encoder.encode(text)),
        end: () => to.close(),
      };
      requests.add(asked(`${method} ${url}`, Object.fromEntries(headers), body, closed, out));
    });
  return { next: requests.next, fetch, close: () => fail(new TypeError("network error")) };
}

/** Records the callbacks of a watch: [value], or [status, ended] of an error. */
function listener() {
  const all = queue();
  return {
    next: all.next,
    entries: all.entries,
    onValue: (value) => all.add([value]),
    onError: (error, ended) => {
      assert(error instanceof ProblemError);
      all.add([error.status, ended]);
    },
  };
}

/** Lets a test advance time: timers fire in their order when `advance` is called, and the names of their delays are kept. */
function timers(t) {
  const real = { setTimeout, clearTimeout, random: Math.random, now: Date.now };
  const pending = new Map();
  let [now, names] = [Date.now(), 0];
  const started = queue();
  globalThis.setTimeout = (run, delay) => {
    pending.set(++names, { run, at: now + delay });
    started.add(delay);
    return names;
  };
  globalThis.clearTimeout = (name) => pending.delete(name);
  Date.now = () => now;
  Math.random = () => 0.5;
  t.after(() => {
    Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout });
    Object.assign(Math, { random: real.random });
    Date.now = real.now;
  });
  return {
    /** Waits until a timer of that delay is started. */
    async started(delay) {
      for (;;) if ((await started.next()) === delay) return;
    },
    advance(by) {
      now += by;
      for (const [name, { run, at }] of [...pending].sort(([, a], [, b]) => a.at - b.at)) {
        if (at <= now && pending.delete(name)) run();
      }
    },
  };
}

const board = (id, votes) => ({ id, votes });
const names = (request) => request.body.watches.map(({ name, path, lastEventId }) => [name, path, lastEventId]);

// ---- one connection for all ----

test("watches of one turn begin with one request", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url + "/", apiKey: "key_1", headers: { "x-mine": "yes" } });
  const [a, b, texts] = [listener(), listener(), listener()];
  client.watch.board({ params: { id: "7" }, query: { x: 1 } }, a.onValue);
  client.watch.board({ params: { id: "ü/" } }, b.onValue);
  const stop = client.watch.texts({}, texts.onValue);
  const request = await s.next();
  assert.equal(request.line, "POST /v1/_live");
  const { authorization, accept, "content-type": type, "x-mine": mine } = request.headers;
  assert.deepEqual([authorization, accept, type, mine], ["Bearer key_1", "text/event-stream", "application/json", "yes"]);
  assert.deepEqual(request.body, {
    watches: [{ name: "1", path: "/v1/boards/7?x=1" }, { name: "2", path: "/v1/boards/%C3%BC%2F" }, { name: "3", path: "/v1/texts" }],
  });
  request.open("t1");
  request.send("value", "2", "5-a", board("ü/", 2));
  request.send("value", "1", "5-b", board("7", 1));
  request.write("event: value\nwatch: 3\nid: 5-c\ndata: two\ndata: lines\n\nevent: value\nwatch: 3\nid: 5-d\ndata: \n\n");
  assert.deepEqual(await a.next(), [board("7", 1)]);
  assert.deepEqual(await b.next(), [board("ü/", 2)]);
  assert.deepEqual([await texts.next(), await texts.next()], [["two\nlines"], [undefined]]);

  // Changes are sent together, on the same connection.
  stop();
  const c = listener();
  const stopC = client.watch.board({ params: { id: "8" } }, c.onValue);
  const change = await s.next();
  assert.deepEqual([change.line, change.body], ["POST /v1/_live", { connection: "t1", add: [{ name: "4", path: "/v1/boards/8" }], remove: ["3"] }]);
  assert.equal(change.headers.authorization, "Bearer key_1");
  change.answer(204);
  request.send("value", "3", "6-a", "late"); // the server had sent it before
  request.send("value", "4", "6-b", board("8", 0));
  assert.deepEqual(await c.next(), [board("8", 0)]);
  assert.deepEqual(texts.entries, []);

  // An equal watch sends nothing, and begins with the last value. What is over before it is sent, is not sent either.
  const again = listener();
  const stopAgain = client.watch.board({ params: { id: "8" } }, again.onValue);
  client.watch.board({ params: { id: "9" } }, again.onValue)();
  assert.deepEqual(await again.next(), [board("8", 0)]);
  stopC();
  request.send("value", "4", "7-a", board("8", 1));
  assert.deepEqual(await again.next(), [board("8", 1)]);
  stopAgain();
  stopAgain();
  assert.deepEqual((await s.next()).body, { connection: "t1", add: [], remove: ["4"] });
  assert.deepEqual(c.entries, []);
});

test("the connection is closed with the last watch, and another one is opened for the next", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url });
  const a = listener();
  let stop = client.watch.texts({}, a.onValue);
  const first = await s.next();
  first.open("t1");
  first.send("value", "1", "1-a", 1);
  assert.deepEqual(await a.next(), [1]);
  stop(); // a page that shows the same again, in one turn, keeps the connection
  stop = client.watch.texts({}, a.onValue);
  const change = await s.next();
  assert.deepEqual(change.body, { connection: "t1", add: [{ name: "2", path: "/v1/texts" }], remove: ["1"] });
  change.answer(204);
  first.send("value", "2", "1-a", 1);
  assert.deepEqual(await a.next(), [1]);
  stop();
  await first.closed;
  client.watch.texts({}, a.onValue);
  client.watch.texts({}, a.onValue)(); // another watch with the same callback
  const second = await s.next();
  assert.deepEqual(names(second), [["1", "/v1/texts", undefined]]);
  second.open("t2");
  second.send("value", "1", "1-a", 2);
  assert.deepEqual(await a.next(), [2]);
});

test("a connection has at most 100 watches", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url });
  const stops = Array.from({ length: 101 }, (_, i) => client.watch.board({ params: { id: i } }, () => {}));
  const both = [await s.next(), await s.next()].map((r) => r.body.watches.length);
  assert.deepEqual(both.sort(), [1, 100]);
  stops.forEach((stop) => stop());
});

// ---- reading ----

test("events are read whatever their line ends are and wherever their bytes are split", async (t) => {
  const text =
    '\ufeff: a comment\n\nevent: open\ndata: {"connection":"t"}\n\n' +
    ":\nretry: 10\nevent: value\nunknown: x: y\nwatch: 1\nid: 1-a\ndata: {\ndata:  \"text\": \"ä€😀: b\",\ndata:\"n\": 1\ndata\ndata: }\nfield\n\n" +
    "data: of no watch\n\nevent: value\n\nwatch: 1\nevent: other\ndata: 1\n\nwatch:1\nevent:value\nid:2-a\ndata:2\n\n" +
    "event: value\nwatch: 1\nid: 3-a\ndata: \"cut off\"\n";
  for (const end of ["\n", "\r", "\r\n"]) {
    const bytes = new TextEncoder().encode(text.replaceAll("\n", end));
    for (let size = 1; size <= bytes.length; size += size < 9 ? 1 : 97) {
      for (const first of new Set([1, size])) {
        const parts = [bytes.slice(0, first)];
        for (let at = first; at < bytes.length; at += size) parts.push(bytes.slice(at, at + size));
        const requests = queue();
        const fetch = async (url, { body }) => {
          requests.add(JSON.parse(body));
          return new Response(new ReadableStream({ pull: (to) => (parts.length > 0 ? to.enqueue(parts.shift()) : to.close()) }));
        };
        const a = listener();
        const stop = clientOf(t, { fetch }).watch.texts({}, a.onValue);
        assert.deepEqual(await a.next(), [{ text: "ä€😀: b", n: 1 }], `${JSON.stringify(end)}, ${size}`);
        assert.deepEqual(await a.next(), [2]);
        if (size === 7 && first === 7) {
          await requests.next();
          assert.deepEqual((await requests.next()).watches, [{ name: "1", path: "/v1/texts", lastEventId: "2-a" }]);
        }
        stop();
        assert.deepEqual(a.entries, []);
      }
    }
  }
});

// ---- connecting again ----

test("a connection that ends is opened again, with the last ids and what is watched then", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url });
  const [a, b] = [listener(), listener()];
  client.watch.board({ params: { id: 1 }, onError: a.onError }, a.onValue);
  const stop = client.watch.board({ params: { id: 2 } }, b.onValue);
  const first = await s.next();
  first.open("t1");
  first.send("value", "1", "1-a", board("1", 1));
  first.send("value", "2", "1-b", board("2", 1));
  assert.deepEqual([await a.next(), await b.next()], [[board("1", 1)], [board("2", 1)]]);
  first.end();
  const second = await s.next();
  assert.deepEqual(names(second), [["1", "/v1/boards/1", "1-a"], ["2", "/v1/boards/2", "1-b"]]);
  second.open("t2");
  second.write(": unchanged\n\n: unchanged\n\n");
  second.send("problem", "1", "2-c", { status: 404, code: "not_found", title: "Not Found" });
  assert.deepEqual(await a.next(), [404, false]);

  // While there is no connection, watches come and go. The end of the network is no error either.
  const c = listener();
  s.close();
  stop();
  client.watch.board({ params: { id: 3 } }, c.onValue);
  let third = await s.next();
  if ("connection" in third.body) {
    third.answer(404, {}); // it was sent before the client noticed the end
    third = await s.next();
  }
  assert.deepEqual(names(third), [["1", "/v1/boards/1", "2-c"], ["3", "/v1/boards/3", undefined]]);
  third.open("t3");
  third.send("value", "1", "3-d", board("1", 5));
  assert.deepEqual(await a.next(), [board("1", 5)]);

  // A connection that the server does not know any more is replaced.
  client.watch.board({ params: { id: 4 } }, c.onValue);
  const change = await s.next();
  assert.equal(change.body.connection, "t3");
  change.answer(404, { status: 404 });
  await third.closed;
  assert.deepEqual(names(await s.next()).map(([, path]) => path), ["/v1/boards/1", "/v1/boards/3", "/v1/boards/4"]);
  assert.deepEqual([b.entries, c.entries], [[], []]);
});

test("each failure doubles the time to the next attempt, up to 30 s, or what Retry-After says", async (t) => {
  const s = inMemory();
  const time = timers(t);
  const a = listener();
  clientOf(t, { fetch: s.fetch }).watch.texts({ onError: a.onError }, a.onValue);
  const again = async (delay) => {
    await time.started(delay);
    time.advance(delay - 1);
    time.advance(1);
  };
  for (const delay of [375, 750, 1500, 3000, 6000, 12000, 22500, 22500]) {
    (await s.next()).answer(503, { status: 503 });
    await again(delay);
  }
  (await s.next()).answer(429, { status: 429 }, { "retry-after": "60" });
  await again(60000);
  (await s.next()).write("not an answer of the server");
  s.close();
  await again(22500);
  const open = await s.next();
  open.open("t1");
  open.end();
  await again(375);
  for (const delay of [750, 1500]) {
    const unable = await s.next();
    unable.open("t1");
    unable.send("end", "1", "1-a", { status: 503, code: "key_store_stale" });
    await again(delay);
  }

  // A connection on which nothing is heard is replaced.
  const silent = await s.next();
  silent.open("t2");
  silent.send("value", "1", "1-a", 1);
  assert.deepEqual(await a.next(), [1]);
  time.advance(44_999);
  silent.send("value", "1", "1-b", 2);
  assert.deepEqual(await a.next(), [2]);
  time.advance(44_999);
  silent.send("value", "1", "1-c", 3);
  assert.deepEqual(await a.next(), [3]);
  time.advance(45_000);
  await silent.closed;
  await again(375);
  assert.deepEqual(names(await s.next()), [["1", "/v1/texts", "1-c"]]);
  assert.deepEqual(a.entries, []);
});

// ---- errors ----

test("a problem is an error and the watch goes on; an end is the last one", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url });
  const [a, quiet, other] = [listener(), listener(), listener()];
  let error;
  client.watch.texts({ onError: (e, ended) => ((error ??= e), a.onError(e, ended)) }, a.onValue);
  client.watch.texts({}, quiet.onValue)();
  client.watch.board({ params: { id: 1 }, onError: other.onError }, other.onValue);
  const request = await s.next();
  request.open("t1");
  request.send("problem", "1", "1-a", { status: 409, code: "odd", detail: "It is odd.", requestId: "r1", errors: [{ field: "a", message: "is odd" }] });
  assert.deepEqual(await a.next(), [409, false]);
  assert.deepEqual([error.code, error.detail, error.requestId, error.errors, error.message], ["odd", "It is odd.", "r1", [{ field: "a", message: "is odd" }], "409 odd: It is odd."]);
  const late = listener();
  const stopLate = client.watch.texts({ onError: late.onError }, late.onValue);
  assert.deepEqual(await late.next(), [409, false]);
  stopLate();
  request.send("value", "1", "1-b", 1);
  assert.deepEqual(await a.next(), [1]);
  request.send("end", "1", "1-c", { status: 403, code: "forbidden" });
  assert.deepEqual(await a.next(), [403, true]);
  request.send("problem", "2", "1-d", "no JSON object");
  assert.deepEqual(await other.next(), [500, false]);

  // What has ended is not opened again by itself, but can be watched again.
  client.watch.texts({}, a.onValue);
  const change = await s.next();
  assert.deepEqual(change.body, { connection: "t1", add: [{ name: "3", path: "/v1/texts" }], remove: [] });
  change.answer(204);
  request.end();
  assert.deepEqual(names(await s.next()), [["2", "/v1/boards/1", "1-d"], ["3", "/v1/texts", undefined]]);
  assert.deepEqual([a.entries, quiet.entries, late.entries], [[], [], []]);
});

test("a connection that is refused ends its watches", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url, apiKey: "old" });
  const a = listener();
  client.watch.texts({ onError: a.onError }, a.onValue);
  const values = client.watch.board({ params: { id: 1 } })[Symbol.asyncIterator]();
  const next = values.next();
  (await s.next()).answer(401, { status: 401, code: "invalid_token" });
  assert.deepEqual(await a.next(), [401, true]);
  await assert.rejects(next, { name: "ProblemError", status: 401, code: "invalid_token" });
  assert.deepEqual(await values.next(), { done: true, value: undefined });
  client.watch.texts({ onError: a.onError }, a.onValue);
  assert.deepEqual(names(await s.next()), [["1", "/v1/texts", undefined]]);
});

test("a credential that was refused is replaced by a newer one", async (t) => {
  const s = inMemory();
  const time = timers(t);
  let token = "t1";
  const client = clientOf(t, { fetch: s.fetch, bearer: async () => token });
  const [a, b] = [listener(), listener()];
  client.watch.texts({ onError: a.onError }, a.onValue);
  client.watch.board({ params: { id: 1 }, onError: b.onError }, b.onValue);
  const first = await s.next();
  assert.equal(first.headers.authorization, "Bearer t1");
  token = "t2";
  first.open("c1");
  first.write('event: end\nwatch: 1\ndata: {"status":401}\n\nevent: end\nwatch: 2\ndata: {"status":401}\n\n');
  await first.closed;
  await time.started(375);
  time.advance(375);
  const second = await s.next();
  assert.deepEqual([second.headers.authorization, second.body.watches.length], ["Bearer t2", 2]);
  token = "t3";
  second.open("c2");
  second.send("end", "1", "1-a", { status: 401 });
  assert.deepEqual(await a.next(), [401, true]); // so soon that a newer one would not help
  time.advance(30_001);
  second.send("end", "2", "1-a", { status: 401 });
  await second.closed;
  await time.started(375);
  time.advance(375);
  const third = await s.next();
  assert.deepEqual([third.headers.authorization, names(third)], ["Bearer t3", [["2", "/v1/boards/1", undefined]]]);
  time.advance(30_001);
  third.answer(401, { status: 401 });
  assert.deepEqual(await b.next(), [401, true]); // there is no newer one
});

test("errors of callbacks, and an end that no callback hears, are uncaught errors", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url });
  const uncaught = queue();
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", uncaught.add);
  t.after(() => {
    process.removeAllListeners("uncaughtException");
    others.forEach((other) => process.on("uncaughtException", other));
  });
  const a = listener();
  client.watch.texts({}, () => {
    throw new Error("mine");
  });
  client.watch.texts({}, a.onValue);
  const request = await s.next();
  request.open("t1");
  request.send("problem", "1", "1-a", { status: 404 });
  request.send("value", "1", "1-b", 1);
  assert.equal((await uncaught.next()).message, "mine");
  assert.deepEqual(await a.next(), [1]);
  request.send("end", "1", "1-c", { status: 403 });
  assert.equal((await uncaught.next()).status, 403);
  assert.equal((await uncaught.next()).status, 403);
  await request.closed;
});

// ---- iterations and signals ----

test("an iteration skips to the newest value", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url });
  const [problems, a] = [queue(), listener()];
  const boards = client.watch.board({ params: { id: 1 }, onError: (e, ended) => problems.add([e.status, ended]) });
  client.watch.texts({}, a.onValue); // nothing is sent before the iteration begins
  const request = await s.next();
  assert.deepEqual(names(request).map(([, path]) => path), ["/v1/texts"]);
  request.open("t1");
  const seen = [];
  const reading = (async () => {
    for await (const { votes } of boards) {
      seen.push(votes);
      if (votes === 1) {
        for (const n of [2, 3, 4]) request.send("value", "2", `${n}-a`, board("1", n));
        request.send("problem", "2", "5-a", { status: 404 });
        assert.deepEqual(await problems.next(), [404, false]);
      } else if (votes === 5) {
        break;
      } else {
        request.send("value", "2", "6-a", board("1", 5));
      }
    }
  })();
  const added = await s.next();
  assert.deepEqual(added.body.add, [{ name: "2", path: "/v1/boards/1" }]);
  added.answer(204);
  request.send("value", "2", "1-a", board("1", 1));
  await reading;
  assert.deepEqual(seen, [1, 4, 5]);
  const removed = await s.next();
  assert.deepEqual(removed.body, { connection: "t1", add: [], remove: ["2"] });
  removed.answer(204);

  // Each iteration is a watch of its own, and can be returned from while it waits.
  const values = boards[Symbol.asyncIterator]();
  const waits = values.next();
  const again = await s.next();
  assert.deepEqual(again.body.add, [{ name: "3", path: "/v1/boards/1" }]);
  again.answer(204);
  assert.deepEqual(await values.return(), { done: true, value: undefined });
  assert.deepEqual(await waits, { done: true, value: undefined });
  assert.deepEqual((await s.next()).body.remove, ["3"]);
});

test("a signal stops a watch", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url });
  const controller = new AbortController();
  const { signal } = controller;
  const a = listener();
  client.watch.texts({ signal, onError: a.onError }, a.onValue);
  const next = client.watch.board({ params: { id: 1 }, signal })[Symbol.asyncIterator]().next();
  const request = await s.next();
  request.open("t1");
  controller.abort(new Error("enough"));
  await assert.rejects(next, { message: "enough" });
  await request.closed;
  client.watch.texts({ signal }, a.onValue);
  await assert.rejects(client.watch.texts({ signal })[Symbol.asyncIterator]().next(), { message: "enough" });
  client.watch.board({ params: { id: 2 } }, a.onValue);
  assert.deepEqual(names(await s.next()).map(([, path]) => path), ["/v1/boards/2"]);
  assert.deepEqual(a.entries, []);
  assert.throws(() => client.watch.board({ params: { id: ".." } }), TypeError);
});

test("other requests of the client are those of the routes", async (t) => {
  const s = await server(t);
  const client = clientOf(t, { baseUrl: s.url, apiKey: () => "key_2" });
  const answer = client.board({ params: { id: 7 } });
  const request = await s.next();
  assert.deepEqual([request.line, request.headers.authorization], ["GET /v1/boards/7", "Bearer key_2"]);
  request.answer(200, board("7", 3), { "content-type": "application/json" });
  assert.deepEqual(await answer, board("7", 3));
});
