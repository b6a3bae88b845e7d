// Answers, made by nine helpers.

import { encode } from "./json";
import { Operation } from "./query";

/** A handler's answer, made by one of the helpers. */
export class Response {
  names: string[] = [];
  values: string[] = [];
  text: string = "";
  bytes: Uint8Array | null = null;
  operation: Operation | null = null;
  failure: bool = false;
  // The arguments of the operation file.send; empty of another answer.
  file: string = "";
  // A Stream has sent it.
  parts: bool = false;
  code: string = "";
  // Of a problem: each member as JSON, with its name.
  members: string[] = [];

  constructor(readonly status: i32) {}

  /**
   * The answer with one more header line. A header that the runner does not let pass
   * makes the answer 500 `handler_failed`, and the log says which.
   */
  withHeader(name: string, value: string): Response {
    this.names.push(name);
    this.values.push(value);
    return this;
  }

  /** Sets the stable code, in snake_case, of an answer made by error. */
  withCode(code: string): Response {
    this.code = code;
    return this;
  }

  /**
   * Adds a member (RFC 9457) to an answer made by error:
   * `error(402, "buy more").withCode("no_credit").withMember("balance", 3)`. The runner writes `type`, `title`,
   * `status`, `detail`, `instance`, `code` and `requestId`: with such a name the answer is 500 `handler_failed`.
   */
  withMember<T>(name: string, value: T): Response {
    this.members.push(encode<string>(name) + ":" + encode<T>(value));
    return this;
  }

  /** The arguments of the operation problem. */
  problem(): string {
    return '{"status":' + this.status.toString() + ',"code":' + encode<string>(this.code) + ',"detail":' + encode<string>(this.text) + ',"members":{' + this.members.join(",") + "}}";
  }
}

/** A body that is not given. */
@final
class Nothing {}

/**
 * Answers 200. The body goes out as JSON, a Uint8Array as it is. An operation is run,
 * and the runner sends its result without handing it to the handler, which is fastest:
 * `ok(query("Order").limit(20))`.
 */
export function ok<T = Nothing | null>(body: T = changetype<T>(0)): Response {
  return withBody<T>(200, body);
}

/** Answers 201, with the Location of what was created if it is given. An empty one is none. */
export function created<T = Nothing | null>(body: T = changetype<T>(0), location: string = ""): Response {
  const response = withBody<T>(201, body);
  return location.length > 0 ? response.withHeader("location", location) : response;
}

/** Answers 204. */
export function noContent(): Response {
  return new Response(204);
}

/** Answers 302, or another redirect: 301, 303, 307, 308. The location is a URI reference: "/x", "orders", "?page=2" or a URL. */
export function redirect(location: string, status: i32 = 302): Response {
  if (status != 301 && status != 302 && status != 303 && status != 307 && status != 308) {
    throw new RangeError("redirect: " + status.toString() + " is none: use 301, 302, 303, 307 or 308");
  }
  return new Response(status).withHeader("location", location);
}

/** Answers 400: the caller sent something invalid. */
export function badRequest(message: string = ""): Response {
  return error(400, message);
}

/** Answers 401: the caller is not authenticated. */
export function unauthorized(message: string = ""): Response {
  return error(401, message);
}

/** Answers 403: the caller may not do this. */
export function forbidden(message: string = ""): Response {
  return error(403, message);
}

/** Answers 404. */
export function notFound(message: string = ""): Response {
  return error(404, message);
}

/** Answers any other failure, 400 to 599. */
export function error(status: i32, message: string = ""): Response {
  const response = new Response(status);
  response.text = message;
  response.failure = true;
  return response;
}

function withBody<T>(status: i32, body: T): Response {
  const response = new Response(status);
  if (isReference<T>()) {
    if (changetype<usize>(body) == 0) {
      response.text = "null";
      return response;
    }
    if (body instanceof Operation) {
      response.operation = body as Operation;
      return response;
    }
    if (body instanceof Uint8Array) {
      response.bytes = body as Uint8Array;
      return response;
    }
    if (body instanceof Nothing) return response;
  }
  response.text = encode<T>(body);
  return response;
}
