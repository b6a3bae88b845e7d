import { getContext, ok, query } from "@runner/sdk";

/** The signed-in user, with the user's row if it exists. */
export async function me() {
  const { userId = "", roles } = getContext().auth;
  const [user = null] = await query("User").select("id", "email", "name").where("id", "=", userId);
  return ok({ userId, roles, user });
}
