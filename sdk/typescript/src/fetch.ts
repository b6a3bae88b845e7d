// fetch (Fetch Standard), for what handlers do with it: a request with a body that is
// there, and an answer that is read when it has come whole.

import { AbortController, AbortSignal } from "./abort.ts";
import { define } from "./console.ts";
import { Blob, File, FormData } from "./form.ts";
import { Headers } from "./headers.ts";
import { HostError, placeless, type Runner } from "./host.ts";
import { forHost, Request, type RequestInit, respond, Response, take } from "./message.ts";

interface Init extends RequestInit {
  /** In seconds; not of the standard. */
  timeout?: number;
  /** Only to a public host that the schema does not list; not of the standard. */
  publicOnly?: boolean;
}

const known = ["method", "headers", "body", "redirect", "signal", "timeout", "publicOnly"];

// The host sends so many fetches of a request at once. The others wait here, where they can
// be aborted and their timeout does not run.
const mostFlying = 16;

export function installFetch(runner: Runner): void {
  define("Headers", Headers);
  define("Request", Request);
  define("Response", Response);
  define("FormData", FormData);
  define("Blob", Blob);
  define("File", File);
  runner.take = (response) => take(response as Response);
  define("AbortController", AbortController);
  define("AbortSignal", AbortSignal);
  let flying = 0;
  const line: (() => void)[] = [];
  define("fetch", async function fetch(input: unknown, init: Init = {}): Promise<Response> {
    runner.demand("fetch");
    for (const [name, value] of Object.entries(init)) {
      if (value !== undefined && !known.includes(name)) throw new TypeError(`fetch: unknown option ${name}: the options are ${known.join(", ")}`);
    }
    // What is not given is the host's choice, as for every language.
    const given: Init = input instanceof Request ? { method: input.method, redirect: input.redirect, signal: input.signal, ...init } : init;
    const { redirect, signal, timeout, publicOnly } = given;
    const request = new Request(input as Request, init);
    const { url, headers } = request;
    const method = given.method === undefined ? undefined : request.method;
    signal?.throwIfAborted();
    const body = forHost(take(request));
    const fly = async (): Promise<Response> => {
      if (flying >= mostFlying) await new Promise<void>((done) => line.push(done));
      else flying++;
      try {
        signal?.throwIfAborted(); // while it waited
        const answer = await runner.begin("fetch", { method, url, headers: [...headers], body, timeout, redirect, publicOnly, headerBytes: true });
        return respond(answer.url ?? url, answer.url !== undefined, answer.status, answer.headers, answer.body);
      } finally {
        const next = line.shift(); // which goes on in its place
        if (next) next();
        else flying--;
      }
    };
    const fetched = signal ? unlessAborted(signal, fly()) : fly();
    return fetched.catch((error) => Promise.reject(error instanceof HostError ? placeless(error) : error));
  });
}

/** The result of a fetch, or the reason of the signal. The request itself continues: it cannot be cancelled. */
function unlessAborted<T>(signal: AbortSignal, fetched: Promise<T>): Promise<T> {
  return new Promise((done, failed) => {
    const stop = () => failed(signal.reason);
    signal.addEventListener("abort", stop);
    fetched.then(done, failed).then(() => signal.removeEventListener("abort", stop));
  });
}
