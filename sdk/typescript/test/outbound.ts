// The services that handlers send requests to, played by the test.

import { fromBase64, toBase64 } from "../src/web/encoding.ts";
import { HostError } from "../src/host.ts";
import { Failure, type Rule, type Scope, scope, tell, turn } from "./host.ts";

interface Fetch {
  id: unknown;
  method: string;
  url: string;
  headers: [string, string][];
  body: string | null;
}

let pumping: number | undefined; // the turn in which requests are taken
let receiver: Scope; // the test or the hook that ran last

export const isPumping = () => pumping === turn;

/** Takes the requests of handlers, if something was registered that answers them. */
export function startPump(of: Scope): void {
  receiver = of;
  if (isPumping()) return;
  for (let at: Scope | undefined = of; at; at = at.parent) {
    if (at.rules.length === 0) continue;
    pumping = turn;
    void pump(turn);
    return;
  }
}

async function pump(turn: number): Promise<void> {
  for (;;) {
    const fetch: Fetch | null = await tell("fetches", { turn });
    if (fetch === null) return; // the turn is over
    void answer(turn, fetch);
  }
}

function rule(of: Scope, url: string): Rule | undefined {
  for (let at: Scope | undefined = of; at; at = at.parent) {
    const found = at.rules.findLast((rule) => rule.matches(url));
    if (found) return found;
  }
}

async function answer(turn: number, { id, method, url, headers, body }: Fetch): Promise<void> {
  const here = receiver;
  const title = `${method} ${url}`;
  try {
    const request = new Request(url, { method, headers, body: body === null ? undefined : (fromBase64(body) as BodyInit) });
    here.requests.push(request.clone());
    const found = rule(here, url);
    if (!found) {
      await tell("answer", { turn, id, unexpected: true });
      return;
    }
    const response = await found.answer(request);
    if (!(response instanceof Response)) throw new Failure(`outbound.on: the function for ${title} returned no Response: return Response.json({ … })`);
    const content = await response.bytes();
    await tell("answer", { turn, id, status: response.status, headers: [...response.headers], body: toBase64(content) });
  } catch (error) {
    if (error instanceof HostError) here.failures.push(error); // the answer was refused
    else if (error instanceof Failure) here.failures.push(error);
    await tell("answer", { turn, id, error: error instanceof Error ? error.message : String(error) }).catch(() => {});
  }
}

/** Whether a URL is one, or below it. */
function isBelow(url: string, prefix: string): boolean {
  return url.startsWith(prefix) && (url.length === prefix.length || prefix.endsWith("/") || "/?#".includes(url[prefix.length]));
}

export const outbound = {
  on(which: string | URL | RegExp, does: (request: Request) => unknown): void {
    const here = scope("outbound.on");
    if (typeof does !== "function") throw new TypeError("outbound.on: the second argument is a function from a Request to a Response");
    let matches: Rule["matches"];
    if (which instanceof RegExp) {
      const expression = new RegExp(which.source, which.flags.replace(/[gy]/g, ""));
      matches = (url) => expression.test(url);
    } else {
      const prefix = String(which);
      if (!/^https?:\/\//.test(prefix)) throw new TypeError(`outbound.on: ${JSON.stringify(prefix)} is not a URL: begin with https://, or use a RegExp`);
      matches = (url) => isBelow(url, prefix);
    }
    here.rules.push({ matches, answer: does });
    startPump(here);
  },
  /** What handlers have sent in this test. */
  get requests(): Request[] {
    return scope("outbound.requests").requests;
  },
};
