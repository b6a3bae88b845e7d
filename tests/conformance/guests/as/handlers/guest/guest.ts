// The AssemblyScript SDK's guest of the conformance suite. tests/conformance/README.md
// describes its handlers.
import {
  aggregate, and, ApiKeyFilter, ApiKeyOptions, badRequest, call, Condition, created, createFile, digest, error, Event, events, fetch, fetchAll, FetchResponse,
  field, fields, Fields, forbidden, get, getContext, hashPassword, hmac, insert, JobOptions, JSON, nil, noContent, not, notFound, ok, Operation, Outcome,
  or, PasswordCheck, query, redirect, remove, Response, RouteRequest, select, sendFile, SendOptions, SessionFilter, SessionOptions, StoredFile, stream, timingSafeEqual, tryCall, unauthorized, update,
  Values, verifyPassword,
} from "@runner/assemblyscript";

function orNull(values: Values, name: string): string | null {
  return values.has(name) ? values[name] : null;
}

function given(text: string): string | null {
  return text.length > 0 ? text : null;
}

export function echo(req: RouteRequest): Response {
  return ok(
    fields()
      .set("method", req.method).set("path", req.path).set("raw", req.rawQuery).set("name", req.params["name"])
      .set("q", orNull(req.query, "q")).set("all", req.queryAll["q"])
      .set("one", orNull(req.headers, "x-one")).set("missing", orNull(req.headers, "x-missing"))
      .set("bytes", req.rawBody.length),
  );
}

@json
class Thing {
  item: string = "";
  qty: i64 = 1;
  ratio: JSON.Box<f64> | null = null;
}

export function body(req: RouteRequest): Response {
  const thing = req.body<Thing>();
  if (thing.item == "") return badRequest("missing field: item");
  return created(thing, "/things/1");
}

export function raw(req: RouteRequest): Response {
  return ok(req.rawBody).withHeader("content-type", "application/octet-stream");
}

export function answers(req: RouteRequest): Response {
  const what = req.params["what"];
  if (what == "ok") return ok(fields().set("a", 1));
  if (what == "null") return ok();
  if (what == "text") return ok('é\n"<');
  if (what == "created") return created(fields().set("a", 1));
  if (what == "nowhere") return created(fields().set("a", 1), "");
  if (what == "location") return created(fields().set("a", 1), "/a/1");
  if (what == "noContent") return noContent();
  if (what == "redirect") return redirect("/elsewhere");
  if (what == "moved") return redirect("https://example.com/x", 308);
  if (what == "badRequest") return badRequest("no: " + what);
  if (what == "unauthorized") return unauthorized("no: " + what);
  if (what == "problem") return error(402, "no: " + what).withCode("no_credit").withMember("balance", 3);
  if (what == "reserved") return error(402, "no: " + what).withCode("no_credit").withMember("title", "x");
  if (what == "forbidden") return forbidden("no: " + what);
  if (what == "notFound") return notFound("no: " + what);
  if (what == "error") return error(422, "no: error");
  if (what == "empty") return notFound("");
  if (what == "headers") return ok(1).withHeader("x-a", "1").withHeader("x-a", "2");
  if (what == "denied") return ok(1).withHeader("date", "x");
  return notFound("unknown");
}

export function context(): Response {
  const context = getContext();
  const auth = context.auth;
  return ok(
    fields()
      .set("requestId", context.requestId).set("route", context.route).set("kind", auth.kind)
      .set("userId", given(auth.userId)).set("tenant", given(auth.tenant)).set("roles", auth.roles)
      .set("keyId", given(auth.keyId)).set("scope", given(auth.scope)).set("capability", given(auth.capability))
      .set("metadata", auth.metadata<JSON.Obj | null>())
      .set("claims", auth.claims<JSON.Obj | null>())
      .set("deadline", context.deadline.getUTCFullYear() > 2020),
  );
}

export function logs(): Response {
  console.debug("one");
  console.info("two ü");
  console.warn("three");
  console.error("four");
  return noContent();
}

