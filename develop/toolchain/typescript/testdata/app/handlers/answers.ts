import { badRequest, created, error, forbidden, getContext, HostError, html, insert, noContent, notFound, ok, query, redirect, remove, text as textAnswer, unauthorized, update, type RouteRequest } from "@runner/sdk";

export const okBody = () => ok({ a: 1 });
export const okNothing = () => ok();
export const okText = () => ok("text");
export const okBytes = () => ok(Uint8Array.of(0xff, 0, 1)).withHeader("content-type", "application/octet-stream");
export const okNoBytes = () => ok(new Uint8Array(0));
export const createdAt = () => created({ id: 7 }, "/orders/7");
export const nothing = () => noContent();
export const moved = () => redirect("/there", 308);
export const movedNowhere = () => redirect("/there", 200 as 302);
export const bad = () => badRequest("missing field: item");
export const unknown = () => unauthorized("who are you");
export const forbids = () => forbidden("not you");
export const lost = () => notFound("no such order");
export const teapot = () => error(418, "short and stout");
export const noError = () => error(200, "fine");
export const plain = () => ({ plain: true });
export const later = async () => ok(await Promise.all([1, Promise.resolve(2), new Promise((done) => queueMicrotask(() => done(3)))]));
export const laterBody = () => ok(Promise.resolve([1]));
export const silent = () => {};
export const rejects = async () => {
  await null;
  throw new Error("no luck");
};
export const throwsText = () => {
  throw "a text";
};
export const throwsObject = () => {
  throw Object.assign(Object.create(null), { why: "no reason" });
};
export const throwsCircle = () => {
  const error = new Error("round");
  error.cause = error;
  Object.defineProperty(error, "stack", { value: 5 });
  throw error;
};
export const refusedHeader = () => ok(1).withHeader("date", "today");
export const circular = () => {
  const a: { a?: unknown } = {};
  a.a = a;
  return ok(a);
};
export const big = () => ok("x".repeat(100_000));

export function request(req: RouteRequest) {
  const { method, path, params, query, queryAll, headers } = req;
  return ok({ method, path, params, query, queryAll, headers, raw: [...req.rawBody.slice(0, 4)], length: req.rawBody.length });
}
export function text(req: RouteRequest) {
  return ok(req.text());
}
export function body(req: RouteRequest) {
  const { item = "none" } = req.body<{ item?: string }>();
  return ok(item);
}
export const bodyEchoed = (req: RouteRequest) => ok(req.body());
export const bytesCounted = (req: RouteRequest) => ok(req.rawBody.length);
export function bytesTooMany(req: RouteRequest) {
  try {
    return ok(req.rawBody.length);
  } catch (caught) {
    return error(413, (caught as Error).message);
  }
}
/** Lists in lists, or beside each other, and in the last an object, empty or not. */
export function okDeep(req: RouteRequest) {
  const { n, last } = req.body();
  let deep: unknown[] = [last];
  for (let i = 0; i < n; i++) deep = [deep];
  return ok(deep);
}
export function okWide(req: RouteRequest) {
  const { n, last } = req.body();
  return ok([...Array.from({ length: n }, () => [1]), last]);
}
export function bodyCaught(req: RouteRequest) {
  try {
    return ok(req.body());
  } catch (e) {
    return badRequest((e as Error).name);
  }
}
export function context() {
  const { requestId, route, auth, deadline } = getContext();
  return ok({ requestId, route, kind: auth.kind, roles: auth.roles, deadline: deadline instanceof Date });
}

