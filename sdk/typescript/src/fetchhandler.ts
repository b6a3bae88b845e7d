// Handlers that are functions from a Request to a Response of the Fetch Standard, as the
// frameworks for workers have them.

import { getContext } from "./context.ts";
import { refusal, runner } from "./host.ts";
import { rawQuery, type RouteRequest } from "./request.ts";

interface ExecutionContext {
  waitUntil(promise: PromiseLike<unknown>): void;
  passThroughOnException(): void;
}

type Fetch = (request: Request, env: any, context: any) => Response | Promise<Response>;

export function fetchHandler(fetch: Fetch): (req: RouteRequest) => Promise<Response> {
  if (typeof fetch !== "function") throw new TypeError("fetchHandler: the argument must be a function from a Request to a Response, such as hono.fetch");
  return async function (req) {
    const later: PromiseLike<unknown>[] = [];
    const context: ExecutionContext = {
      waitUntil: (promise) => {
        later.push(promise);
      },
      passThroughOnException() {},
    };
    const response = await fetch(requestOf(req), {}, context);
    // A promise may wait for what the body's stream gives.
    if (later.length > 0 && response instanceof Response) await runner.gather(response);
    for (const result of await Promise.allSettled(later)) {
      if (result.status === "rejected") console.error("waitUntil:", result.reason);
    }
    return response;
  };
}

/** The request at hand, as one of the Fetch Standard. */
function requestOf(req: RouteRequest): Request {
  const { method, path } = req;
  const pairs = runner.host.request_pairs(4);
  if (typeof pairs === "number") throw refusal(pairs);
  const headers: [string, string][] = [];
  let host = "localhost";
  for (let i = 0; i < pairs.length; i += 2) {
    const name = pairs[i].toLowerCase();
    if (name === "host") host = pairs[i + 1];
    headers.push([name, pairs[i + 1]]);
  }
  const query = rawQuery();
  const url = `${getContext().scheme}://${host}${path}${query === undefined ? "" : `?${query}`}`;
  const body = method === "GET" || method === "HEAD" ? null : () => req.rawBody.slice();
  return runner.received(url, method, headers, body) as Request; // the URL as it was sent: signatures are made of it
}
