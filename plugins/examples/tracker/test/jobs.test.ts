// The jobs: the mail about a task, and the end of sign-in links.
import { as, beforeAll, clock, expect, jobs, outbound, rows, test } from "@runner/test";
import { organisation, type Organisation } from "./organisation.ts";

let acme: Organisation;

beforeAll(async () => {
  acme = await organisation("acme");
});

const create = (assignee?: string) =>
  as.key("tasks_write", { tenant: acme.id }).post("/api/v1/tasks", { project: acme.open, title: "paint", assignee });

test("the assignee gets a mail", async () => {
  const mails: any[] = [];
  outbound.on("https://mail.example.com", async (request) => {
    mails.push({ ...(await request.json()), key: request.headers.get("idempotency-key") });
    return new Response(null, { status: 202 });
  });
  expect((await create(acme.users.member)).status).toBe(201);
  expect(mails).toEqual([]);
  const [ran] = await jobs.run();
  expect(ran).toMatchObject({ name: "mailAssignee", state: "done" });
  expect(mails).toEqual([{ to: "member@acme.example", subject: "A task for you: paint", text: expect.any(String), key: ran.id }]);
});

test("without an assignee there is no job", async () => {
  expect((await create()).status).toBe(201);
  expect(await jobs.run()).toEqual([]);
});

test("a request that fails leaves no job", async () => {
  expect((await create("nobody")).status).toBe(404);
  expect(await jobs.list()).toEqual([]);
});

test.each([500, 503, 429])("a mail service that answers %i is asked again", async (status) => {
  let asked = 0;
  outbound.on("https://mail.example.com", () => new Response(null, { status: ++asked === 1 ? status : 202 }));
  await create(acme.users.member);
  await jobs.run();
  expect(asked).toBe(1);
  await clock.advance("1h");
  await jobs.run();
  expect(asked).toBe(2);
  expect(await jobs.failed()).toEqual([]);
});

test("after its last attempt the job has failed", async () => {
  outbound.on("https://mail.example.com", () => new Response(null, { status: 500 }));
  await create(acme.users.member);
  for (let i = 0; i < 20; i++) {
    await jobs.run();
    await clock.advance("1d");
  }
  expect(await jobs.failed()).toMatchObject([{ name: "mailAssignee", state: "failed" }]);
});

test("each night old links are deleted", async () => {
  await clock.set("2027-01-10T12:00:00Z");
  await jobs.run();
  const membership = await rows("Membership").first();
  const expires = (at: string) => rows("SignInLink").insert({ org: acme.id, membership: membership.id, digest: at.padEnd(64, "0").slice(0, 64), expiresAt: at });
  await expires("2027-01-10T13:00:00Z");
  await expires("2027-01-12T13:00:00Z");
  await clock.set("2027-01-11T02:00:01Z"); // three o'clock in Berlin
  expect(await jobs.run()).toMatchObject([{ name: "expireLinks", state: "done" }]);
  expect(await rows("SignInLink").count()).toBe(1);
});
