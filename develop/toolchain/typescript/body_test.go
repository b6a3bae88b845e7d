package typescript_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// bodyFile has the handlers of the tests below. Each claim is a condition that must hold.
const bodyFile = `import { fetchHandler, ok } from "@runner/sdk";

const bytes = (text: string) => new TextEncoder().encode(text);
const stream = (...chunks: unknown[]) => new ReadableStream({
  start(controller) {
    for (const chunk of chunks) controller.enqueue(chunk);
    controller.close();
  },
});
const post = (body: unknown, more: object = {}) => new Request("https://a.example/", { method: "POST", body: body as BodyInit, ...more });
const fails = async (does: () => unknown): Promise<string> => {
  try {
    await does();
    return "";
  } catch (error) {
    return (error as Error).name;
  }
};
const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

export async function bodies() {
  const locked = new Response("a");
  locked.body!.getReader();
  const read = new Response("a");
  await read.text();
  const cancelled = new Response("a");
  await cancelled.body!.cancel();
  const given = stream(bytes("a\u00e9").subarray(0, 2), bytes("a\u00e9").subarray(2));
  const made = new Response(given);
  const reading = made.text();
  const usedAtOnce = made.bodyUsed && given.locked;
  const one = new Response(stream(bytes("ab"), bytes("c")));
  const other = one.clone();
  const scratch = new Uint8Array(2);
  const detached = new Uint8Array(2);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  const refilling = new ReadableStream({
    async pull(controller) {
      await null;
      if (scratch[0] === 3) return controller.close();
      controller.enqueue(scratch.fill(scratch[0] + 1));
    },
  }, { highWaterMark: 0 });
  const first = (await other.body!.getReader().read()).value!;
  first[0] = 0;
  const moved = post(stream(bytes("m")), { duplex: "half" });
  const mover = new Request(moved);
  const kept = post("k");
  const refusedGet = await fails(() => new Request(kept, { method: "GET" }));
  const blob = new Blob(["xy"]);
  (await new Response(blob).bytes())[0] = 0;
  const twin = new Response(bytes("xy"));
  const copy = twin.clone();
  (await twin.bytes())[0] = 0;
  const byob = await new Response("abc").body!.getReader({ mode: "byob" }).read(new Uint8Array(2));
  const gone = new Error("gone");
  const broken = () => new Response(new ReadableStream({ pull() { throw gone; } }));
  const piped = new Response("up").body!.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({ transform: (chunk, to) => to.enqueue(chunk.toUpperCase()) })).pipeThrough(new TextEncoderStream());
  return ok({
    lockedRejects: equal(await Promise.all((["text", "json", "blob", "bytes", "arrayBuffer", "formData"] as const).map((read) => fails(() => locked[read]()))), Array(6).fill("TypeError")) && !locked.bodyUsed,
    lockedClones: (await fails(() => locked.clone())) === "TypeError" && (await fails(() => new Response(locked.body))) === "TypeError",
    readerAfterText: read.bodyUsed && read.body!.locked && (await fails(() => read.body!.getReader())) === "TypeError",
    cancelledIsUsed: cancelled.bodyUsed && (await fails(() => cancelled.text())) === "TypeError",
    sameStream: made.body === given,
    joins: usedAtOnce && (await reading) === "a\u00e9",
    clones: (await one.text()) === "abc" && one.body !== other.body,
    needsDuplex: (await fails(() => post(stream()))) === "TypeError" && (await fails(() => post("", { duplex: "full" }))) === "TypeError",
    moves: moved.bodyUsed && !mover.bodyUsed && (await mover.text()) === "m",
    failureKeeps: refusedGet === "TypeError" && !kept.bodyUsed && (await new Request(kept).text()) === "k" && kept.bodyUsed,
    badChunks: equal(await Promise.all(["a", 1, null, new ArrayBuffer(1)].map((chunk) => fails(() => new Response(stream(chunk)).text()))), Array(4).fill("TypeError")),
    transferredChunk: (await new Response(stream(detached, bytes("a"))).text()) === "a",
    refilled: equal([...(await new Response(refilling).bytes())], [1, 1, 2, 2, 3, 3]),
    errors: (await broken().text().catch((error) => error)) === gone && (await broken().formData().catch((error) => error)) === gone,
    freshBytes: (await new Response(stream(first)).bytes()) !== first,
    keepalive: (await fails(() => post(stream(), { duplex: "half", keepalive: true }))) === "TypeError",
    sharesNothing: (await blob.text()) === "xy" && (await copy.text()) === "xy",
    byob: equal([...byob.value!], [97, 98]),
    pipes: (await new Response(piped).text()) === "UP",
    blobStreams: (await new Response(blob.stream()).text()) === "xy",
    emptyStreams: (await new Response("").body!.getReader().read()).done && new Response().body === null,
    mark: (await new Response("\ufeffa").text()) === "a" && (await new Response(bytes("\ufeff1")).json()) === 1 && (await new Response("\ufeff").bytes()).length === 3,
    blobType: (await new Response("", { headers: { "content-type": 'Text/HTML; Charset="x y"' } }).blob()).type === 'text/html;charset="x y"' && (await new Response("", { headers: { "content-type": "x" } }).blob()).type === "",
    noObject: equal(await Promise.all([{}, Promise.resolve(), new Map(), (async function* () {})()].map((body) => fails(() => new Response(body as any)))), Array(4).fill("TypeError")),
    textOfObject: (await new Response(new String("s") as any).text()) === "s" && (await new Response(new URL("https://a.example/") as any).text()) === "https://a.example/",
  });
}

export async function interfaces() {
  const request = new Request("https://a.example/b#c", { mode: "same-origin", cache: "no-store", credentials: "omit", keepalive: true, integrity: "i", referrer: "", referrerPolicy: "origin" });
  const stop = new AbortController();
  const stopped = new Request(request, { signal: stop.signal });
  const cloned = stopped.clone();
  stop.abort("why");
  const headers = new Headers({ b: "1", a: "2" });
  const seen: string[] = [];
  for (const [name] of headers) {
    seen.push(name);
    if (name === "a") headers.append("c", "3");
  }
  const cookies = new Headers([["set-cookie", "a=1"], ["Set-Cookie", "b=2"], ["x", " \tv\r\n"]]);
  const form = new FormData();
  const file = new File(["f"], "n", { lastModified: 5 });
  form.append("x", undefined as any);
  form.append("f", file);
  form.append("g", file, "m");
  const refused = [
    () => new Request("https://u:p@a.example/"), () => new Request(""), () => new (Request as any)(), () => new Request("https://a.example/", { method: "Connect" }),
    () => new Request("https://a.example/", { method: "a b" }), () => new Request("https://a.example/", { mode: "navigate" }), () => new Request("https://a.example/", { cache: "only-if-cached" }),
    () => new Request("https://a.example/", { redirect: "x" as any }), () => new Request("https://a.example/", 1 as any), () => Response.redirect("http://:"),
    () => Response.error().headers.append("a", "b"), () => Response.redirect("/").headers.delete("location"), () => new Response("", { statusText: "a\nb" }),
    () => new Headers(1 as any), () => new Headers([["a"]] as any), () => new Headers({ "\u0100": "" }), () => (headers as any).append("a"), () => headers.has("a b"),
    () => (form as any).append("a"), () => form.append("a", "b" as any, "c"), () => new (FormData as any)({}), () => new Blob("a" as any), () => new Blob([], 1 as any),
    () => new Blob([], { endings: "x" as any }), () => new (File as any)([]), () => Object.getOwnPropertyDescriptor(Request.prototype, "url")!.get!.call({}), () => (Response as any)(),
  ];
  const names = await Promise.all(refused.map(fails));
  return ok({
    request: equal([request.mode, request.cache, request.credentials, request.keepalive, request.integrity, request.referrer, request.referrerPolicy, request.url, request.destination, request.duplex],
      ["same-origin", "no-store", "omit", true, "i", "", "origin", "https://a.example/b#c", "", "half"]),
    signals: stopped.signal !== stop.signal && stopped.signal.reason === "why" && cloned.signal.reason === "why" && !new Request(stopped, { signal: null }).signal.aborted,
    live: equal(seen, ["a", "b", "c"]),
    iterator: String(headers.keys()) === "[object Headers Iterator]" && String(form.values()) === "[object FormData Iterator]" && headers[Symbol.iterator] === headers.entries,
    cookies: equal([...cookies], [["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x", "v"]]) && equal(cookies.getSetCookie(), ["a=1", "b=2"]),
    form: form.get("x") === "undefined" && form.get("f") === file && (form.get("g") as File).name === "m" && (form.get("g") as File).lastModified === 5,
    blob: (await new Blob(["a\r\nb\r"], { endings: "native" }).text()) === "a\nb\n" && new Blob([], { type: "A/B" }).type === "a/b" && new Blob([], { type: "\u00e9" }).type === "",
    slice: (await new Blob(["abcde"]).slice(-3, -1, "T").text()) === "cd" && new Blob(["abc"]).slice(2, 1).size === 0 && new Blob(["a"]).slice(0, 1, "T/U").type === "t/u",
    status: new Response("", { status: 201.9 }).status === 201 && new Response(null, { status: 304 }).body === null,
    members: Object.keys(Object.getOwnPropertyDescriptors(Response.prototype)).includes("bodyUsed") && Object.getPrototypeOf(Request) === Function.prototype && Request.prototype.text !== Response.prototype.text,
    lengths: equal([Headers.length, Request.length, Response.length, File.length, fetch.length, Response.json.length], [0, 1, 0, 2, 1, 1]),
    refused: names.every((name) => name === "TypeError"),
  });
}

export const streamed = () => new Response(new ReadableStream({
  async pull(controller) {
    await new Promise((done) => setTimeout(done, 2));
    controller.enqueue(bytes("late"));
    controller.close();
  },
}), { status: 201, headers: { "content-type": "text/plain" } });
export const brokenStream = () => new Response(new ReadableStream({ pull() { throw new Error("broken"); } }), { headers: { "x-a": "1" } });
export const endlessStream = () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }));
export const textStream = () => new Response(stream("text"));
export const lockedStream = () => {
  const response = new Response(stream());
  response.body!.getReader();
  return response;
};
export const passed = () => {
  const response = new Response("a", { headers: { "x-a": "1" } });
  return new Response(response.body, response);
};
export const waited = fetchHandler((request, env, context) => {
  const { readable, writable } = new TransformStream();
  context.waitUntil(new Response("written").body!.pipeTo(writable));
  return new Response(readable);
});
export const echoed = fetchHandler((request) => new Response(request.body!.pipeThrough(new TransformStream())));
`

