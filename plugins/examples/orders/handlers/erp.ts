import type { ErpEvent } from "@runner/schema";
import { ok, type RouteRequest, update } from "@runner/sdk";

/** Handles the warehouse's calls. The runner has checked signature, replay and ErpEvent. */
export async function erpWebhook(req: RouteRequest) {
  const { type, data } = req.body<ErpEvent>();
  const shipped = type === "order.shipped" ? await update("Order", { status: "shipped" }).where("number", "=", data.number) : 0;
  return ok({ shipped });
}
