import { and, badRequest, field, get, getContext, insert, not, ok, or, query, remove, select, unauthorized, update, type RouteRequest } from "@runner/sdk";
import { type Order } from "./lib/order.ts";

/** The builders, on the orders a to e with quantities 1 to 5, of which d and e are paid. */
export async function queries() {
  const all = query<Order>("Order");
  const items = (orders: Order[]) => orders.map((order) => order.item).join("");
  const [first, count] = await Promise.all([all.orderBy("qty", "desc").firstOrFail(), all.where("qty", ">", 2).count()]);
  const page = await all.select("item").orderBy("qty").limit(2).page();
  const next = await all.select("item").orderBy("qty").limit(2).after(page.nextCursor);
  return ok({
    first: first.item,
    count,
    page: items(page.rows) + "|" + items(next),
    open: items(await all.where("status", "=", "open").orderBy("qty")),
    or: items(await all.match(or(field("qty", "=", 1), and(field("qty", ">", 3), field("status", "=", "paid")))).orderBy("item", "desc")),
    not: items(await all.match(not(field("qty", "in", [1, 2])), and(field("qty", "<", 5), field("item", "!=", "c"))).orderBy("item")),
    select: items(await select("item").from("Order").where("item", "startsWith", "c")),
    none: await all.where("item", "=", "z"),
    unchanged: (await all).length,
    get: (await get("Order", first.id, "qty")).qty,
    missing: await all.where("item", "=", "z").first(),
    failed: await all.where("item", "=", "z").firstOrFail().catch((e) => e.code),
  });
}

/** Results that the runner sends by itself, and those that it cannot. */
export function direct(req: RouteRequest) {
  const b = query("Order").select("item").where("item", "=", "b");
  switch (req.params.what) {
    case "rows":
      return ok(b);
    case "first":
      return ok(b.first());
    case "missing":
      return ok(query("Order").where("item", "=", "z").first());
    case "page":
      return ok(b.page());
    case "count":
      return ok(b.count());
    case "update":
      return ok(update("Order", { qty: 2 }).where("item", "=", "b"));
    case "updated":
      return ok(update("Order", { qty: 2 }).where("item", "=", "b").rows());
    case "removed":
      return ok(remove("Order").where("item", "=", "z"));
    case "list":
      return ok(insert("Order", [{ item: "f" }]));
    case "keys":
      return ok(getContext().client.apiKeys.list({ scope: "readers" }));
  }
  return badRequest("what?");
}

export async function keys() {
  const { apiKeys } = getContext().client;
  const made = await apiKeys.create({ scope: "readers", name: "made", expiresIn: 3600, metadata: { n: 1 } });
  const again = await apiKeys.get(made.id);
  const rotated = await apiKeys.rotate(made.id, { gracePeriod: 60 });
  const list = await apiKeys.list({ scope: "readers", limit: 1 });
  const all = await apiKeys.list({ scope: "readers" });
  const revoked = await apiKeys.revoke(made.id);
  return ok({
    token: made.token, rotated: rotated.token, metadata: again.metadata, hidden: "token" in again, status: rotated.status,
    listed: list.keys.map((key) => key.name), next: list.nextCursor === null, all: all.map((key) => key.name), revoked: revoked.status,
  });
}

/** A webhook that is signed with HMAC-SHA-256 over the body, in hex. */
export async function paid(req: RouteRequest) {
  const signature = req.headers["x-signature"];
  if (!signature) return badRequest("missing header: x-signature");
  const secret = new TextEncoder().encode(await getContext().secret("HOOK"));
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const mac = Uint8Array.from(signature.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  if (!(await crypto.subtle.verify("HMAC", key, mac, req.rawBody))) return unauthorized("the signature does not fit");
  return ok(req.body<{ order?: string }>().order ?? null);
}
