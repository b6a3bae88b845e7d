// Uses the generated client with a running server. It prints only errors.
import { createClient, ProblemError, type schema } from "./client.ts";

declare const process: { env: Record<string, string>; exitCode: number };

const baseUrl = process.env["URL"]!;
const apiKey = process.env["KEY"]!;

let place = "";
function wrong(text: string) {
  console.log(`${place}: ${text}`);
  process.exitCode = 1;
}
function same(got: unknown, want: unknown) {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    wrong(`${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}
async function refused(work: Promise<unknown>): Promise<ProblemError> {
  try {
    wrong(`no refusal but ${JSON.stringify(await work)}`);
  } catch (error) {
    if (error instanceof ProblemError) {
      return error;
    }
    throw error;
  }
  return new ProblemError(new Response(), null);
}
async function thrown(work: () => Promise<unknown>): Promise<unknown> {
  try {
    wrong(`it did ${JSON.stringify(await work())}`);
  } catch (error) {
    return error;
  }
  return undefined;
}

const client = createClient({ baseUrl: baseUrl + "/", apiKey });

place = "rows by routes";
let location: string | null = null;
const made = await client.createNote<schema.Note>({ body: { text: "tea & cake" }, onResponse: (r) => (location = r.headers.get("location")) });
same([made.text, made.mood, location], ["tea & cake", "good", "/v1/notes/" + made.id]);
await client.createNote({ body: { text: "bread", mood: "bad" } });
same((await client.listNotes<schema.Note[]>()).map((n) => n.text), ["bread", "tea & cake"]);
same((await client.listNotes<schema.Note[]>({ query: { text: "tea & cake" } })).length, 1);
same(await client.inMood({ query: { moods: ["bad"], limit: 2 } }), [{ text: "bread" }]);
same((await refused(client.inMood({ query: { moods: [] } }))).errors, [{ field: "moods", message: "is required" }]);
same((await client.listNotes<schema.Note[]>({ query: { text: ["bread", "tea & cake", "salt"], none: undefined } })).length, 2);
same((await client.getNote<schema.Note>({ params: { id: made.id } })).text, "tea & cake");

place = "functions";
same(await client.call.sum({ parts: [{ name: "a" }, { name: "b", amount: 4, price: "1.50" }] }), { total: 5, parts: [{ name: "a", amount: 1 }, { name: "b", amount: 4, price: "1.50" }] });
same((await client.call.note({ id: made.id }))?.text, "tea & cake");
same(await client.call.note({ id: "01jz8k3v6m9q2r5t8w1x4y7z0a" }), null);
same((await client.call.notes({ mood: "bad" })).map((n) => n.text), ["bread"]);
same((await client.call.notes()).length, 2);
same(await client.call.count(), 2);
same(await client.call.free({ a: [1] }), undefined);

place = "values that JSON would change";
for (const [body, name] of [[{ parts: [{ name: "a", amount: NaN }] }, "amount"], [{ parts: [{ name: "a", price: Infinity }] }, "price"], [{ at: new Date(NaN) }, "at"]] as const) {
  const error = await thrown(() => client.call.free({ a: body }));
  same([error instanceof TypeError, String(error).includes(`: ${name} cannot be `)], [true, true]);
}
same(await client.call.free({ a: [null, undefined, new Date(0)] }), undefined);

place = "bodies and answers of other kinds";
same(await client.removeNote({ params: { id: made.id } }), undefined);
same(await client.plain(), "a line");
same(await client.keep({ params: { path: "a b/c%/ü" }, body: new Blob(["12345"], { type: "image/png" }) }), { path: "a b/c%/ü", bytes: 5, type: "image/png" });
same(await client.keep({ params: { path: "a" }, body: new TextEncoder().encode("123") }), { path: "a", bytes: 3 });
same(await client.keep({ params: { path: "a" }, body: new Blob(["1234"]).stream() }), { path: "a", bytes: 4 });
same(await client.keep({ params: { path: "a" }, body: "text" }), { path: "a", bytes: 6, type: "application/json" });
same(await client.keep({ params: { path: "a" } }), { path: "a", bytes: 0 });
same(await client.echoPostV1EchoAB({ params: { a: "?&#%", b: 7 }, query: { q: ["+ &", "ü"], n: 0, off: false }, headers: { "X-Mine": "yes" }, body: [null] }), {
  params: { a: "?&#%", b: "7" }, query: { q: ["+ &", "ü"], n: ["0"], off: ["false"] }, mine: "yes", method: "POST", body: [null],
});
same(await client.echoGetV1EchoAB({ params: { a: "...", b: "~" } }), { params: { a: "...", b: "~" }, query: {}, method: "GET", body: null });

place = "parameters that are none";
for (const id of ["", ".", ".."]) {
  same((await thrown(() => client.getNote({ params: { id } }))) instanceof TypeError, true);
}
for (const path of ["", "a/../b", "a//b", "/a", "a/", "."]) {
  same((await thrown(() => client.keep({ params: { path } }))) instanceof TypeError, true);
}
same((await refused(client.getNote({ params: { id: "a/b" } }))).code, "bad_path");
const none = {} as { id: string };
same(String(await thrown(() => client.getNote({ params: none }))), "TypeError: /v1/notes/:id: the parameter id is missing");
same(String(await thrown(() => client.odd({ params: { __proto__: "a", toString: "b" } }))), "TypeError: /v1/odd/:__proto__/:toString: the parameter __proto__ is missing");
same(await client.odd({ params: { ["__proto__"]: "a", toString: "b" } }), ["a", "b"]);

place = "refusals";
const input = await refused(client.createNote({ body: { text: "", mood: "ugly" as "bad" } }));
same([input.status, input.code, input.errors.map((e) => e.field), input.name], [400, "invalid_input", ["text", "mood"], "ProblemError"]);
same(input.requestId === input.response.headers.get("x-request-id") && (input.requestId ?? "").length > 10 && input.message.includes("400 invalid_input"), true);
const absent = await refused(client.getNote({ params: { id: made.id } }));
same([absent.status, absent.code, absent.errors], [404, "not_found", []]);
same((await refused(createClient({ baseUrl }).listNotes())).code, "missing_credentials");
same((await refused(createClient({ baseUrl, apiKey: process.env["OTHER"]! }).call.count())).code, "insufficient_scope");
const page = createClient({ baseUrl, fetch: async () => new Response("<h1>Bad gateway</h1>", { status: 502, headers: { "content-type": "text/html" } }) });
const other = await refused(page.plain());
same([other.status, other.code, other.body, other.requestId], [502, "error", "<h1>Bad gateway</h1>", undefined]);
const torn = createClient({ baseUrl, fetch: async () => new Response("{", { status: 500, headers: { "content-type": "application/problem+json" } }) });
same((await refused(torn.plain())).body, "{");

place = "who calls";
same(await client.open(), { authorization: "Bearer " + apiKey, cookie: null });
same(await createClient({ baseUrl }).open(), { authorization: null, cookie: null });
let asked = 0;
const renewed = createClient({ baseUrl, bearer: async () => `${++asked}` });
same([await renewed.open(), await renewed.open()], [{ authorization: "Bearer 1", cookie: null }, { authorization: "Bearer 2", cookie: null }]);
const user = createClient({ baseUrl, cookies: true, headers: { cookie: process.env["COOKIE"]! } });
same([await user.me(), await user.call.mine()], ["ann", "ann"]);
same((await refused(user.listNotes())).code, "missing_credentials");
same((await refused(client.call.mine())).code, "invalid_token");
let credentials: unknown[] = [];
const watch: typeof fetch = (url, init) => (credentials.push(init?.credentials), fetch(url, init));
await createClient({ baseUrl, fetch: watch, cookies: true }).open();
await createClient({ baseUrl, fetch: watch }).open();
same(credentials, ["include", "omit"]);
for (const two of [{ apiKey: "a", bearer: "b" }, { apiKey: "a", cookies: true }]) {
  same((await thrown(async () => createClient(two))) instanceof TypeError, true);
}

place = "watching";
const counts: number[] = [];
const errors: unknown[] = [];
for await (const { mood, count } of client.watch.countMood({ params: { mood: "bad" } })) {
  counts.push(count);
  if (counts.length > 2) {
    break;
  }
  await client.createNote({ body: { text: "watched", mood } });
}
same(counts, [1, 2, 3]);
const heard = new Promise<unknown>((resolve) => {
  const stop = client.watch.countMood({ params: { mood: "bad" }, onError: (e, ended) => errors.push(e, ended) }, (value) => (stop(), resolve(value)));
});
same([await heard, errors], [{ mood: "bad", count: 3 }, []]);
const unknown = createClient({ baseUrl, apiKey: process.env["OTHER"]! }).watch.countMood({ params: { mood: "bad" } });
const forbidden = await refused(unknown[Symbol.asyncIterator]().next());
same([forbidden.status, forbidden.code], [403, "insufficient_scope"]);

place = "sending again";
let sent = 0;
function busy(times: number, answer: () => Response): typeof fetch {
  sent = 0;
  return (url, init) => (++sent <= times ? Promise.resolve(answer()) : fetch(url, init));
}
const full = (seconds: string) => () => new Response("", { status: 503, headers: { "retry-after": seconds } });
same((await refused(createClient({ baseUrl, apiKey, fetch: busy(1, full("0")) }).call.count())).retryAfter, 0);
same(sent, 1);
same([await createClient({ baseUrl, apiKey, retries: 2, fetch: busy(2, full("0")) }).call.count(), sent], [3, 3]);
same([(await refused(createClient({ baseUrl, apiKey, retries: 2, fetch: busy(9, full("0")) }).call.count())).status, sent], [503, 3]);
same([(await refused(createClient({ baseUrl, apiKey, retries: 2, fetch: busy(9, full("31")) }).call.count())).status, sent], [503, 1]);
same([(await refused(createClient({ baseUrl, apiKey, retries: 2, fetch: busy(9, full(new Date(Date.now() + 3600e3).toUTCString())) }).call.count())).status, sent], [503, 1]);
same([await createClient({ baseUrl, apiKey, retries: 2, fetch: busy(1, full("Thu, 01 Jan 1970 00:00:00 GMT")) }).call.count(), sent], [3, 2]);
same([(await refused(createClient({ baseUrl, apiKey, retries: 2, fetch: busy(9, () => new Response("", { status: 503 })) }).call.count())).status, sent], [503, 1]);
same([(await refused(createClient({ baseUrl, apiKey, retries: 2, fetch: busy(9, () => new Response("", { status: 500, headers: { "retry-after": "0" } })) }).call.count())).status, sent], [500, 1]);
same([(await refused(createClient({ baseUrl, apiKey, retries: 2, fetch: busy(9, full("0")) }).keep({ params: { path: "a" }, body: new Blob(["x"]).stream() }))).status, sent], [503, 1]);
const patient = createClient({ baseUrl, apiKey, retries: 3 });
same(await Promise.all([patient.limited(), patient.limited()]), [{}, {}]);
const hammered = async () => { // until two meet in one second
  for (let n = 0; n < 1000; n++) {
    await client.limited();
  }
};
const limited = await refused(hammered());
same([limited.status, limited.code, (limited.retryAfter ?? 0) >= 1], [429, "rate_limited", true]);

place = "giving up";
same((await thrown(() => client.call.count({}, { signal: AbortSignal.abort(new Error("enough")) })) as Error).message, "enough");
const giveUp = new AbortController();
const waiting = createClient({ baseUrl, apiKey, retries: 1, fetch: busy(9, full("20")) }).call.count({}, { signal: giveUp.signal, onResponse: () => setTimeout(() => giveUp.abort(new Error("no more")), 10) });
same((await thrown(() => waiting) as Error).message, "no more");