func TestBodiesAreStreams(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/body.ts": bodyFile})
	claimsHold(t, toolchaintest.Ask(t, m, "bodies", abi.Request{}), 23)
	claimsHold(t, toolchaintest.Ask(t, m, "interfaces", abi.Request{}), 12)
	for _, row := range []struct {
		handler string
		status  int
		body    string
		more    string // in the headers or in the log
	}{
		{"streamed", 201, "late", "content-type: text/plain\n"},
		{"brokenStream", 500, "", "Error: broken\n    at "},
		{"endlessStream", 500, "", "the stream of the answer never ends"},
		{"textStream", 500, "", "a body's stream must give Uint8Arrays"},
		{"lockedStream", 500, "", "the body's stream is locked"},
		{"passed", 200, "a", "x-a: 1\n"},
		{"waited", 200, "written", ""},
		{"echoed", 200, "sent", ""},
	} {
		got := toolchaintest.Ask(t, m, row.handler, abi.Request{Method: []byte("POST"), Path: []byte("/"), Body: []byte("sent")})
		if got.Status != row.status || got.Body != row.body || !strings.Contains(got.Headers+got.Log, row.more) {
			t.Errorf("%s answers %d %q, want %d %q with %q\n%s%s", row.handler, got.Status, got.Body, row.status, row.body, row.more, got.Headers, got.Log)
		}
		if row.status == 500 && got.Headers != "" {
			t.Errorf("%s sends %s", row.handler, got.Headers)
		}
	}
}

