// What each role may do in its own organisation, and that nobody reaches another one.
import { beforeAll, describe, expect, request, rows, test } from "@runner/test";
import { member, organisation, type Organisation, type Role, roles } from "./organisation.ts";

let acme: Organisation, other: Organisation;

beforeAll(async () => {
  acme = await organisation("acme");
  other = await organisation("other");
});

describe("projects", () => {
  test.each(roles)("%s sees the open project", async (role: Role) => {
    const { rows: list } = await (await member(acme, role).get("/api/projects")).json();
    expect(list.map((p: any) => p.key)).toContain("OPEN");
  });

  test.each([["owner", true], ["admin", true], ["member", false], ["viewer", false]] as [Role, boolean][])(
    "%s sees the private project: %s",
    async (role, sees) => {
      const answer = await member(acme, role).get(`/api/projects/${acme.closed}`);
      expect(answer.status).toBe(sees ? 200 : 404);
    },
  );

  test.each([["owner", 201], ["admin", 201], ["member", 201], ["viewer", 403]] as [Role, number][])(
    "%s creates a project: %i",
    async (role, status) => {
      const answer = await member(acme, role).post("/api/projects", { key: "NEW", name: "New" });
      expect(answer.status).toBe(status);
      expect(await rows("Project").where("key", "=", "NEW").count()).toBe(status === 201 ? 1 : 0);
    },
  );

  test.each(["", "x", "far too long a key"])("the key %j is refused", async (key) => {
    const answer = await member(acme, "owner").post("/api/projects", { key, name: "New" });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ errors: [{ field: "key" }] });
  });

  test("a key is used once in an organisation", async () => {
    const owner = member(acme, "owner");
    expect((await owner.post("/api/projects", { key: "OPEN", name: "Again" })).status).toBe(409);
  });

  test("creating a project leaves an audit event", async () => {
    const created = await (await member(acme, "member").post("/api/projects", { key: "NEW", name: "New" })).json();
    expect(await rows("AuditEvent").first()).toMatchObject({ actor: acme.users.member, action: "project.created", detail: { id: created.id } });
  });

  test.each(roles)("%s lists the tasks of the open project", async (role: Role) => {
    const answer = await member(acme, role).get(`/api/projects/${acme.open}/tasks`);
    expect((await answer.json()).rows).toHaveLength(1);
  });

  test.each(["admin", "member", "viewer"] as Role[])("%s does not list the tasks of the private project", async (role) => {
    const answer = await member(acme, role).get(`/api/projects/${acme.closed}/tasks`);
    const seen = answer.status === 200 ? (await answer.json()).rows : [];
    expect(seen).toEqual([]);
  });
});

describe("another organisation", () => {
  test.each(roles)("%s sees none of its projects", async (role: Role) => {
    const { rows: list } = await (await member(acme, role).get("/api/projects")).json();
    expect(list.every((p: any) => p.org === acme.id)).toBe(true);
  });

  test.each(roles)("%s cannot get its project", async (role: Role) => {
    expect((await member(acme, role).get(`/api/projects/${other.open}`)).status).toBe(404);
  });

  test.each(roles)("%s cannot list its tasks", async (role: Role) => {
    expect((await member(acme, role).get(`/api/projects/${other.open}/tasks`)).status).toBe(404);
  });
});

describe("members", () => {
  test.each([["owner", 204], ["admin", 204], ["member", 403], ["viewer", 403]] as [Role, number][])(
    "%s changes a role: %i",
    async (role, status) => {
      const answer = await member(acme, role).post("/_call/setRole", { user: acme.users.viewer, role: "member" });
      expect(answer.status).toBe(status);
      const found = await rows("Membership").where("user", "=", acme.users.viewer).first();
      expect(found.role).toBe(status === 204 ? "member" : "viewer");
    },
  );

  test.each([["owner", 204], ["admin", 204], ["member", 403], ["viewer", 403]] as [Role, number][])(
    "%s removes a member: %i",
    async (role, status) => {
      expect((await member(acme, role).post("/_call/removeMember", { user: acme.users.viewer })).status).toBe(status);
    },
  );

  test("an owner cannot remove itself", async () => {
    const answer = await member(acme, "owner").post("/_call/removeMember", { user: acme.users.owner });
    expect(answer.status).not.toBe(204);
    expect(await rows("Membership").where("user", "=", acme.users.owner).count()).toBe(1);
  });

  test.each(["owner", "admin"] as Role[])("%s cannot change a member of another organisation", async (role) => {
    expect((await member(acme, role).post("/_call/setRole", { user: other.users.viewer, role: "admin" })).status).toBe(404);
  });

  test.each(["boss", "", "owner"])("the role %j is refused", async (role) => {
    expect((await member(acme, "owner").post("/_call/setRole", { user: acme.users.viewer, role })).status).toBe(400);
  });

  test("a new role ends the sessions of the member", async () => {
    const viewer = member(acme, "viewer");
    expect((await viewer.get("/api/projects")).status).toBe(200);
    await member(acme, "owner").post("/_call/setRole", { user: acme.users.viewer, role: "member" });
    expect((await viewer.get("/api/projects")).status).toBe(401);
  });
});

describe("without a session", () => {
  test.each(["/api/projects", "/api/projects/1", "/api/projects/1/tasks", "/api/v1/tasks"])("GET %s is 401", async (path) => {
    expect((await request.get(path)).status).toBe(401);
  });

  test.each(["setRole", "removeMember", "setPassword", "createKey", "listKeys", "rotateKey", "revokeKey"])("%s is 401", async (name) => {
    expect((await request.post(`/_call/${name}`, {})).status).toBe(401);
  });

  test("the health route answers everybody", async () => {
    expect(await (await request.get("/api/v1/health")).json()).toEqual({ status: "ok" });
  });
});
