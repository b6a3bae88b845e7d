// Asks the app as its callers do. Each test begins with an empty store.
import { as, expect, request, test } from "@runner/test";

const caller = as.key("greetings");

test("a name is greeted", async () => {
  const answer = await caller.get("/v1/hello/world");
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ name: "world", text: "hello world" });
});

test("the name nobody is refused", async () => {
  const answer = await caller.get("/v1/hello/nobody");
  expect(answer.status).toBe(400);
  expect((await answer.json()).detail).toBe("there is nobody to greet");
});

test("a greeting is kept", async () => {
  expect((await caller.post("/v1/greetings", { name: "ada", text: "good morning" })).status).toBe(201);
  expect(await (await caller.get("/v1/greetings?name=ada")).json()).toEqual([{ name: "ada", text: "good morning" }]);
  expect(await (await caller.get("/v1/greetings?name=bob")).json()).toEqual([]);
});

test("a greeting without a text is refused", async () => {
  const answer = await caller.post("/v1/greetings", { name: "ada" });
  expect(answer.status).toBe(400);
  expect((await answer.json()).errors[0].field).toBe("text");
});

test("without a key nothing is told", async () => {
  expect((await request.get("/v1/greetings")).status).toBe(401);
});
