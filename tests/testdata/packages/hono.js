import { Hono } from "hono";

export async function run() {
  const app = new Hono();
  app.get("/hello/:name", (c) => c.json({ hello: c.req.param("name"), q: c.req.query("q") ?? null }));
  app.post("/form", async (c) => c.text(String((await c.req.parseBody()).a)));
  const got = await app.request("/hello/ada?q=1");
  return [got.status, await got.json(), await (await app.request("/form", { method: "POST", body: new URLSearchParams({ a: "é" }) })).text(), (await app.request("/none")).status];
}