let n = 0;
export function counter(): Response {
  n++;
  return ok(fields().set("n", n));
}

export function fail(): Response {
  throw new Error("boom");
}

export function panic(): Response {
  assert(n < 0, "boom");
  return noContent();
}

export function silent(): Response {
  throw new Error("a function has to give an answer");
}

@json
class Order {
  id: string = "";
  item: string = "";
  qty: i32 = 0;
  status: string = "";
  code: string | null = null;
}

@json
class NewOrder {
  item: string = "";
  @omitnull()
  qty: JSON.Box<i32> | null = null;
  @omitnull()
  code: string | null = null;

  static of(item: string, qty: i32 = 0, code: string | null = null): NewOrder {
    const order = new NewOrder();
    order.item = item;
    order.qty = qty == 0 ? null : new JSON.Box(qty);
    order.code = code;
    return order;
  }
}

function items(rows: Order[]): string[] {
  return rows.map<string>((row) => row.item);
}

export function seed(): Response {
  const rows = insert("Order", [NewOrder.of("a", 1, "first"), NewOrder.of("b", 2), NewOrder.of("c", 3), NewOrder.of("d", 4)]).rows<Order>();
  return ok(items(rows));
}

export function createOrder(req: RouteRequest): Response {
  const row = insert("Order", req.body<NewOrder>()).row<Order>();
  return created(row, "/orders/" + row.id);
}

export function listOrders(req: RouteRequest): Response {
  let orders = query("Order").select(["id", "item", "qty"]).where("status", "=", "open").orderBy("qty", "desc").limit(2);
  if (req.query.has("over")) orders = orders.where("qty", ">", parseInt(req.query["over"]));
  return ok(orders);
}

export function getOrder(req: RouteRequest): Response {
  return ok(get("Order", req.params["id"], ["id", "item"]));
}

export function nameOrder(req: RouteRequest): Response {
  return ok(fields().set("item", get("Order", req.params["id"]).row<Order>().item));
}

export function updateOrder(req: RouteRequest): Response {
  const rows = update("Order", fields().set("status", "paid")).where("id", "=", req.params["id"]).rows<Order>();
  return ok(fields().set("count", rows.length).set("items", items(rows)));
}

export function deleteOrder(req: RouteRequest): Response {
  const count = remove("Order").where("id", "=", req.params["id"]).count();
  return count == 0 ? notFound("no such order") : noContent();
}

export function firstOrder(req: RouteRequest): Response {
  return ok(query("Order").where("item", "=", req.params["item"]).firstOrFail<Order>());
}

export function pages(): Response {
  const all: string[][] = [];
  let cursor = "";
  do {
    const page = query("Order").select(["item"]).orderBy("item").limit(3).after(cursor).page();
    all.push(items(page.rows<Order>()));
    cursor = page.nextCursor;
  } while (cursor != "");
  return ok(all);
}

export function conditions(): Response {
  const rows = select(["item"]).from("Order").where("item", "in", ["a", "b", "c"])
    .match([or([field("item", "=", "a"), and([field("qty", ">=", 2), not(field("qty", "=", 3))])])])
    .all<Order>();
  return ok(items(rows));
}

export function missing(req: RouteRequest): Response {
  const what = req.params["what"];
  const nine = update("Order", fields().set("qty", 9));
  if (what == "where") nine.where("code", "=", orNull(req.query, "token")).count();
  if (what == "or") remove("Order").match([or([field("item", "=", "a"), not(field("code", "!=", orNull(req.query, "token")))])]).count();
  if (what == "nan") query("Order").where("qty", ">=", NaN).count();
  if (what == "insert") insert("Order", fields().set("item", "x").set("qty", NaN)).run();
  if (what == "enqueue") getContext().client.jobs.enqueue("mail", fields().set("to", [1, NaN]));
  if (what == "limit") query("Order").limit(0).all<Order>();
  return ok(fields().set("count", nine.where("code", "=", nil).count()));
}