// What is no answer, or one in another way.
export const okBuffer = () => ok(Uint8Array.of(1, 2, 3).buffer.slice(1));
export const okView = () => ok(new Uint16Array(Uint8Array.of(0, 0, 65, 66).buffer, 2));
export const okData = () => ok(new DataView(Uint8Array.of(0, 65, 66).buffer, 1, 1));
export const okMap = () => ok(new Map([[1, 2]]));
export const okSet = () => ok({ deep: [{ all: new Set([1]) }] });
export const okGenerator = () => ok((function* () { yield 1; })());
export const okError = () => ok(new HostError("invalid", "inside"));
export const okAnswer = () => ok(ok(1) as any);
export const okPromise = () => ok({ rows: Promise.resolve([1]) });
export const okEmpty = () => ok({ a: {}, b: [{}], c: Object.create(null), d: new Date(0), e: new (class { n = 1 })() });
export const okMade = () => ok(Object.assign(Object.create(null), { constructor: 1, a: [] }));
export const throwsAnswer = () => { throw notFound("no such thing"); };
export const rejectsAnswer = async () => { await null; throw ok({ early: true }).withHeader("x-early", "1"); };
export const throwsTwice = () => { throw { toString() { throw 1; }, toJSON() { throw 2; } }; };
export const throwsOdd = () => {
  const error = new Error("odd");
  Object.defineProperty(error, "name", { get() { throw 1; } });
  throw error;
};
export async function secretUncaught() {
  await null;
  return ok(await getContext().secret("NOPE"));
}
export const secretHandedOn = () => {
  return ok(getContext().client.apiKeys.get(5 as any));
};
export async function secretCaught() {
  try {
    return ok(await getContext().secret("NOPE"));
  } catch (error) {
    return ok([(error as HostError).code, (error as HostError).op, /^\S+: [^\n]*\n +at secretCaught \(handlers\/answers\.ts:[0-9:]+\)\s*$/.test((error as Error).stack ?? "")]);
  }
}
export const secretThrown = () => { throw new HostError("not_found", "of my own"); };
export const secretInside = () => ok({ value: getContext().secret("NOPE") });
export function keyForgotten() {
  getContext().client.apiKeys.revoke("key_1");
  return ok(1);
}
export function insertForgotten() {
  insert("Order", { item: "tea" });
  return ok(1);
}
export function changesForgotten() {
  update("Order", { item: "tea" }).where("id", "=", "1").rows();
  remove("Order").every();
  return ok(1);
}
export const rowsInside = () => ok({ rows: query("Order").limit(2) });
export function keyForgottenFails() {
  getContext().client.apiKeys.revoke("key_1");
  throw new Error("before");
}
const unseen = ["toLocale", "String"].join("");
const order = ["locale", "Compare"].join("");
export const language = (req: RouteRequest) => {
  const tries: Record<string, () => unknown> = {
    number: () => (1234.5 as any)[unseen](),
    date: () => (new Date(0) as any)[unseen]("en", { weekday: "long" }),
    compare: () => ("a" as any)[order]("b", "de"),
    upper: () => "i".toLocaleUpperCase("tr"),
    big: () => (1n as any)[unseen]("de"),
    plain: () => [("a" as any)[order]("b"), ("b" as any)[order]("a"), "i".toLocaleUpperCase(undefined), typeof (globalThis as any)[["In", "tl"].join("")]],
  };
  try {
    return ok(tries[req.query.what]());
  } catch (error) {
    return ok(`${error}`);
  }
};

// Text with its content type.
export const asText = () => textAnswer("grüße\ud800");
export const asPage = () => html("<h1>gone</h1>", 410);
export const noText = () => textAnswer("");
export const csv = () => ok("a,b\n").withHeader("Content-Type", "text/csv");
export const csvLater = () => ok(Promise.resolve("a,b\n")).withHeader("content-type", "text/csv");
export const problem = () => ok("json").withHeader("content-type", "application/problem+json; charset=utf-8");
export const rowsAsCSV = () => ok([1]).withHeader("content-type", "text/csv");
export const csvText = () => textAnswer("a,b\n").withHeader("Content-Type", "text/csv");
export const movedAgain = () => redirect("/there", 308).withHeader("location", "/here").withHeader("x-a", "1").withHeader("X-A", "2");
