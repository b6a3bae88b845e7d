import type { ErpEvent } from "@runner/schema";
import { ok, type RouteRequest, update } from "@runner/sdk";

/** Takes the warehouse's calls. They are signed, new, and fit ErpEvent. */
export async function erpWebhook(req: RouteRequest) {
  const { type, data } = req.body<ErpEvent>();
  const shipped = type === "order.shipped" ? await update("Order", { status: "shipped" }).where("number", "=", data.number) : 0;
  return ok({ shipped });
}