export function countOrders(req: RouteRequest): Response {
  let orders = query("Order");
  if (req.query.has("q")) orders = orders.where("item", "startsWith", req.query["q"]);
  return ok(fields().set("count", orders.count()));
}

@json
class NewLine {
  order: string = "";
  text: string = "";

  static of(order: string, text: string): NewLine {
    const line = new NewLine();
    line.order = order;
    line.text = text;
    return line;
  }
}

@json
class OnlyItem {
  item: string = "";
}

@json
class OnlyQty {
  qty: i32 = 0;
}

@json
class LineOfOrder {
  text: string = "";
  order: OnlyItem = new OnlyItem();
}

@json
class LineOfQty {
  text: string = "";
  order: OnlyQty = new OnlyQty();
}

@json
class OrderWithLines {
  item: string = "";
  lines: LineOfQty[] = [];
}

export function related(): Response {
  const order = new NewOrder();
  order.item = "r";
  order.qty = new JSON.Box(5);
  const id = insert("Order", order).row<Order>().id;
  insert("Line", [NewLine.of(id, "x"), NewLine.of(id, "Y")]).run();
  const lines = query("Line").select(["text"]).orderBy("text").include("order", select(["item"])).all<LineOfOrder>();
  const some = select(["text"]).match([field("text", "contains", "y").ignoreCase()]).orderBy("text", "desc").limit(1)
    .include("order", select(["qty"]));
  const found = get("Order", id, ["item"]).include("lines", some).row<OrderWithLines>();
  return ok(fields().set("lines", lines).set("order", found));
}

@json
class Status {
  status: string = "";
}

@json
class Average {
  qty: f64 = 0;
}

@json
class Greatest {
  item: string = "";
  qty: i32 = 0;
}

@json
class Totals {
  group: Status = new Status();
  count: i32 = 0;
  sum: OnlyQty = new OnlyQty();
  avg: Average = new Average();
  min: OnlyItem = new OnlyItem();
  max: Greatest = new Greatest();
}

@json
class Day {
  at: string = "";
}

@json
class Visits {
  group: Day = new Day();
  count: i32 = 0;
}

function counts(outcome: Outcome): Fields {
  return fields().set("count", outcome.count).set("more", outcome.more);
}

export function limited(): Response {
  const changed = counts(update("Order", fields().set("qty", 9)).where("qty", ">=", 1).limit(2).run());
  const removed = counts(remove("Order").where("qty", "=", 9).limit(5).run());
  const counted = counts(query("Order").countAtMost(1));
  const first = query("Order").where("item", "=", "none").first<Order>();
  const visits: Fields[] = [];
  const times = ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"];
  for (let i = 0; i < times.length; i++) visits.push(fields().set("at", times[i]));
  insert("Visit", visits).run();
  const days = aggregate("Visit").groupByTime("at", "day", "Europe/Berlin").count().all<Visits>();
  const months = aggregate("Visit").groupByTime("at", "month").count().all<Visits>();
  return ok(fields().set("changed", changed).set("removed", removed).set("counted", counted).set("first", first)
    .set("days", days).set("months", months));
}

export function totals(): Response {
  const groups = aggregate("Order").where("qty", ">=", 1).groupBy(["status"])
    .sum(["qty"]).avg(["qty"]).min(["item"]).max(["item", "qty"]).count().all<Totals>();
  return ok(fields().set("groups", groups));
}

function code(operation: Operation): string {
  const failed = operation.attempt().error;
  return failed === null ? "none" : failed.code;
}

export function everything(): Response {
  const set = fields().set("qty", 9);
  const codes = [code(update("Order", set)), code(remove("Order"))];
  return ok(fields().set("codes", codes).set("updated", update("Order", set).every().count()).set("removed", remove("Order").every().count()));
}

