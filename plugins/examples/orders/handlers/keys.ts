// Functions for administrators to manage the keys of partners. The runner has checked the
// parameters. The schema declares which scopes the caller may issue (@issue) and whose keys it
// reaches beside its own (@manage), and the runner enforces it.

import { getContext, ok, type RouteRequest, type ScopeName } from "@runner/sdk";
import { refused } from "./lib/refused";

export async function createPartnerKey(req: RouteRequest) {
  const { name, scope, expiresIn } = req.body<{ name: string; scope: ScopeName; expiresIn?: number }>();
  try {
    return ok(await getContext().client.apiKeys.create({ name, scope, expiresIn }));
  } catch (failed) {
    return refused(failed); // a scope that there is not, say
  }
}

export function listPartnerKeys(req: RouteRequest) {
  const { scope } = req.body<{ scope?: string }>();
  return ok(getContext().client.apiKeys.list({ scope }));
}

export async function rotatePartnerKey(req: RouteRequest) {
  const { id, gracePeriod } = req.body<{ id: string; gracePeriod: number }>();
  try {
    return ok(await getContext().client.apiKeys.rotate(id, { gracePeriod }));
  } catch (failed) {
    return refused(failed);
  }
}

export function revokePartnerKey(req: RouteRequest) {
  const { id } = req.body<{ id: string }>();
  return ok(getContext().client.apiKeys.revoke(id));
}
