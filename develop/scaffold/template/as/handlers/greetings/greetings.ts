// The handlers of the app: one exported function for each name in the schema.
import { badRequest, console, created, fields, getContext, insert, JSON, ok, query, Response, RouteRequest } from "@runner/assemblyscript";

@json
class Greeting {
  name: string = "";
  text: string = "";
}

export function hello(req: RouteRequest): Response {
  const name = req.params["name"];
  if (name == "nobody") return badRequest("there is nobody to greet");
  return ok(fields().set("name", name).set("text", "hello " + name));
}

/** The newest greetings, of all or of ?name=. */
export function listGreetings(req: RouteRequest): Response {
  let greetings = query("Greeting").select(["name", "text"]).orderBy("placedAt", "desc").limit(20);
  if (req.query.has("name")) greetings = greetings.where("name", "=", req.query["name"]);
  return ok(greetings);
}

/** Keeps a greeting. The body fits GreetingInput: the runner has looked at it. */
export function createGreeting(req: RouteRequest): Response {
  const greeting = insert("Greeting", req.body<Greeting>()).row<JSON.Raw>();
  console.info("greeting placed by " + getContext().auth.keyId);
  return created(greeting);
}
