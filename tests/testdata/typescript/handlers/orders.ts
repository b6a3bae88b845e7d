import {
  badRequest, created, error, get, getContext, HostError, insert, noContent, notFound, ok, query, remove, update, type RouteRequest,
} from "@runner/sdk";
import { type Order, type OrderInput } from "./lib/order.ts";

export async function listOrders(req: RouteRequest) {
  let orders = query<Order>("Order").select("id", "item").orderBy("item").limit(Number(req.query.limit ?? 20));
  if (req.query.item) orders = orders.where("item", "=", req.query.item);
  return ok(await orders);
}

export function getOrder(req: RouteRequest) {
  return ok(get("Order", req.params.id));
}

export async function createOrder(req: RouteRequest) {
  const { item, qty = 1, code } = req.body<OrderInput>();
  if (!item) return badRequest("missing field: item");
  const order = await insert<Order>("Order", { item, qty, code });
  console.info("order placed", { id: order.id, key: getContext().auth.keyId });
  return created(order, `/v1/orders/${order.id}`);
}

export async function createOrders(req: RouteRequest) {
  const orders = await insert<Order>("Order", req.body<OrderInput[]>());
  return created(orders.map(({ item }) => item));
}

export async function payOrder(req: RouteRequest) {
  const paid = await update<Order>("Order", { status: "paid" }).where("id", "=", req.params.id).rows();
  return paid.length > 0 ? ok(paid[0].status) : notFound("no such order");
}

export async function deleteOrder(req: RouteRequest) {
  return (await remove("Order").where("id", "=", req.params.id)) > 0 ? noContent() : notFound("no such order");
}

export async function undone() {
  await insert("Order", { item: "undone" });
  return error(422, "changed my mind");
}

export async function kept() {
  await insert("Order", { item: "kept" });
  getContext().keepWrites();
  return error(422, "changed my mind, but keep it");
}

/** Reads and writes one row in many requests at once: none may be lost. */
export async function counter() {
  const row = await query<Order>("Order").where("code", "=", "counter").firstOrFail();
  await update("Order", { qty: row.qty + 1 }).where("id", "=", row.id);
  return ok(row.qty + 1);
}

export async function mistakes() {
  const told: unknown[] = [];
  for (const does of [
    () => query("Nothing"),
    () => query("Order").where("item", "~" as "=", 1),
    () => update("Order", { qty: 2 }),
    () => insert("Order", { item: "x", qty: 0 }),
    () => get("Order", "nowhere"),
    () => insert("Order", [{ item: "a", code: "same" }, { item: "b", code: "same" }]),
    async () => query("Order").where("weight", "=", Number("many")),
    async () => query("Order").where("qty", "in", [1, Infinity]),
    () => insert("Order", [{ item: "a" }, { item: "b", weight: Number("many") }]),
    () => insert("Order", { item: "b", weight: -Infinity }),
    () => update("Order", { weight: NaN }).every(),
  ]) {
    try {
      await does();
      told.push("nothing");
    } catch (e) {
      told.push(e instanceof HostError && e.message !== "" ? e.code : String(e));
    }
  }
  return ok(told);
}

export async function misspelt() {
  const rows = await query("Orders" as "Order").limit(5);
  return ok(rows.length);
}

export async function changes() {
  const change = update("Order", { item: "tea" });
  await change.where("item", "=", "coffee");
  await remove("Order").where("item", "=", "coffee");
  insert("Order", { item: "forgotten" });
  return ok(await query("Order").where("item", "=", "forgotten").count());
}