export function uncaught(req: RouteRequest): Response {
  const what = req.params["what"];
  if (what == "not_found") return ok(get("Order", "none").row<Order>());
  if (what == "denied") return ok(insert("Order", NewOrder.of("x")).row<Order>());
  if (what == "conflict") return ok(insert("Order", NewOrder.of("x", 0, "first")).row<Order>());
  if (what == "invalid") return ok(query("Nothing").all<Order>());
  if (what == "secret") return ok(call("secret", fields().set("name", "NOPE").toString()).member("value"));
  if (what == "fetch") return ok(fetch("https://elsewhere.example/").send().text());
  return noContent();
}

export function caught(): Response {
  const codes = [code(get("Order", "none")), code(insert("Order", NewOrder.of("x", 0, "first")))];
  const secret = tryCall("secret", fields().set("name", "NOPE").toString()).error;
  const signed = tryCall("webhooks.verify", fields().set("scheme", "github").set("secret", "HOOK").toString()).error;
  const taken = tryCall("insert", '{"into":"Order","values":{"code":"first","item":"x"}}').error!;
  return ok(codes.concat([secret === null ? "none" : secret.code, signed === null ? "none" : signed.code, taken.op + " " + taken.entity + " " + taken.field]));
}

export function kept(): Response {
  getContext().keepWrites();
  insert("Order", NewOrder.of("kept")).run();
  return error(422, "changed my mind");
}

export function keys(): Response {
  const apiKeys = getContext().client.apiKeys;
  const key = apiKeys.create(new ApiKeyOptions("readers").named("k").expiring(3600).with(fields().set("a", 1)));
  const got = apiKeys.get(key.id);
  const listed = apiKeys.list(new ApiKeyFilter("readers", 10));
  const rotated = apiKeys.rotate(key.id, 60);
  const revoked = apiKeys.revoke(key.id);
  return ok(
    fields()
      .set("name", got.name).set("token", key.token.startsWith("cnf_")).set("metadata", got.metadata<JSON.Obj>())
      .set("listed", listed.keys.length).set("rotating", rotated.status).set("revoked", revoked.status),
  );
}

export function allKeys(): Response {
  const apiKeys = getContext().client.apiKeys;
  apiKeys.create(new ApiKeyOptions("readers").named("newest"));
  const list = apiKeys.list();
  const keys = list.keys;
  const last = keys[keys.length - 1];
  return ok(
    fields()
      .set("keys", keys.length).set("owner", last.owner).set("kind", last.ownerKind).set("name", last.name)
      .set("end", list.nextCursor.length == 0),
  );
}

export function variables(): Response {
  const other = tryCall("var", fields().set("name", "NOPE").toString()).error;
  const ctx = getContext();
  const origin = ctx.var<string>("ORIGIN"), note = ctx.var<string>("NOTE"), count = ctx.var<i32>("COUNT"), price = ctx.var<string>("PRICE");
  const on = ctx.var<bool>("ON"), idle = ctx.var<i32>("IDLE"), burst = ctx.var<string>("BURST");
  return ok(
    fields().set("origin", origin).set("note", note).set("count", count + 1).set("price", price).set("on", !on)
      .set("idle", idle).set("burst", burst).set("again", note).set("other", other === null ? "none" : other.code),
  );
}

export function secret(): Response {
  return ok(fields().set("value", getContext().secret("HOOK")));
}

export function sums(req: RouteRequest): Response {
  const secret = getContext().secret("HOOK");
  const sum = digest("SHA-256", req.rawBody), signed = hmac("SHA-256", "HOOK", req.rawBody);
  return ok(
    fields()
      .set("digest", sum.hex).set("hmac", signed.hex).set("equal", timingSafeEqual(signed.hex, signed.hex))
      .set("other", timingSafeEqual(signed.hex, "x")).set("length", secret.length),
  );
}

function verdict(found: PasswordCheck): Fields {
  return fields().set("valid", found.valid).set("rehash", found.rehash);
}

