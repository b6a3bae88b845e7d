// What is measured of components in JavaScript.

import { insert } from "runner:app/rows@1.1.0";

addEventListener("fetch", (event) => event.respondWith(answer(event.request)));

async function answer(request) {
  switch (new URL(request.url).pathname) {
    case "/hello":
      return Response.json({ message: "hello" });
    case "/order": {
      const { rows } = JSON.parse(insert(JSON.stringify({ into: "Order", values: await request.json() })));
      return Response.json(rows[0], { status: 201 });
    }
    default: {
      const rows = await request.json();
      for (const row of rows) row.total = row.qty * row.price;
      return Response.json(rows);
    }
  }
}
