// What is measured of handlers in AssemblyScript.
import { created, fields, insert, ok, Response, RouteRequest } from "@runner/assemblyscript";

export function hello(req: RouteRequest): Response {
  return ok(fields().set("message", "hello"));
}

@json
class NewOrder {
  item: string = "";
  qty: i64 = 1;
}

@json
class Order {
  id: string = "";
  item: string = "";
  qty: i64 = 0;
}

export function order(req: RouteRequest): Response {
  return created(insert("Order", req.body<NewOrder>()).row<Order>());
}

@json
class Row {
  id: string = "";
  item: string = "";
  qty: i64 = 0;
  price: f64 = 0;
  total: f64 = 0;
}

export function hundred(req: RouteRequest): Response {
  const rows = req.body<Row[]>();
  for (let i = 0; i < rows.length; i++) rows[i].total = <f64>rows[i].qty * rows[i].price;
  return ok(rows);
}