const manyParts = `import { ok, type RouteRequest } from "@runner/sdk";
const bytes = { headers: { "content-type": "multipart/form-data; boundary=b" } };
export const returns = async (req: RouteRequest) => ok([...(await new Response("\r".repeat(req.body<number>()) + "\r\n--b--", bytes).formData())].length);
export const lines = async (req: RouteRequest) => ok([...(await new Response("\r\n".repeat(req.body<number>() / 2) + "\r\n--b--", bytes).formData())].length);
export const text = async (req: RouteRequest) => ok((await new Response(new Uint8Array(req.body<number>()).fill(0xe2)).text()).length);
export const escapes = (req: RouteRequest) => ok(new URLSearchParams("a=%ff" + "x".repeat(req.body<number>()) + "%").get("a")!.length);
export function names(req: RouteRequest) {
  const headers = new Headers(Array.from({ length: req.body<number>() / 16 }, (_, i) => ["n" + i, "v"] as [string, string]));
  return ok([...headers].length);
}
`

// A client chooses the bytes of a body, and another server the headers of its answer.
func TestReadingBodiesAndHeadersIsLinear(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/many.ts": manyParts})
	for _, row := range []struct {
		handler string
		most    float64 // units of fuel for a byte
	}{{"returns", 1500}, {"lines", 3000}, {"text", 1000}, {"escapes", 1000}, {"names", 10_000}} {
		fuel := func(n int) float64 {
			request := abi.Request{Body: fmt.Append(nil, n)}
			call := toolchaintest.NewCall(t.Context(), &request, slog.DiscardHandler)
			usage, err := m.Measure(call, row.handler)
			if err != nil || call.Response.Status != 200 {
				t.Fatalf("%s of %d answers %d %v", row.handler, n, call.Response.Status, err)
			}
			return float64(usage.Fuel)
		}
		if each := (fuel(32_000) - fuel(16_000)) / 16_000; each > row.most {
			t.Errorf("%s: a byte takes %.0f units of fuel, want at most %.0f", row.handler, each, row.most)
		}
	}
}
