// Errors, one per line, each with a part of the type checker's message.

import type { Ordr } from "@runner/schema"; //! has no exported member named 'Ordr'
import { aggregate, field, get, getContext, insert, jobs, query, remove, select, text, update, vars, type RouteRequest } from "@runner/sdk";

export async function wrong(req: RouteRequest) {
  query("Ordr"); //! '"Ordr"' is not assignable to parameter of type '"Line" | "Order" | "Shop" | "User"'
  get("ordr", "o1"); //! '"ordr"' is not assignable
  remove("Lines"); //! '"Lines"' is not assignable
  query("Order").where("totl", "=", 1); //! '"totl"' is not assignable to parameter
  query("Order").where("number", "=", 1); //! 'number' is not assignable to parameter of type 'string'
  query("Order").where("number", "=", null); //! 'null' is not assignable to parameter of type 'string'
  query("Order").where("count", "~", 1); //! '"~"' is not assignable to parameter of type 'Operator'
  query("Order").where("state", "=", "lost"); //! '"lost"' is not assignable to parameter of type 'State'
  query("Order").where("state", "in", ["lost"]); //! '"lost"' is not assignable to type 'State'
  query("Order").where("state", "in", "open"); //! is not assignable to parameter of type 'readonly State[]'
  query("Order").where("lines", "contains", "l1"); //! '"lines"' is not assignable
  query("Order").select("id", "lines"); //! '"lines"' is not assignable
  query("Order").orderBy("madeat"); //! '"madeat"' is not assignable
  select("id", "skuu").from("Line"); //! '"Line"' is not assignable to parameter of type 'never'
  select("sku").from("Order"); //! '"Order"' is not assignable to parameter of type '"Line"'
  (await query("Order").select("id").firstOrFail()).total; //! Property 'total' does not exist
  (await query("Order")).length.total; //! Property 'total' does not exist
  (await get("Order", "o1")).seller.length; //! is possibly 'null'
  const rows: { id: number }[] = await query("Line"); //! 'string' is not assignable to type 'number'
  insert("Line", { order: "o1" }); //! Property 'sku' is missing
  insert("Line", { order: "o1", sku: "a", total: 1 }); //! 'total' does not exist
  insert("Line", [{ order: "o1" }]); //! No overload matches
  insert("Line", { id: "l1", order: "o1", sku: "a" }); //! 'id' does not exist
  insert("Order", { shop: "s1" }); //! 'shop' does not exist
  update("Order", { checkedBy: "me" }); //! 'checkedBy' does not exist
  update("Order", { madeAt: new Date() }); //! 'madeAt' does not exist
  update("Order", { number: null }); //! 'null' is not assignable to type 'string | undefined'
  update("Order", { tags: [1] }); //! 'number' is not assignable to type 'string'
  update("Order", { due: new Date() }); //! 'Date' is not assignable to type 'string'
  const { token } = req.query;
  query("Order").where("token", "=", token); //! 'string | undefined' is not assignable to parameter of type 'string'
  query("Order").where("note", "=", req.headers["x-note"]); //! 'string | undefined' is not assignable to parameter of type 'string | null'
  query("Order").where("token", "in", [token]); //! 'string | undefined' is not assignable to type 'string'
  query("Order").where("token", "in", req.queryAll.token); //! 'readonly string[] | undefined' is not assignable
  query("Order").where("note", "contains", token); //! 'string | undefined' is not assignable
  query("Order").where("meta", "=", token); //! 'string | undefined' is not assignable to parameter of type 'Value'
  query("Order").where("count", "=", 1n); //! 'bigint' is not assignable
  query("Order").where("token", "=", Promise.resolve("t")); //! 'Promise<string>' is not assignable
  query<{ token: string | null }>("Order").where("token", "=", token); //! 'undefined' is not assignable
  query("Order").match(field("token", "=", token)); //! 'undefined' is not assignable
  query("Order").include("lines", (q) => q.where("sku", "=", token)); //! 'string | undefined' is not assignable
  update("Order", { note: "" }).where("token", "=", token); //! 'string | undefined' is not assignable
  remove("Order").where("note", "=", token); //! 'string | undefined' is not assignable
  aggregate("Order").where("token", "=", token); //! 'string | undefined' is not assignable
  get("Order", token); //! 'string | undefined' is not assignable
  insert("Line", { order: "o1", sku: token }); //! 'string | undefined' is not assignable to type 'string'
  text(token); //! 'string | undefined' is not assignable
  jobs.enqueue("cleen"); //! '"cleen"' is not assignable
  jobs.enqueue("sendReceipt"); //! Expected 2-3 arguments
  jobs.enqueue("sendReceipt", { order: 1 }); //! 'number' is not assignable to type 'string'
  jobs.enqueue("clean", {}, { after: 1 }); //! 'after' does not exist
  query("Order").include("byer"); //! '"byer"' is not assignable
  query("Order").include("buyer", ["mail"]); //! No overload matches
  query("User").include("name"); //! '"name"' is not assignable
  (await query("Order").include("buyer", ["email"]).firstOrFail()).buyer.email; //! is possibly 'null'
  (await query("Order").include("lines").firstOrFail()).lines.sku; //! Property 'sku' does not exist
  query("Order").where("number", "=", "a", { ignorecase: true }); //! 'ignorecase' does not exist in type 'Matching'
  (await query("Line").first()).sku; //! is possibly 'null'
  aggregate("Order").groupByTime("number", "day"); //! '"number"' is not assignable
  aggregate("Order").groupByTime("placedAt", "year"); //! '"year"' is not assignable
  aggregate("Order").sum("totl"); //! '"totl"' is not assignable
  (await aggregate("Order").groupBy("state").count())[0].group.due; //! Property 'due' does not exist
  getContext().client.apiKeys.create({ scope: "al" }); //! '"al"' is not assignable to type '"all" | "setup"'
  getContext().secret("HOOKS"); //! '"HOOKS"' is not assignable to parameter of type '"HOOK"'
  vars.ORIGN; //! Property 'ORIGN' does not exist
  vars.SIZE = 1; //! it is a read-only property
  vars.PRICE + vars.SIZE - 1; //! must be of type
  getContext().auth.roles.includes("boss"); //! '"boss"' is not assignable
  if (getContext().auth.scope === "alle") return; //! no overlap
}
