// Sign-up, sign-in and sign-out with a name and a password.

import type { AccountInput } from "@runner/schema";
import { created, error, getContext, insert, noContent, ok, password, query, type RouteRequest, unauthorized } from "@runner/sdk";

export async function signup(req: RouteRequest) {
  const input = req.body<AccountInput>();
  if (await query("User").where("name", "=", input.name).first()) return error(409, "this name is taken");
  const user = await insert("User", { name: input.name });
  await insert("Credential", { user: user.id, hash: await password.hash(input.password) });
  await getContext().client.sessions.create({ userId: user.id, roles: ["member"] });
  return created({ id: user.id, name: user.name });
}

/** An unknown name and a wrong password get the same answer, after the same time. */
export async function signin(req: RouteRequest) {
  const input = req.body<AccountInput>();
  const user = await query("User").where("name", "=", input.name).first();
  const stored = user && await query("Credential").where("user", "=", user.id).first();
  if (!await password.verify(input.password, stored?.hash) || !user) return unauthorized("the name or the password is wrong");
  await getContext().client.sessions.create({ userId: user.id, roles: ["member"] });
  return ok({ id: user.id, name: user.name });
}

export async function signout() {
  await getContext().client.sessions.revoke();
  return noContent();
}

export async function me() {
  const { userId = "" } = getContext().auth;
  return ok(await query("User").select("id", "name").where("id", "=", userId).first());
}
