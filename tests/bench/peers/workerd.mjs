// Serves the handlers as a worker.

import { hello, hundred } from "handlers.mjs";

const json = (body) => new Response(body, { headers: { "content-type": "application/json" } });

export default {
  async fetch(req) {
    const { pathname } = new URL(req.url);
    if (req.method === "GET" && pathname === "/hello") return json(hello());
    if (req.method === "POST" && pathname === "/hundred") return json(hundred(await req.text()));
    return new Response("", { status: 404 });
  },
};
