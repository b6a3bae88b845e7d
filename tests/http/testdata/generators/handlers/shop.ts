import { created, insert, noContent, ok, query, redirect, remove, type RouteRequest } from "@runner/sdk";
import type { ItemInput, ItemQuery, State } from "@runner/schema";

export function listItems(req: RouteRequest) {
  const { states, most, limit } = req.body<ItemQuery>();
  let all = query("Item").orderBy("name").limit(limit ?? 0);
  if (states) all = all.where("state", "in", states);
  return ok(most === undefined ? all : all.where("price", "<=", most));
}

export async function addItem(req: RouteRequest) {
  return created(await insert("Item", req.body<ItemInput>()));
}

export async function removeItem(req: RouteRequest) {
  await remove("Item").where("id", "=", req.params.id);
  return noContent();
}

export function newest() {
  return redirect("/v1/elsewhere", 303);
}

export function items(req: RouteRequest) {
  const { state } = req.body<{ state?: State }>();
  const all = query("Item").orderBy("name");
  return ok(state ? all.where("state", "=", state) : all);
}

export function add(req: RouteRequest) {
  const { a, b } = req.body<{ a: string | number; b?: string | number }>();
  return ok((Number(a) + Number(b ?? 0)).toFixed(2));
}

export function echo(req: RouteRequest) {
  return ok(req.body<{ value: unknown }>().value);
}
