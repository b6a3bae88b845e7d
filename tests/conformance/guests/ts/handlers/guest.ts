// The TypeScript SDK's guest of the conformance suite. tests/conformance/README.md describes its handlers.
import {
  aggregate, and, badRequest, call, created, error, events, field, forbidden, get, getContext, hmac, HostError, insert, jobs, noContent, not, notFound,
  ok, or, password, query, redirect, remove, type RouteRequest, select, stream, unauthorized, update,
  vars,
} from "@runner/sdk";

const orNull = <T>(value: T | undefined): T | null => value ?? null;

export function echo(req: RouteRequest) {
  return ok({
    method: req.method, path: req.path, raw: req.rawQuery, name: req.params.name,
    q: orNull(req.query.q), all: req.queryAll.q ?? [],
    one: orNull(req.headers["x-one"]), missing: orNull(req.headers["x-missing"]),
    bytes: req.rawBody.length,
  });
}

export function body(req: RouteRequest) {
  const { item, qty = 1, ratio = null } = req.body<{ item?: string; qty?: number; ratio?: number }>();
  if (!item) return badRequest("missing field: item");
  return created({ item, qty, ratio }, "/things/1");
}

export function raw(req: RouteRequest) {
  return ok(req.rawBody).withHeader("content-type", "application/octet-stream");
}

export function answers(req: RouteRequest) {
  const { what } = req.params;
  switch (what) {
    case "ok": return ok({ a: 1 });
    case "null": return ok();
    case "text": return ok('é\n"<');
    case "created": return created({ a: 1 });
    case "nowhere": return created({ a: 1 }, "");
    case "location": return created({ a: 1 }, "/a/1");
    case "noContent": return noContent();
    case "redirect": return redirect("/elsewhere");
    case "moved": return redirect("https://example.com/x", 308);
    case "badRequest": return badRequest(`no: ${what}`);
    case "unauthorized": return unauthorized(`no: ${what}`);
    case "problem": return error(402, { code: "no_credit", detail: `no: ${what}`, balance: 3 });
    case "reserved": return error(402, { code: "no_credit", detail: `no: ${what}`, title: "x" } as object);
    case "forbidden": return forbidden(`no: ${what}`);
    case "notFound": return notFound(`no: ${what}`);
    case "error": return error(422, "no: error");
    case "empty": return notFound("");
    case "headers": return ok(1).withHeader("x-a", "1").withHeader("x-a", "2");
    case "denied": return ok(1).withHeader("date", "x");
  }
  return notFound("unknown");
}

export function context() {
  const { requestId, route, auth, deadline } = getContext();
  return ok({
    requestId, route, kind: auth.kind,
    userId: orNull(auth.userId), tenant: orNull(auth.tenant), roles: auth.roles,
    keyId: orNull(auth.keyId), scope: orNull(auth.scope), capability: orNull(auth.capability),
    metadata: orNull(auth.metadata), claims: orNull(auth.claims), deadline: deadline.getFullYear() > 2020,
  });
}

export function logs() {
  console.debug("one");
  console.info("two ü");
  console.warn("three");
  console.error("four");
  return noContent();
}

let n = 0;
export function counter() {
  n++;
  return ok({ n });
}

export function fail() {
  throw new Error("boom");
}

export async function panic() {
  await null;
  throw new TypeError("boom");
}

export function silent() {
  return new Promise(() => {});
}

interface Order { id: string; item: string; qty: number; status: string; code: string | null }
const items = (rows: Order[]) => rows.map((row) => row.item);

export async function seed() {
  const rows = await insert<Order>("Order", [{ item: "a", qty: 1, code: "first" }, { item: "b", qty: 2 }, { item: "c", qty: 3 }, { item: "d", qty: 4 }]);
  return ok(items(rows));
}

export async function createOrder(req: RouteRequest) {
  const { item, qty } = req.body<{ item?: string; qty?: number }>();
  const row = await insert<Order>("Order", { item, qty });
  return created(row, `/orders/${row.id}`);
}

export function listOrders(req: RouteRequest) {
  let orders = query<Order>("Order").select("id", "item", "qty").where("status", "=", "open").orderBy("qty", "desc").limit(2);
  if (req.query.over !== undefined) orders = orders.where("qty", ">", Number(req.query.over));
  return ok(orders);
}

export function getOrder(req: RouteRequest) {
  return ok(get<Order>("Order", req.params.id, "id", "item"));
}

