import { Router } from "itty-router";

export async function run() {
  const router = Router();
  router.get("/items/:id", ({ params, query }) => ({ id: params.id, query }));
  return router.fetch({ method: "GET", url: "https://a.example/items/7?x=1" });
}
