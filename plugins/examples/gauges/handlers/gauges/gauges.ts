// The handlers of the app: one exported function for each name in the schema.
import { badRequest, fail, fields, insert, noContent, notFound, ok, query, Response, RouteRequest } from "@runner/assemblyscript";
import { drawn } from "./lib/line";
import { Summary } from "./lib/summary";

@json
class Reading {
  value: f64 = 0;
}

/** Stores a reading. The runner has checked the body against ReadingInput. */
export function addReading(req: RouteRequest): Response {
  const reading = req.body<Reading>();
  const kept = insert("Reading", fields().set("gauge", req.params["gauge"]).set("value", reading.value)).attempt();
  const failed = kept.error;
  if (failed !== null && failed.code == "invalid") return badRequest(failed.message); // a name that is too long
  if (failed !== null) fail(failed);
  return noContent();
}

/** A summary of the newest readings, ?last= of them or 100. */
export function sumUp(req: RouteRequest): Response {
  const values = newest(req);
  if (values === null) return badRequest("last: a whole number from 1 to 1000");
  if (values.length == 0) return notFound("no reading of this gauge");
  return ok(new Summary(values));
}

/** The newest readings as a picture, ?last= of them or 100. */
export function line(req: RouteRequest): Response {
  const values = newest(req);
  if (values === null) return badRequest("last: a whole number from 1 to 1000");
  if (values.length == 0) return notFound("no reading of this gauge");
  const picture = drawn(req.params["gauge"], values);
  return ok(Uint8Array.wrap(String.UTF8.encode(picture))).withHeader("content-type", "image/svg+xml");
}

/** The newest values of the gauge, oldest first; null when ?last= is not valid. */
function newest(req: RouteRequest): f64[] | null {
  let last = 100;
  if (req.query.has("last")) {
    const text = req.query["last"];
    const number = parseInt(text);
    if (!(number >= 1 && number <= 1000) || (<i32>number).toString() != text) return null;
    last = <i32>number;
  }
  return query("Reading")
    .select(["value"])
    .where("gauge", "=", req.params["gauge"])
    .orderBy("at", "desc")
    .limit(last)
    .all<Reading>()
    .map<f64>((reading) => reading.value)
    .reverse();
}
