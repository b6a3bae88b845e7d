// Uses of @runner/test without errors.

import { afterAll, afterEach, as, beforeAll, beforeEach, call, clock, describe, expect, it, jobs, outbound, request, rows, test, type Client } from "@runner/test";
import { field } from "@runner/sdk";

let ada: Client;
beforeAll(async () => {
  ada = as.session({ user: "u1", tenant: "s1", roles: ["owner"], expiresIn: "1h" });
});
beforeEach(() => {}, "10s");
afterEach(async () => {}, 500);
afterAll(() => {});

test("rows", async () => {
  const order = await rows("Order").insert({ shop: "s1", buyer: "u1", number: "A-1", token: crypto.randomUUID(), weight: 1, total: "5", states: [], tags: ["a"] });
  const [one, two] = await rows("Shop").insert([{ name: "one" }, { name: "two" }]);
  const number: string = order.number;
  const all: string[] = (await rows("Order").where("state", "=", "open").match(field("count", ">", 1)).orderBy("number", "desc").limit(5)).map((o) => o.number);
  const first = await rows("Order").select("id", "number").first();
  const none: string | undefined = first?.number;
  const count: number = await rows("Order").count();
  expect((await rows("Order").get(order.id)).number).toBe("A-1");
  await rows("Order").update(order.id, { state: "paid" });
  await rows("Order").delete(order.id);
  expect([number, all, none, count, one?.name, two?.name]).toEqual(expect.any(Array));
});

describe("requests", () => {
  it("has bodies", async () => {
    const answer = await ada.post("/v1/orders", { number: "A-1" }, { query: { page: 2, tag: ["a", "b"] }, headers: { "X-A": "1" } });
    expect(answer.status).toBe(201);
    const body: unknown = await answer.json();
    expect(body).toMatchObject({ id: expect.stringMatching(/^[0-9a-z]{26}$/), lines: expect.arrayContaining([expect.objectContaining({ sku: "a" })]) });
    await expect(request.get("/v1/orders")).resolves.toHaveProperty("status", 401);
    await expect(request.fetch("/x", { method: "QUERY" })).rejects.not.toThrow(/far/);
  });
});

test.each([[1, "a"], [2, "b"]])("%d is %s", (n, letter) => {
  expect(n.toFixed() + letter.toUpperCase()).toHaveLength(2);
});
test.skip.each([{ name: "a" }, { name: "b" }])("$name", ({ name }) => { expect(name.length).toBe(1); }, "1m");
test.todo("more");
describe.only("only", () => {});

test("the rest", async () => {
  const now: Date = await clock.set(new Date(0));
  await clock.advance("1h");
  outbound.on(/example/, async (sent) => Response.json({ url: sent.url, body: await sent.text() }));
  for (const job of await jobs.run()) expect(job.attempt).toBeLessThan(3);
  const { status, body } = await call<number>("move", { order: "o1" }, { tenant: "s1" });
  expect([status, body.toFixed(), now, outbound.requests.length]).toMatchSnapshot();
  expect(() => { throw new RangeError("far"); }).toThrow(RangeError);
});
