// What API keys of each scope reach, and who may issue them.
import { as, beforeAll, clock, describe, expect, rows, test } from "@runner/test";
import { member, organisation, type Organisation, type Role } from "./organisation.ts";

let acme: Organisation, other: Organisation;

beforeAll(async () => {
  acme = await organisation("acme");
  other = await organisation("other");
});

// Keys of these scopes are for the operator's own services, and belong to no organisation.
const forAll = ["mailer", "cleaner", "signin", "passwords"];
const key = (scope: string, org = acme) => as.key(scope, forAll.includes(scope) ? {} : { tenant: org.id });

describe("scopes", () => {
  test.each([["tasks_read", 200], ["tasks_write", 200], ["ingest", 403], ["mailer", 403], ["notifier", 403], ["cleaner", 403]])(
    "%s lists tasks: %i",
    async (scope, status) => {
      expect((await key(scope).get("/api/v1/tasks")).status).toBe(status);
    },
  );

  test.each([["tasks_read", 403], ["tasks_write", 201], ["ingest", 403], ["mailer", 403], ["signin", 403], ["passwords", 403]])(
    "%s creates a task: %i",
    async (scope, status) => {
      expect((await key(scope).post("/api/v1/tasks", { project: acme.open, title: "new" })).status).toBe(status);
    },
  );

  test.each([["tasks_read", 403], ["tasks_write", 403], ["ingest", 201], ["mailer", 403]])("%s reports an event: %i", async (scope, status) => {
    expect((await key(scope).post("/api/v1/events", { actor: "ci", action: "built" })).status).toBe(status);
  });

  test.each(["tasks_read", "tasks_write", "ingest"])("%s is no session", async (scope) => {
    expect((await key(scope).get("/api/projects")).status).toBe(401);
  });
});

describe("tasks", () => {
  test.each(["tasks_read", "tasks_write"])("%s sees the tasks of its organisation only", async (scope) => {
    const { rows: list } = await (await key(scope).get("/api/v1/tasks")).json();
    expect(list.map((t: any) => t.title).sort()).toEqual(["first", "hidden"]);
    expect((await key(scope).get(`/api/v1/tasks/${other.task}`)).status).toBe(404);
  });

  test("a hidden field is never sent", async () => {
    await rows("Task").update(acme.task, { internalCost: "12.50" });
    expect(await (await key("tasks_read").get(`/api/v1/tasks/${acme.task}`)).json()).not.toHaveProperty("internalCost");
  });

  test.each(["todo", "doing", "done"])("the state %s is kept", async (state) => {
    const answer = await key("tasks_write").patch(`/api/v1/tasks/${acme.task}`, { state });
    expect(answer.status).toBe(200);
    expect((await rows("Task").get(acme.task)).state).toBe(state);
  });

  test.each([{ state: "started" }, { state: 1 }, { title: "" }, { estimate: -1 }, { estimate: 1001 }, { estimate: "3" }, {}])(
    "the change %j is refused",
    async (change) => {
      const answer = await key("tasks_write").patch(`/api/v1/tasks/${acme.task}`, change);
      expect(answer.status).toBe(400);
    },
  );

  test.each([0, 1, 8, 1000])("an estimate of %i is kept", async (estimate) => {
    const answer = await key("tasks_write").post("/api/v1/tasks", { project: acme.open, title: "new", estimate });
    expect(await answer.json()).toMatchObject({ title: "new", estimate, state: "todo" });
  });

  test.each([-1, 1001, 1.5, "1", true, {}])("an estimate of %j is refused", async (estimate) => {
    const answer = await key("tasks_write").post("/api/v1/tasks", { project: acme.open, title: "new", estimate });
    expect(answer.status).toBe(400);
    expect((await answer.json()).errors[0].field).toBe("estimate");
  });

  test.each([undefined, "", "x".repeat(201), 7])("a title %j is refused", async (title) => {
    expect((await key("tasks_write").post("/api/v1/tasks", { project: acme.open, title })).status).toBe(400);
  });

  test("a project of another organisation counts as absent", async () => {
    const answer = await key("tasks_write").post("/api/v1/tasks", { project: other.open, title: "new" });
    expect(answer.status).toBe(404);
    expect(await rows("Task").where("title", "=", "new").count()).toBe(0);
  });

  test.each([["todo", 2], ["doing", 0], ["done", 0]])("there are tasks with the state %s: %i", async (state, count) => {
    const { rows: list } = await (await key("tasks_read").get(`/api/v1/tasks?state=${state}`)).json();
    expect(list).toHaveLength(count);
  });

  test("the answer to a new task", async () => {
    const answer = await key("tasks_write").post("/api/v1/tasks", { project: acme.open, title: "new" });
    const { id, createdAt, updatedAt, org, project, ...rest } = await answer.json();
    expect(answer.headers.get("location")).toBe(`/api/v1/tasks/${id}`);
    expect(rest).toMatchSnapshot();
  });
});

