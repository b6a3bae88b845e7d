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
  if (typeof fetch !== "function") throw new TypeError("fetchHandler: it takes a function from a Request to a Response, as hono.fetch");
  return async function (req) {
    const later: PromiseLike<unknown>[] = [];
    const context: ExecutionContext = {
      waitUntil: (promise) => {
        later.push(promise);
      },
      passThroughOnException() {},
    };
    const response = await fetch(requestOf(req), {}, context);
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
  const headers = new Headers();
  for (let i = 0; i < pairs.length; i += 2) headers.append(pairs[i], pairs[i + 1]);
  const query = rawQuery();
  const url = `${getContext().scheme}://${headers.get("host") ?? "localhost"}${path}${query === undefined ? "" : `?${query}`}`;
  const request = new Request(url, { method, headers, body: method === "GET" || method === "HEAD" ? undefined : req.rawBody });
  (request as { url: string }).url = url; // as it was sent: signatures are made of it
  return request;
}