export function passwords(req: RouteRequest): Response {
  const body = String.UTF8.decodeUnsafe(req.rawBody.dataStart, req.rawBody.length);
  const hash = hashPassword(body);
  const right = verifyPassword(body, hash), wrong = verifyPassword("other", hash), unknown = verifyPassword(body, null);
  const old = verifyPassword("secret", "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW");
  const malformed = tryCall("password.verify", fields().set("password", body).set("hash", "plain").toString()).error;
  return ok(
    fields()
      .set("hash", hash.startsWith("$argon2id$")).set("right", verdict(right)).set("wrong", verdict(wrong))
      .set("unknown", verdict(unknown)).set("old", verdict(old))
      .set("malformed", malformed === null ? "none" : malformed.code),
  );
}

function told(answer: FetchResponse): Fields {
  return fields().set("status", answer.status).set("bytes", answer.body.length).set("told", answer.header("x-told"));
}

export function calls(req: RouteRequest): Response {
  const service = req.headers["x-service"];
  const one = fetch(service + "/one").method("POST").header("content-type", "application/octet-stream").header("x-a", "1").body(req.rawBody);
  const two = fetch(service + "/two");
  fetchAll([one, two]);
  const elsewhere = code(fetch("https://elsewhere.example/"));
  return ok(fields().set("one", told(one.response)).set("two", told(two.response)).set("elsewhere", elsewhere));
}

export function redirects(req: RouteRequest): Response {
  const moved = req.headers["x-service"] + "/moved";
  const manual = fetch(moved).redirect("manual").send().status, follow = fetch(moved).redirect("follow").send().status;
  return ok(fields().set("manual", manual).set("follow", follow).set("error", code(fetch(moved).redirect("error"))));
}

export function signIn(req: RouteRequest): Response {
  const options = req.params["what"] == "full"
    ? new SessionOptions("ada").tenant("acme").roles(["admin"]).ttl(600)
    : new SessionOptions("bob");
  const session = getContext().client.sessions.create(options);
  return ok(fields().set("id", session.id).set("expiresAt", session.expiresAt));
}

export function signOut(req: RouteRequest): Response {
  getContext().client.sessions.revoke(req.query.has("id") ? req.query["id"] : "current");
  return noContent();
}

function whose(req: RouteRequest): SessionFilter {
  const filter = new SessionFilter();
  if (req.query.has("user")) filter.user(req.query["user"]);
  if (req.query.has("tenant")) filter.tenant(req.query["tenant"]);
  if (req.query.has("all")) filter.allTenants();
  return filter;
}

export function listSessions(req: RouteRequest): Response {
  const filter = whose(req);
  if (req.query.has("limit")) filter.limit(parseInt(req.query["limit"]) as i32);
  if (req.query.has("cursor")) filter.cursor(req.query["cursor"]);
  const page = getContext().client.sessions.list(filter);
  let first: Fields | null = null;
  if (page.sessions.length > 0) {
    const s = page.sessions[0];
    first = fields().set("userId", s.userId).set("tenant", given(s.tenant)).set("roles", s.roles).set("current", s.current)
      .set("timed", s.createdAt < s.expiresAt && s.createdAt <= s.lastSeenAt);
  }
  return ok(fields().set("count", page.sessions.length).set("first", first).set("more", page.nextCursor.length > 0));
}

export function endSessions(req: RouteRequest): Response {
  const filter = whose(req);
  if (req.query.has("except")) filter.except(req.query["except"]);
  return ok(fields().set("count", getContext().client.sessions.revokeAll(filter)));
}

export function verify(req: RouteRequest): Response {
  const delivery = getContext().client.webhooks.verify(req.params["scheme"], req.query["secret"]);
  return ok(fields().set("id", delivery.id).set("timed", delivery.timestamp > 1577836800));
}

