// Code that must pass the type checker. An assignment to an explicit type states the exact
// type of a value.

import type { Item, Line, Order, OrderInput, OrderPatch, State, User } from "@runner/schema";
import {
  aggregate, and, fetchHandler, field, get, getContext, insert, jobs, ok, query, remove, select, update, vars,
  type EntityName, type Insert, type JobName, type RoleName, type RouteRequest, type Row, type ScopeName, type SecretName, type Selection, type Update,
} from "@runner/sdk";

import greeting from "./greeting.txt";
import page from "./page.html";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>) {}

same<EntityName, "Shop" | "User" | "Order" | "Line">(true);
same<ScopeName, "all" | "setup">(true);
same<RoleName, "owner" | "clerk">(true);
same<SecretName, "HOOK">(true);
same<typeof vars, Readonly<{ ORIGIN: string; NOTE: string; SIZE: number; PRICE: string; OPEN: boolean; IDLE: number; LIMIT: string }>>(true);
same<JobName, "sendReceipt" | "clean">(true);
same<State, "open" | "paid">(true);
same<Row<"Order">, Order>(true);
same<OrderInput["items"], Item[]>(true);
same<OrderInput["at"], string | null | undefined>(true);
same<OrderPatch, { note?: string | null; due?: string; tags?: string[] }>(true);
same<typeof greeting | typeof page, string>(true);
same<Order["secretNote"], string | null | undefined>(true);
same<Insert<"Shop">, { id?: string; name: string }>(true);
same<Insert<"Line">, { shop?: string; order: string; sku: string }>(true);
same<Update<"Line">, { order?: string; sku?: string }>(true);

export const app = fetchHandler(async (request) => {
  const form = await request.formData();
  const file = form.get("file");
  if (!(file instanceof File)) return Response.json({ error: "file" }, { status: 400 });
  const passed = await fetch(new Request("https://a.example/", { method: "PUT", body: new Blob([await file.bytes()]) }));
  return new Response(passed.body, { status: passed.status, headers: passed.headers });
});
export const form = async (req: RouteRequest) => ok([...(await req.formData()).keys()]);

export async function right(req: RouteRequest) {
  const line: Line = await get("Line", req.params.id);
  const orders: Order[] = await query("Order")
    .where("total", ">", 100)
    .where("placedAt", "<=", new Date(0))
    .where("state", "in", ["open", "paid"])
    .where("note", "=", null)
    .where("number", "startsWith", "A-")
    .where("note", "contains", "x")
    .where("tags", "contains", "blue")
    .where("states", "contains", "paid")
    .where("seller", "!=", line.order)
    .match(and(field("count", ">", 1)))
    .orderBy("placedAt", "desc")
    .after(req.query.cursor)
    .limit(5);
  const [order] = orders;
  const total: string = order.total;
  const prices: string[] | null = order.prices;

  const some = await query("Order").select("id").select("total");
  same<typeof some, Pick<Order, "id" | "total">[]>(true);
  const begun = await select("order", "sku").from("Line").where("shop", "=", "s1");
  same<typeof begun, Pick<Line, "order" | "sku">[]>(true);
  const one = await get("Order", "o1", "id", "state");
  same<typeof one, Pick<Order, "id" | "state">>(true);
  const { rows, nextCursor } = await query("Line").page();
  same<typeof rows, Line[]>(true);
  const first = await query("Line").first();
  same<typeof first, Line | null>(true);
  const required = await query("Line").firstOrFail();
  same<typeof required, Line>(true);
  const counted = await query("Line").count({ atMost: 10_000 });
  same<typeof counted, { count: number; more: boolean }>(true);
  const days = await aggregate("Order").groupByTime("placedAt", "day", "Europe/Berlin").groupBy("state").count();
  const day: string = days[0].group.placedAt;
  const state: State = days[0].group.state;
  const removed = await remove("Line").where("sku", "=", "a").limit(500);
  same<typeof removed, { count: number; more: boolean }>(true);
  const named = await query<{ id: string }>("Order").where("id", "=", "o1");
  same<typeof named, { id: string }[]>(true);

  const sold = await query("Order").select("id").include("buyer", ["email"]).include("seller").include("lines", (q) =>
    q.where("sku", "startsWith", "a", { ignoreCase: true }).orderBy("sku").limit(20).include("shop", ["name"]));
  const email: string | undefined = sold[0].buyer?.email;
  const seller: User | null = sold[0].seller;
  const shop: string | undefined = sold[0].lines[0].shop?.name;
  const soldID: string = sold[0].id;
  same<keyof (typeof sold)[0], "id" | "buyer" | "seller" | "lines">(true);
  const lookedUp = await get("Line", "l1", "sku").include("order", (q) => q.select("total"));
  const lineTotal: string | undefined = lookedUp.order?.total;
  const totals = await aggregate("Order").where("note", "contains", "x", { ignoreCase: true }).groupBy("state", "due").sum("total").avg("count").min("placedAt").max("due").count();
  const [{ group, sum, avg, min, max, count }] = totals;
  same<typeof group, Pick<Order, "state" | "due">>(true);
  const sums: [string | null, number | null, string | null, string | null, number] = [sum.total, avg.count, min.placedAt, max.due, count];
  const [everything] = await aggregate("Order").count();
  same<keyof typeof everything, "count">(true);
  const anything = await query<{ id: string }>("Order").include("buyer", ["whatever"]);
  same<typeof anything[0]["buyer"], any>(true);

  const made: Order = await insert("Order", {
    buyer: "u1", number: "A-1", token: crypto.randomUUID(), weight: 1.5, total: "12.50", states: ["open"], tags: [],
    placedAt: new Date(0), prices: [1, "2.50"], meta: { any: ["thing"] }, note: null, seller: undefined,
  });
  const two: Line[] = await insert("Line", ["a", "b"].map((sku) => ({ order: made.id, sku })));
  const whatever = await insert("Line", req.body());
  same<typeof whatever, any>(true);
  const n: number = await update("Order", { state: "paid", note: null, count: made.count + 1 }).where("id", "=", made.id);
  const changed: Order[] = await update("Order", { express: true }).every().rows();
  const gone: number = await remove("Line").where("sku", "in", ["a"]);

  const body = req.body<OrderInput>();
  await update("Order", { number: body.number, total: body.total, state: body.state ?? undefined }).where("id", "=", made.id);

  await new Promise((done) => setTimeout(done, 50));
  setTimeout((text: string, n: number) => console.log(text.length + n), 5, "a", 1);
  clearInterval(setInterval(() => {}, 10));

  const { id, created } = await jobs.enqueue("sendReceipt", { order: "o1", at: new Date(), item: { sku: "a", price: "1.00" } }, { delay: 60, key: "k" });
  const swept: boolean = created || (await jobs.enqueue("clean")).created || (await jobs.cancel(id));
  const at: Date | undefined = getContext().job?.scheduledFor;
  await jobs.enqueue("clean", {}, { at });

  const { client, auth, secret } = getContext();
  const key = await client.apiKeys.create({ scope: "all" });
  if (auth.scope === "setup" || auth.roles.includes("owner")) await secret("HOOK");
  return ok({ total, prices, some, begun, one, named, nextCursor, two, whatever, n, changed, gone, token: key.token, swept, email, seller, shop, soldID, lineTotal, sums, all: paged(query("Order")) });
}

function paged(orders: Selection<Order>) {
  return orders.orderBy("id").limit(10).page();
}
