// An organisation with one member of each role, two projects and their tasks, for the tests.
import { as, rows } from "@runner/test";

export const roles = ["owner", "admin", "member", "viewer"] as const;
export type Role = (typeof roles)[number];

export interface Organisation {
  id: string;
  users: Record<Role, string>;
  open: string;
  closed: string;
  task: string;
}

/** Writes the organisation. Its closed project belongs to the owner. */
export async function organisation(slug: string): Promise<Organisation> {
  const org = await rows("Org").insert({ slug, name: slug });
  const users = {} as Record<Role, string>;
  for (const role of roles) {
    const user = await rows("User").insert({ email: `${role}@${slug}.example`, name: role });
    users[role] = user.id;
    await rows("Membership").insert({ org: org.id, user: user.id, role });
  }
  const project = (key: string, secret: boolean) =>
    rows("Project").insert({ org: org.id, key, name: key, private: secret, owner: users.owner });
  const open = (await project("OPEN", false)).id;
  const closed = (await project("SECRET", true)).id;
  const task = (await rows("Task").insert({ org: org.id, project: open, title: "first" })).id;
  await rows("Task").insert({ org: org.id, project: closed, title: "hidden" });
  return { id: org.id, users, open, closed, task };
}

/** Returns a client that is signed in as the member of a role. */
export const member = (org: Organisation, role: Role) =>
  as.session({ user: org.users[role], tenant: org.id, roles: [role] });
