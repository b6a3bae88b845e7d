// fetch (Fetch Standard, 5.6). The host sends the request, with its whole body. An answer's body that comes at once is
// there as a whole; others are read part by part.

import { addAlgorithm, type AbortSignal, removeAlgorithm } from "../abort.ts";
import { define, expose } from "../define.ts";
import { HostError, NetworkError, type Runner, unplaced, withoutPlace } from "../../host.ts";
import { dictionary } from "../idl.ts";
import { Blob, File } from "./blob.ts";
import { type Body, bytesIn, type Content, forHost, take } from "./body.ts";
import { readDataURL } from "./dataurl.ts";
import { FormData } from "./formdata.ts";
import { checked, Headers, type Pair, pairsOf, seal } from "./headers.ts";
import { incoming } from "./incoming.ts";
import { partsOf, received, Request, type RequestInit } from "./request.ts";
import { gatherBody, respond, Response, streamIn, takeBody } from "./response.ts";
import { prepareText } from "./text.ts";
import { type Part, streamOfParts } from "../streams/body.ts";

interface Init extends RequestInit {
  /** In seconds; not of the standard. */
  timeout?: number;
  /** Only to a public host that the schema does not list; not of the standard. */
  publicOnly?: boolean;
}

// How many fetches of a request the host runs at once. The others wait here, where they can
// be aborted and their timeout does not run.
const maxInFlight = 16;

export function installFetch(runner: Runner): void {
  prepareText();
  expose("Headers", Headers);
  expose("Request", Request);
  expose("Response", Response);
  expose("FormData", FormData);
  expose("Blob", Blob);
  expose("File", File);
  runner.take = (response) => takeBody(response as Response);
  runner.headers = (response) => pairsOf((response as Response).headers);
  runner.stream = (response) => streamIn(response as Response);
  runner.gather = (response) => gatherBody(response as Response);
  runner.received = received;
  runner.incoming = incoming;
  let inFlight = 0;
  const queue: (() => void)[] = [];
  const send = async (request: Request, { timeout, publicOnly }: Init): Promise<Response> => {
    const { url, method, headers: sent, redirect, source: signal, body: given } = partsOf(request);
    const body = await whole(given);
    if (inFlight >= maxInFlight) await new Promise<void>((done) => queue.push(done));
    else inFlight++;
    try {
      signal?.throwIfAborted(); // it may have been aborted in the queue
      const answer = await runner.begin("fetch", { method, url, headers: pairsOf(sent), body, timeout, redirect, publicOnly, headerBytes: true, stream: true });
      const { url: last, status, headers: fields, stream } = answer;
      const content = stream === undefined ? answer.body : arriving(runner, stream, signal);
      const headers = seal(checked(fields.map(([name, value]: Pair) => [name.toLowerCase(), value])));
      return respond({ url: withoutFragment(last ?? url), redirected: last !== undefined, status, headers, type: "basic" }, method === "HEAD" ? null : content, signal);
    } finally {
      const next = queue.shift(); // it takes over this permit
      if (next) next();
      else inFlight--;
    }
  };
  define("fetch", async function fetch(input: Request | URL | string, init?: Init): Promise<Response> {
    const request = new Request(input, init);
    const { url, source: signal, body } = partsOf(request);
    if (signal?.aborted) {
      body?.stream?.cancel(signal.reason).catch(() => {});
      throw signal.reason;
    }
    if (url.startsWith("data:")) return local(request);
    runner.demand("fetch");
    const fetched = send(request, dictionary(init, "fetch"));
    return (signal ? unlessAborted(signal, fetched) : fetched).catch((error) => Promise.reject(networkError(error)));
  });
}

const networkError = (error: unknown): unknown => (error instanceof HostError ? withoutPlace(() => new NetworkError(error)) : unplaced(error));

/** The body of an answer that the host still receives, by its number there. The signal ends it. */
function arriving(runner: Runner, stream: number, signal: AbortSignal | null): ReadableStream {
  const ended = (): void => {
    if (signal) removeAlgorithm(signal, stop);
  };
  const close = (): void => {
    ended();
    runner.host.call("fetch.close", JSON.stringify({ stream }));
  };
  const next = async (whole: boolean): Promise<Part> => {
    try {
      const { data, end = false } = await runner.begin("fetch.read", { stream, whole });
      if (end) ended();
      return { __proto__: null, bytes: bytesIn(data), end } as Part;
    } catch (error) {
      ended();
      throw networkError(error);
    }
  };
  const [body, fail] = streamOfParts((whole) => (signal ? unlessAborted(signal, next(whole)) : next(whole)), close);
  const stop = (): void => {
    close();
    fail(signal!.reason);
  };
  if (signal?.aborted) stop(); // while the host waited for the head
  else if (signal) addAlgorithm(signal, stop);
  return body;
}

/** The body of a request in the form of the operation; undefined without one. A stream is read to its end. */
async function whole(body: Body | null): Promise<Content | undefined> {
  if (body === null) return undefined;
  const content = take(body);
  if (!(content instanceof Promise)) return forHost(content);
  try {
    return forHost((await content).bytes);
  } catch (cause) {
    throw new TypeError("fetch: the stream of the body has failed", { cause });
  }
}

const withoutFragment = (url: string): string => url.replace(/#.*/s, "");

/** The response of a data: URL (Fetch Standard, 4.2). */
function local({ url, method }: Request): Response {
  const whole = withoutFragment(url);
  const data = readDataURL(whole);
  if (data === null) throw new TypeError("fetch: the data: URL is not valid");
  const headers = seal(checked([["content-type", data.type]]));
  return respond({ url: whole, statusText: "OK", headers, type: "basic" }, method === "HEAD" ? null : data.bytes);
}

/** The result of a fetch, or the reason of the signal. The request itself continues: it cannot be cancelled. */
function unlessAborted<T>(signal: AbortSignal, fetched: Promise<T>): Promise<T> {
  return new Promise((done, failed) => {
    const stop = () => failed(signal.reason);
    addAlgorithm(signal, stop);
    fetched.then(done, failed).then(() => removeAlgorithm(signal, stop));
  });
}
