// Orders: partners create them, and callers with the right to read them list them. The
// schema declares who may read and change which orders, and the runner enforces it.

import type { OrderInput, OrderStatus } from "@runner/schema";
import {
  badRequest, created, forbidden, get, getContext, insert, noContent, ok, query, remove, update, type RouteRequest, type Update,
} from "@runner/sdk";
import { refused } from "./lib/refused";

export function hello() {
  return ok({ message: "hello" });
}

/** A page of the orders, newest first: all, or those of one ?status=; ?cursor= asks for the next page. */
export async function listOrders(req: RouteRequest) {
  const { status, cursor } = req.query;
  let orders = query("Order").orderBy("createdAt", "desc").limit(50).after(cursor);
  if (status) orders = orders.where("status", "=", status as OrderStatus);
  try {
    return ok(await orders.page());
  } catch (failed) {
    return refused(failed); // a status that there is not, say
  }
}

export function getOrder(req: RouteRequest) {
  return ok(get("Order", req.params.id));
}

/** Creates an order. The runner has checked the body against OrderInput. */
export async function createOrder(req: RouteRequest) {
  const order = await insert("Order", req.body<OrderInput>());
  console.info("order placed", { number: order.number, key: getContext().auth.keyId });
  return created(order, `/v1/orders/${order.id}`);
}

/** Changes the given fields of status, total and meta. */
export async function updateOrder(req: RouteRequest) {
  const { status, total, meta } = req.body<Update<"Order">>();
  if (status === undefined && total === undefined && meta === undefined) {
    return badRequest("nothing to change: give status, total or meta");
  }
  const { id } = req.params;
  try {
    const [order] = await update("Order", { status, total, meta }).where("id", "=", id).rows();
    return order ? ok(order) : untouched(id);
  } catch (failed) {
    return refused(failed);
  }
}

export async function deleteOrder(req: RouteRequest) {
  const { id } = req.params;
  return (await remove("Order").where("id", "=", id)) > 0 ? noContent() : untouched(id);
}

/** The answer when an operation changed nothing: 404 when the caller may not read the order, 403 when the caller may not change it. */
async function untouched(id: string) {
  await get("Order", id, "id");
  return forbidden("the order is past this");
}