export function enqueue(req: RouteRequest): Response {
  const jobs = getContext().client.jobs, ada = fields().set("to", "ada");
  const what = req.params["what"];
  if (what == "unknown") return ok(jobs.enqueue("mial", fields()).id);
  if (what == "missing") return ok(jobs.cancel("job_0"));
  const first = jobs.enqueue("mail", ada);
  const second = jobs.enqueue("mail", ada, new JobOptions().delay(60).key("k"));
  jobs.enqueue("mail", ada, new JobOptions().at("2026-01-31T09:30:00Z"));
  const last = jobs.enqueue("mail", ada, new JobOptions().key("k"));
  const cancelled = jobs.cancel(second.id), twice = jobs.cancel(second.id);
  return ok(fields().set("created", first.created).set("again", last.created).set("same", last.id == second.id).set("cancelled", cancelled).set("twice", twice));
}

export function job(): Response {
  const job = getContext().job;
  if (job === null) return notFound("no job");
  return ok(fields().set("attempt", job.attempt).set("scheduledFor", job.scheduledFor));
}

export function mail(): Response {
  return noContent();
}

function insertOrder(item: string): void {
  insert("Order", fields().set("item", item)).run();
}

export function bodies(req: RouteRequest): Response {
  const what = req.params["what"];
  const part = new Uint8Array(64 << 10);
  if (what == "echo") {
    const out = stream().begin();
    for (let n = req.read(part); n > 0 && out.write(part.subarray(0, n)); ) n = req.read(part);
    return out.end();
  }
  if (what == "whole") return ok(fields().set("bytes", req.rawBody.length));
  insertOrder("body");
  let bytes: i64 = 0;
  let sum: i64 = 0;
  for (let n = req.read(part); n > 0; n = req.read(part)) {
    bytes += n;
    for (let i = 0; i < n; i++) sum += part[i];
  }
  return ok(fields().set("bytes", bytes).set("sum", sum));
}

@json
class Document {
  title: string = "";
  scan: StoredFile | null = null;
}

function insertDocument(title: string, scan: StoredFile | null): Document {
  const document = new Document();
  document.title = title;
  document.scan = scan;
  return insert("Document", document).row<Document>();
}

export function files(req: RouteRequest): Response {
  const form = req.form();
  const scan = insertDocument(form.get("title"), form.file("scan")).scan!;
  const note = insertDocument("note", createFile("a note ü", "note.md", "text/markdown")).scan!;
  return ok(
    fields()
      .set("text", scan.text()).set("name", scan.name).set("type", scan.type).set("size", scan.size).set("note", note.size)
      .set("other", form.file("other") !== null),
  );
}

export function sent(req: RouteRequest): Response {
  const options = new SendOptions().status(201).disposition("attachment").name("copy.txt").cache("private");
  return sendFile(req.form().file()!, options).withHeader("x-sent", "yes");
}

export function linked(req: RouteRequest): Response {
  const scan = insertDocument("linked", req.form().file()).scan!;
  return ok(fields().set("link", scan.sign(600, "attachment", "copy.txt").startsWith("/_files/")));
}

export function streams(req: RouteRequest): Response {
  const what = req.params["what"];
  if (what == "parts" || what == "fails") insertOrder("before");
  if (what == "events") {
    const last = orNull(req.headers, "last-event-id");
    const out = events().begin();
    out.event(new Event("last " + (last === null ? "none" : last)).event("tick").id("1"));
    out.event(new Event("a\r\nb\rc\n\nd"));
    out.event(new Event().id("2").retry(1500));
    out.event(new Event().event("bye"));
    return out.end();
  }
  if (what == "refused") {
    const out = events().begin();
    out.event(new Event("x").event("a\nb"));
    return out.end();
  }
  if (what == "forever") {
    const out = stream().begin();
    const zeros = new Uint8Array(64 << 10);
    while (out.write(zeros)) {}
    return out.end();
  }
  const out = stream().withHeader("content-type", "text/plain").begin();
  out.write("one\n");
  if (what == "fails") throw new Error("boom");
  if (what == "uncaught") get("Order", "none").row<Order>();
  while (query("Order").where("item", "=", "go").count() == 0) call("sleep", '{"seconds":0.01}');
  insertOrder("after");
  out.write("two\n");
  out.write("three\n");
  return out.end();
}
