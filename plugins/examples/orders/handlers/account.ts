import { getContext, ok, query } from "@runner/sdk";

/** Who is signed in, and the user's row when there is one. */
export async function me() {
  const { userId = "", roles } = getContext().auth;
  const [user = null] = await query("User").select("id", "email", "name").where("id", "=", userId);
  return ok({ userId, roles, user });
}
