// Serves the handlers and the tasks that compute as a worker.

import { group, logs, markdown, sha, table } from "../tasks/handlers/lib/work.ts";
import { hello, hundred } from "./handlers.mjs";

const json = (body) => new Response(body, { headers: { "content-type": "application/json" } });
const html = (body) => new Response(body, { headers: { "content-type": "text/html; charset=utf-8" } });

const pages = {
  "/hello": () => json(hello()),
  "/logs": () => json(JSON.stringify(logs())),
  "/group": () => json(JSON.stringify(group())),
  "/table": () => html(table()),
  "/markdown": () => html(markdown()),
  "/sha": () => json(JSON.stringify(sha())),
};

export default {
  async fetch(req) {
    const { pathname } = new URL(req.url);
    if (req.method === "GET" && Object.hasOwn(pages, pathname)) return pages[pathname]();
    if (req.method === "POST" && pathname === "/hundred") return json(hundred(await req.text()));
    return new Response("", { status: 404 });
  },
};
