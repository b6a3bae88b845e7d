import type { GreetingInput } from "@runner/schema";
import { badRequest, created, getContext, insert, ok, query, type RouteRequest } from "@runner/sdk";

export function hello(req: RouteRequest) {
  const { name } = req.params;
  if (name === "nobody") return badRequest("there is nobody to greet");
  return ok({ name, text: `hello ${name}` });
}

/** The newest greetings, of all or of ?name=. */
export async function listGreetings(req: RouteRequest) {
  let greetings = query("Greeting").select("name", "text").orderBy("placedAt", "desc").limit(20);
  if (req.query.name) greetings = greetings.where("name", "=", req.query.name);
  return ok(await greetings);
}

export async function createGreeting(req: RouteRequest) {
  const greeting = await insert("Greeting", req.body<GreetingInput>());
  console.info("greeting placed", { key: getContext().auth.keyId });
  return created(greeting);
}
