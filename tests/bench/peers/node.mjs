// Serves the handlers with Node.js alone, and prints its address.

import { createServer } from "node:http";
import { hello, hundred } from "./handlers.mjs";

const server = createServer((req, res) => {
  const answer = (body) => {
    res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
    res.end(body);
  };
  if (req.method === "GET" && req.url === "/hello") return answer(hello());
  if (req.method === "POST" && req.url === "/hundred") {
    const chunks = [];
    req.on("data", (chunk) => chunks.push(chunk));
    req.on("end", () => answer(hundred(Buffer.concat(chunks).toString())));
    return;
  }
  res.writeHead(404);
  res.end();
});
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
