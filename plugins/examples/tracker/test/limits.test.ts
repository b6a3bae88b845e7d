// What routes refuse that nobody else checks: wrong bodies, wrong callers, and too many requests.
import { as, beforeAll, clock, describe, expect, request, test } from "@runner/test";
import { member, organisation, type Organisation } from "./organisation.ts";

let acme: Organisation;

beforeAll(async () => {
  acme = await organisation("acme");
});

describe("events", () => {
  test.each([{}, { actor: "ci" }, { actor: "", action: "built" }, { actor: "ci", action: "x".repeat(65) }, { actor: "ci", action: "built", more: 1 }])(
    "%j is refused",
    async (event) => {
      expect((await as.key("ingest", { tenant: acme.id }).post("/api/v1/events", event)).status).toBe(400);
    },
  );

  test.each([null, 1, "text", ["a", { b: [] }], { deep: { er: true } }])("a detail %j is kept", async (detail) => {
    const answer = await as.key("ingest", { tenant: acme.id }).post("/api/v1/events", { actor: "ci", action: "built", detail });
    expect((await answer.json()).detail).toEqual(detail);
  });
});

describe("links", () => {
  test.each([{}, { slug: "acme" }, { slug: "acme", email: "none" }, { slug: "a", email: "a@b.example" }])("%j is refused", async (input) => {
    expect((await as.key("mailer").post("/signin-links", input)).status).toBe(400);
  });

  test.each([{}, { token: "" }, { token: "x".repeat(65) }])("signing in with %j is refused", async (input) => {
    expect((await request.post("/signin", input)).status).toBe(400);
  });
});

describe("many requests", () => {
  test("signing out is limited to 30 in a minute, for each user", async () => {
    const owner = member(acme, "owner");
    for (let i = 0; i < 30; i++) expect((await member(acme, "owner").post("/signout")).status).toBe(204);
    expect((await owner.post("/signout")).status).toBe(429);
    expect((await member(acme, "viewer").post("/signout")).status).toBe(204);
    await clock.advance("1m");
    expect((await owner.post("/signout")).status).toBe(204);
  });

  test("passwords are set 5 times in a minute", async () => {
    const owner = member(acme, "owner");
    for (let i = 0; i < 5; i++) expect((await owner.post("/_call/setPassword", { password: `long enough ${i}` })).status).toBeLessThan(300);
    expect((await owner.post("/_call/setPassword", { password: "long enough" })).status).toBe(429);
  });

  test.each(["short", "x".repeat(257), 12345678, null])("the password %j is refused", async (password) => {
    expect((await member(acme, "owner").post("/_call/setPassword", { password })).status).toBe(400);
  });
});
