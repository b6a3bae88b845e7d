import { getContext, insert, ok, query, remove, update, type RouteRequest } from "@runner/sdk";

export const addAccounts = async (req: RouteRequest) => ok((await insert("Account", req.body())).length);

export const accounts = () => ok(query("Account").select("email", "password", "resetToken", "seenAt").orderBy("email"));

// What follows is written without a thought about values that are missing. The type checker
// refuses it, and the build does not check types.

export async function reset(req: RouteRequest) {
  const { password } = req.body<{ password: string }>();
  const changed = await update("Account", { password, resetToken: null }).where("resetToken", "=", req.query.token); //! wrong
  return ok({ changed });
}

export async function removeExpired(req: RouteRequest) {
  return ok({ removed: await remove("Account").where("resetToken", "=", req.headers["x-token"]) }); //! wrong
}

export async function seen(req: RouteRequest) {
  const { email, at } = req.body<{ email: string; at: string }>();
  return ok({ changed: await update("Account", { seenAt: new Date(at) }).where("email", "=", email) });
}

export function signOut(req: RouteRequest) {
  return getContext().client.sessions.revoke(req.query.id); //! wrong
}
