import { created, insert, ok, type RouteRequest } from "@runner/sdk";

export function hello() {
  return ok({ message: "hello" });
}

interface Order { id: string; item: string; qty: number }

export async function order(req: RouteRequest) {
  const { item, qty } = req.body<{ item: string; qty: number }>();
  return created(await insert<Order>("Order", { item, qty }));
}

interface Row { id: string; item: string; qty: number; price: number; total: number }

export function hundred(req: RouteRequest) {
  const rows = req.body<Row[]>();
  for (const row of rows) row.total = row.qty * row.price;
  return ok(rows);
}
