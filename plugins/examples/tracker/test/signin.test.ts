// Signing up, signing in by password and by link, and the end of sessions.
import { as, beforeAll, clock, describe, expect, request, rows, test } from "@runner/test";

const ada = { slug: "acme", org: "Acme", email: "ada@example.com", name: "Ada" };

describe("signing up", () => {
  test("makes an organisation and signs in", async () => {
    const browser = as.anonymous();
    expect((await browser.post("/signup", ada)).status).toBe(201);
    expect((await browser.get("/api/projects")).status).toBe(200);
  });

  test.each([
    { ...ada, slug: "Acme" }, { ...ada, slug: "a" }, { ...ada, slug: "with space" }, { ...ada, email: "ada" }, { ...ada, email: "" },
    { ...ada, name: "" }, { ...ada, org: "" }, { ...ada, password: "short" }, { ...ada, slug: undefined }, { ...ada, email: undefined },
    { ...ada, more: true },
  ])("refuses %j", async (input) => {
    expect((await request.post("/signup", input)).status).toBe(400);
    expect(await rows("Org").count()).toBe(0);
  });

  test("refuses a slug and an email that are taken, and keeps nothing", async () => {
    await request.post("/signup", ada);
    expect((await request.post("/signup", { ...ada, email: "bob@example.com" })).status).toBe(409);
    expect((await request.post("/signup", { ...ada, slug: "other" })).status).toBe(409);
    expect(await rows("User").count()).toBe(1);
    expect(await rows("Org").count()).toBe(1);
  });

  test("is limited to 5 in a minute", async () => {
    for (let i = 0; i < 5; i++) {
      expect((await request.post("/signup", { ...ada, slug: `acme-${i}`, email: `ada${i}@example.com` })).status).toBe(201);
    }
    const answer = await request.post("/signup", { ...ada, slug: "acme-6", email: "ada6@example.com" });
    expect(answer.status).toBe(429);
    await clock.advance("1m");
    expect((await request.post("/signup", { ...ada, slug: "acme-6", email: "ada6@example.com" })).status).toBe(201);
  });
});

describe("with a password", () => {
  beforeAll(async () => {
    expect((await request.post("/signup", { ...ada, password: "correct horse" })).status).toBe(201);
  });

  test("the right one opens a session", async () => {
    const browser = as.anonymous();
    const answer = await browser.post("/signin/password", { slug: "acme", email: ada.email, password: "correct horse" });
    expect(answer.status).toBe(200);
    expect((await browser.get("/api/projects")).status).toBe(200);
  });

  test.each([
    { slug: "acme", email: ada.email, password: "wrong horse" },
    { slug: "acme", email: "bob@example.com", password: "correct horse" },
    { slug: "other", email: ada.email, password: "correct horse" },
  ])("%j is 401", async (input) => {
    expect((await request.post("/signin/password", input)).status).toBe(401);
  });

  test("no route sends the hash", async () => {
    const hash = (await rows("Credential").first()).hash;
    expect(hash).toMatch(/^\$argon2id\$/);
  });

  test("ten attempts in a minute are enough", async () => {
    const wrong = { slug: "nobody", email: ada.email, password: "x" };
    for (let i = 0; i < 10; i++) await request.post("/signin/password", wrong);
    expect((await request.post("/signin/password", wrong)).status).toBe(429);
  });
});

describe("with a link", () => {
  beforeAll(async () => {
    expect((await request.post("/signup", ada)).status).toBe(201);
  });

  const link = async () => (await as.key("mailer").post("/signin-links", { slug: "acme", email: ada.email })).json();

  test("a link signs in once", async () => {
    const { token } = await link();
    const browser = as.anonymous();
    expect((await browser.post("/signin", { token })).status).toBe(200);
    expect((await browser.get("/api/projects")).status).toBe(200);
    expect((await as.anonymous().post("/signin", { token })).status).toBe(401);
  });

  test.each([[14, 200], [15, 401], [60, 401]])("a link that is %i minutes old is answered %i", async (minutes, status) => {
    const { token } = await link();
    await clock.advance(minutes * 60_000);
    expect((await request.post("/signin", { token })).status).toBe(status);
  });

  test("a new link replaces the one before", async () => {
    const first = await link();
    await link();
    expect((await request.post("/signin", { token: first.token })).status).toBe(401);
  });

  test.each([["other", ada.email], ["acme", "bob@example.com"]])("there is no link for %s, %s", async (slug, email) => {
    expect((await as.key("mailer").post("/signin-links", { slug, email })).status).toBe(404);
  });

  test.each(["tasks_read", "tasks_write", "ingest"])("a key of %s makes no link", async (scope) => {
    const org = await rows("Org").first();
    expect((await as.key(scope, { tenant: org.id }).post("/signin-links", { slug: "acme", email: ada.email })).status).toBe(403);
  });
});

describe("a session", () => {
  test.each([["6d", 200], ["8d", 401]])("that is not used for %s is answered %i", async (time, status) => {
    const browser = as.anonymous();
    await browser.post("/signup", ada);
    await clock.advance(time);
    expect((await browser.get("/api/projects")).status).toBe(status);
  });

  test("ends after 30 days, used or not", async () => {
    const browser = as.anonymous();
    await browser.post("/signup", ada);
    for (let day = 5; day < 30; day += 5) {
      await clock.advance("5d");
      expect((await browser.get("/api/projects")).status).toBe(200);
    }
    await clock.advance("5d");
    expect((await browser.get("/api/projects")).status).toBe(401);
  });

  test("ends by signing out", async () => {
    const browser = as.anonymous();
    await browser.post("/signup", ada);
    expect((await browser.post("/signout")).status).toBe(204);
    expect((await browser.get("/api/projects")).status).toBe(401);
  });

  test("is not for pages of other origins", async () => {
    const browser = as.anonymous();
    await browser.post("/signup", ada);
    const headers = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    expect((await browser.post("/api/projects", { key: "NEW", name: "New" }, { headers })).status).toBe(403);
  });

  test("a new password ends the other sessions", async () => {
    const [first, second] = [as.anonymous(), as.anonymous()];
    await first.post("/signup", { ...ada, password: "correct horse" });
    await second.post("/signin/password", { slug: "acme", email: ada.email, password: "correct horse" });
    expect((await first.post("/_call/setPassword", { password: "battery staple" })).status).toBeLessThan(300);
    expect((await first.get("/api/projects")).status).toBe(200);
    expect((await second.get("/api/projects")).status).toBe(401);
  });
});