describe("issuing", () => {
  const may: [Role, string, number][] = [
    ["owner", "tasks_read", 200], ["owner", "tasks_write", 200], ["owner", "ingest", 200],
    ["admin", "tasks_read", 200], ["admin", "tasks_write", 200], ["admin", "ingest", 403],
    ["owner", "mailer", 403], ["owner", "signup", 403], ["owner", "cleaner", 403],
    ["member", "tasks_read", 403], ["viewer", "tasks_read", 403],
  ];
  test.each(may)("%s issues a key of %s: %i", async (role, scope, status) => {
    const answer = await member(acme, role).post("/_call/createKey", { name: "ci", scope });
    expect(answer.status).toBe(status);
  });

  test("a new key works, until it is revoked", async () => {
    const owner = member(acme, "owner");
    const made = await (await owner.post("/_call/createKey", { name: "ci", scope: "tasks_read" })).json();
    const ask = () => as.anonymous().get("/api/v1/tasks", { headers: { "x-api-key": made.token } });
    expect((await ask()).status).toBe(200);
    expect((await owner.post("/_call/revokeKey", { id: made.id })).status).toBe(200);
    expect((await ask()).status).toBe(401);
  });

  test.each([60, 3600, 86400])("a key that lives for %i s ends then", async (expiresIn) => {
    const made = await (await member(acme, "owner").post("/_call/createKey", { name: "ci", scope: "tasks_read", expiresIn })).json();
    const ask = () => as.anonymous().get("/api/v1/tasks", { headers: { authorization: `Bearer ${made.token}` } });
    await clock.advance((expiresIn - 1) * 1000);
    expect((await ask()).status).toBe(200);
    await clock.advance("2s");
    expect((await ask()).status).toBe(401);
  });

  test("a key without a lifetime ends after 180 days", async () => {
    const ci = key("tasks_read");
    expect((await ci.get("/api/v1/tasks")).status).toBe(200);
    await clock.advance("179d");
    expect((await ci.get("/api/v1/tasks")).status).toBe(200);
    await clock.advance("1d");
    expect((await ci.get("/api/v1/tasks")).status).toBe(401);
  });

  test.each([0, 3600])("a rotated key's old token is valid for %i s", async (gracePeriod) => {
    const owner = member(acme, "owner");
    const made = await (await owner.post("/_call/createKey", { name: "ci", scope: "tasks_read" })).json();
    const ask = () => as.anonymous().get("/api/v1/tasks", { headers: { "x-api-key": made.token } });
    const rotated = await (await owner.post("/_call/rotateKey", { id: made.id, gracePeriod })).json();
    expect(rotated.token).not.toBe(made.token);
    expect((await ask()).status).toBe(gracePeriod ? 200 : 401);
    await clock.advance("2h");
    expect((await ask()).status).toBe(401);
  });

  test("an administrator sees no key of another organisation", async () => {
    await member(other, "owner").post("/_call/createKey", { name: "theirs", scope: "tasks_read" });
    await member(acme, "owner").post("/_call/createKey", { name: "ours", scope: "tasks_read" });
    const page = await (await member(acme, "admin").post("/_call/listKeys", {})).json();
    expect(JSON.stringify(page)).toContain("ours");
    expect(JSON.stringify(page)).not.toContain("theirs");
  });
});

describe("limits", () => {
  test("a key may ask 50 times in a second", async () => {
    const ci = key("tasks_read");
    for (let i = 0; i < 50; i++) expect((await ci.get("/api/v1/tasks/none")).status).toBe(404);
    expect((await ci.get("/api/v1/tasks/none")).status).toBe(429);
    await clock.advance("1s");
    expect((await ci.get("/api/v1/tasks/none")).status).toBe(404);
  });
});
