import { Hono } from "hono";
import { basicAuth } from "hono/basic-auth";
import { compress } from "hono/compress";
import { stream, streamSSE, streamText } from "hono/streaming";

export async function run() {
  const app = new Hono();
  app.get("/hello/:name", (c) => c.json({ hello: c.req.param("name"), q: c.req.query("q") ?? null }));
  app.post("/form", async (c) => c.text(String((await c.req.parseBody()).a)));
  app.use("/private/*", basicAuth({ username: "ada", password: "pass" }));
  app.get("/private/page", (c) => c.text("inside"));
  app.get("/bytes", (c) => stream(c, async (out) => {
    await out.write(new Uint8Array([104, 105]));
    await out.pipe(new Response(" there").body);
  }));
  app.get("/text", (c) => streamText(c, async (out) => {
    for (const word of ["a", "b"]) await out.writeln(word);
  }));
  app.get("/events", (c) => streamSSE(c, async (out) => {
    await out.writeSSE({ data: "one\ntwo", event: "e", id: "1" });
  }));
  app.use("/large", compress());
  app.get("/large", (c) => c.text("large ".repeat(1000)));
  const large = await app.request("/large", { headers: { "accept-encoding": "gzip" } });
  const unpacked = await new Response(large.body.pipeThrough(new DecompressionStream("gzip"))).text();
  const got = await app.request("/hello/ada?q=1");
  const login = (text) => app.request("/private/page", { headers: { authorization: `Basic ${btoa(text)}` } });
  const parts = [];
  for (const path of ["/bytes", "/text", "/events"]) {
    const answer = await app.request(path);
    parts.push([answer.headers.get("content-type"), await answer.text()]);
  }
  return [
    large.headers.get("content-encoding"), unpacked.length, got.status, await got.json(), await (await app.request("/form", { method: "POST", body: new URLSearchParams({ a: "é" }) })).text(), (await app.request("/none")).status,
    (await login("ada:pass")).status, (await login("ada:x")).status, (await app.request("/private/page")).headers.get("www-authenticate"), parts,
  ];
}