export async function nameOrder(req: RouteRequest) {
  const { item } = await get<Order>("Order", req.params.id);
  return ok({ item });
}

export async function updateOrder(req: RouteRequest) {
  const rows = await update<Order>("Order", { status: "paid" }).where("id", "=", req.params.id).rows();
  return ok({ count: rows.length, items: items(rows) });
}

export async function deleteOrder(req: RouteRequest) {
  const count = await remove("Order").where("id", "=", req.params.id);
  return count === 0 ? notFound("no such order") : noContent();
}

export async function firstOrder(req: RouteRequest) {
  return ok(await query<Order>("Order").where("item", "=", req.params.item).firstOrFail());
}

export async function pages() {
  const all: string[][] = [];
  let cursor: string | null = null;
  do {
    const page = await query<Order>("Order").select("item").orderBy("item").limit(3).after(cursor).page();
    all.push(items(page.rows));
    cursor = page.nextCursor;
  } while (cursor !== null);
  return ok(all);
}

export async function conditions() {
  const rows = await select<Order>("item").from("Order").where("item", "in", ["a", "b", "c"]).match(
    or(field("item", "=", "a"), and(field("qty", ">=", 2), not(field("qty", "=", 3)))),
  );
  return ok(items(rows));
}

export async function missing(req: RouteRequest) {
  const what = req.params.what;
  const token = req.query.token as string; // as it is written where types are not checked
  const nine = update("Order", { qty: 9 });
  if (what === "where") await nine.where("code", "=", token);
  if (what === "or") await remove("Order").match(or(field("item", "=", "a"), not(field("code", "!=", token))));
  if (what === "nan") await query("Order").where("qty", ">=", NaN).count();
  if (what === "insert") await insert("Order", { item: "x", qty: NaN });
  if (what === "enqueue") await jobs.enqueue("mail", { to: [1, NaN] as unknown as string });
  if (what === "limit") await query("Order").limit(0);
  return ok({ count: await nine.where("code", "=", null) });
}

export async function countOrders(req: RouteRequest) {
  let orders = query<Order>("Order");
  if (req.query.q !== undefined) orders = orders.where("item", "startsWith", req.query.q);
  return ok({ count: await orders.count() });
}

export async function related() {
  const { id } = await insert("Order", { item: "r", qty: 5 });
  await insert("Line", ["x", "Y"].map((text) => ({ order: id, text })));
  const lines = await query("Line").select("text").orderBy("text").include("order", ["item"]);
  const order = await get("Order", id, "item").include("lines", (q) =>
    q.select("text").where("text", "contains", "y", { ignoreCase: true }).orderBy("text", "desc").limit(1).include("order", ["qty"]),
  );
  return ok({ lines, order });
}

export async function totals() {
  const groups = await aggregate("Order").where("qty", ">=", 1).groupBy("status").sum("qty").avg("qty").min("item").max("item", "qty").count();
  return ok({ groups });
}

