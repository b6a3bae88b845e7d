import type { PartnerInput } from "@runner/schema";
import { created, insert, ok, query, type RouteRequest } from "@runner/sdk";

export function getPartner(req: RouteRequest) {
  return ok(query("Partner").where("code", "=", req.params.code).first());
}

/** The runner has checked the body against PartnerInput. */
export async function createPartner(req: RouteRequest) {
  const partner = await insert("Partner", req.body<PartnerInput>());
  return created(partner, `/v1/partners/${encodeURIComponent(partner.code)}`);
}