export async function limited() {
  const changed = await update("Order", { qty: 9 }).where("qty", ">=", 1).limit(2);
  const removed = await remove("Order").where("qty", "=", 9).limit(5);
  const counted = await query("Order").count({ atMost: 1 });
  const first = await query("Order").where("item", "=", "none").first();
  await insert("Visit", ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"].map((at) => ({ at })));
  const days = await aggregate("Visit").groupByTime("at", "day", "Europe/Berlin").count();
  const months = await aggregate("Visit").groupByTime("at", "month").count();
  return ok({ changed, removed, counted, first, days, months });
}

const code = async (operation: PromiseLike<unknown>): Promise<string> => {
  try {
    await operation;
    return "none";
  } catch (error) {
    return (error as HostError).code;
  }
};

export async function everything() {
  const set = { qty: 9 };
  const codes = [await code(update("Order", set)), await code(remove("Order"))];
  return ok({ codes, updated: await update("Order", set).every(), removed: await remove("Order").every() });
}

export async function uncaught(req: RouteRequest) {
  switch (req.params.what) {
    case "not_found": return ok(await get("Order", "none"));
    case "denied": return ok(await insert("Order", { item: "x" }));
    case "conflict": return ok(await insert("Order", { item: "x", code: "first" }));
    case "invalid": return ok(await query("Nothing"));
    case "secret": return ok(await getContext().secret("NOPE"));
    case "fetch": return ok((await fetch("https://elsewhere.example/")).status);
  }
  return noContent();
}

export async function caught() {
  const codes = [await code(get("Order", "none")), await code(insert("Order", { item: "x", code: "first" })), await code(getContext().secret("NOPE")), await code(getContext().client.webhooks.verify({ scheme: "github", secret: "HOOK" }))];
  try {
    await insert("Order", { item: "x", code: "first" });
  } catch (error) {
    if (error instanceof HostError) codes.push(`${error.op} ${error.entity} ${error.field}`);
  }
  return ok(codes);
}

export async function kept() {
  getContext().keepWrites();
  await insert("Order", { item: "kept" });
  return error(422, "changed my mind");
}

export async function keys() {
  const { apiKeys } = getContext().client;
  const key = await apiKeys.create({ scope: "readers", name: "k", expiresIn: 3600, metadata: { a: 1 } });
  const got = await apiKeys.get(key.id);
  const listed = await apiKeys.list({ scope: "readers", limit: 10 });
  const rotated = await apiKeys.rotate(key.id, { gracePeriod: 60 });
  const revoked = await apiKeys.revoke(key.id);
  return ok({
    name: got.name, token: key.token.startsWith("cnf_"), metadata: got.metadata,
    listed: listed.keys.length, rotating: rotated.status, revoked: revoked.status,
  });
}

export async function allKeys() {
  const { apiKeys } = getContext().client;
  await apiKeys.create({ scope: "readers", name: "newest" });
  const all = await apiKeys.list();
  const last = all.at(-1)!;
  return ok({ keys: all.length, owner: last.owner, kind: last.ownerKind, name: last.name, end: !("nextCursor" in all) });
}

export function variables() {
  let other = "";
  try {
    vars.NOPE;
  } catch (error) {
    other = (error as HostError).code;
  }
  const { ORIGIN, NOTE, COUNT, PRICE, ON, IDLE, BURST } = vars;
  return ok({ origin: ORIGIN, note: NOTE, count: COUNT + 1, price: PRICE, on: !ON, idle: IDLE, burst: BURST, again: vars.NOTE, other });
}

export async function secret() {
  return ok({ value: await getContext().secret("HOOK") });
}

const hex = (bytes: ArrayBuffer) => [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");

export async function sums(req: RouteRequest) {
  const secret = await getContext().secret("HOOK");
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  const digest = await crypto.subtle.digest("SHA-256", req.rawBody);
  const again = await call("digest", { algorithm: "SHA-256", data: { base64: btoa(String.fromCharCode(...req.rawBody)) } });
  const signed = await crypto.subtle.sign("HMAC", key, req.rawBody);
  return ok({
    digest: again.hex, hmac: (await hmac("SHA-256", "HOOK", req.rawBody)).hex,
    equal: await crypto.subtle.verify("HMAC", key, signed, req.rawBody), other: await crypto.subtle.verify("HMAC", key, digest, req.rawBody),
    length: secret.length,
  });
}

export async function passwords(req: RouteRequest) {
  const body = req.text();
  const hash = await password.hash(body);
  const verdict = (found: false | { rehash: boolean }) => ({ valid: found !== false, rehash: found !== false && found.rehash });
  return ok({
    hash: hash.startsWith("$argon2id$"), right: verdict(await password.verify(body, hash)), wrong: verdict(await password.verify("other", hash)),
    unknown: verdict(await password.verify(body, null)),
    old: verdict(await password.verify("secret", "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW")),
    malformed: await code(password.verify(body, "plain")),
  });
}

export async function calls(req: RouteRequest) {
  const service = req.headers["x-service"];
  const told = async (answer: Awaited<ReturnType<typeof fetch>>) => ({
    status: answer.status, bytes: (await answer.arrayBuffer()).byteLength, told: answer.headers.get("x-told"),
  });
  const [one, two] = await Promise.all([
    fetch(`${service}/one`, { method: "POST", headers: { "content-type": "application/octet-stream", "x-a": "1" }, body: req.rawBody }),
    fetch(`${service}/two`),
  ]);
  return ok({ one: await told(one), two: await told(two), elsewhere: await code(fetch("https://elsewhere.example/")) });
}

export async function redirects(req: RouteRequest) {
  const moved = (redirect: "manual" | "follow" | "error") => fetch(`${req.headers["x-service"]}/moved`, { redirect });
  return ok({ manual: (await moved("manual")).status, follow: (await moved("follow")).status, error: await code(moved("error")) });
}

export async function signIn(req: RouteRequest) {
  const { sessions } = getContext().client;
  const full = { userId: "ada", tenant: "acme", roles: ["admin"], ttl: 600 };
  const { id, expiresAt } = await sessions.create(req.params.what === "full" ? full : { userId: "bob" });
  return ok({ id, expiresAt });
}

export async function signOut(req: RouteRequest) {
  const { sessions } = getContext().client;
  await (req.query.id === undefined ? sessions.revoke() : sessions.revoke(req.query.id));
  return noContent();
}

function whose(req: RouteRequest) {
  const { user, tenant, all } = req.query;
  return { ...(user !== undefined && { user }), ...(tenant !== undefined && { tenant }), ...(all !== undefined && { allTenants: true }) };
}

export async function listSessions(req: RouteRequest) {
  const { limit, cursor } = req.query;
  const { sessions } = getContext().client;
  const options = { ...whose(req), ...(cursor !== undefined && { cursor }) };
  const { sessions: found, nextCursor } = limit === undefined
    ? { sessions: await sessions.list(options), nextCursor: null }
    : await sessions.list({ ...options, limit: Number(limit) });
  const first = found.map(({ userId, tenant, roles, current, createdAt, lastSeenAt, expiresAt }) =>
    ({ userId, tenant, roles, current, timed: createdAt < expiresAt && createdAt <= lastSeenAt }))[0];
  return ok({ count: found.length, first: first ?? null, more: nextCursor !== null });
}

export async function endSessions(req: RouteRequest) {
  const { except } = req.query;
  return ok({ count: await getContext().client.sessions.revokeAll({ ...whose(req), ...(except !== undefined && { except }) }) });
}

export async function verify(req: RouteRequest) {
  const scheme = req.params.scheme as "standard" | "stripe" | "github" | "slack";
  const { id, timestamp } = await getContext().client.webhooks.verify({ scheme, secret: req.query.secret });
  return ok({ id, timed: timestamp !== null && new Date(timestamp * 1000).getFullYear() > 2020 });
}

export async function enqueue(req: RouteRequest) {
  const ada = { to: "ada" };
  if (req.params.what === "unknown") return ok(await jobs.enqueue("mial" as "mail", {} as typeof ada));
  if (req.params.what === "missing") return ok(await jobs.cancel("job_0"));
  const first = await jobs.enqueue("mail", ada);
  const second = await jobs.enqueue("mail", ada, { delay: 60, key: "k" });
  await jobs.enqueue("mail", ada, { at: new Date(Date.UTC(2026, 0, 31, 9, 30)) });
  const last = await jobs.enqueue("mail", ada, { key: "k" });
  const cancelled = await jobs.cancel(second.id), twice = await jobs.cancel(second.id);
  return ok({ created: first.created, again: last.created, same: last.id === second.id, cancelled, twice });
}

export function job() {
  const { job } = getContext();
  return job ? ok({ attempt: job.attempt, scheduledFor: job.scheduledFor }) : notFound("no job");
}

export const mail = () => noContent();

export async function bodies(req: RouteRequest) {
  const { what } = req.params;
  if (what === "echo") return new Response(req.stream());
  if (what === "whole") return ok({ bytes: req.rawBody.length });
  await insert("Order", { item: "body" });
  let bytes = 0, sum = 0;
  for await (const part of req.stream()) {
    bytes += part.length;
    for (const byte of part) sum += byte;
  }
  return ok({ bytes, sum });
}

export function streams(req: RouteRequest) {
  const { what } = req.params;
  if (what === "events") {
    return events([
      { event: "tick", id: 1, data: `last ${req.headers["last-event-id"] ?? "none"}` },
      "a\r\nb\rc\n\nd",
      { id: "2", retry: 1500 },
      { event: "bye", data: "" },
    ]);
  }
  if (what === "refused") return events([{ event: "a\nb", data: "x" }]);
  if (what === "forever") {
    return stream(function* () {
      for (const part = new Uint8Array(64 << 10); ; ) yield part;
    });
  }
  return streamParts(what);
}

async function streamParts(what: string) {
  if (what !== "uncaught") await insert("Order", { item: "before" });
  return stream(parts(what), { type: "text/plain" });
}

async function* parts(what: string) {
  yield "one\n";
  if (what === "fails") throw new Error("boom");
  if (what === "uncaught") await get("Order", "none");
  while ((await query("Order").where("item", "=", "go").count()) === 0) await new Promise((done) => setTimeout(done, 10));
  await insert("Order", { item: "after" });
  yield "two\n";
  yield "three\n";
}
