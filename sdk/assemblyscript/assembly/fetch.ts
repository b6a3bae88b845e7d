// Requests to other services, at the origins that the schema declares.

import { call_start, call_take } from "./abi";
import { keepLast, Outcome, settled } from "./host";
import { fields, parseJSON } from "./json";
import { octets, put } from "./octets";
import { Operation } from "./query";

/**
 * A request to another service: `fetch(url).method("POST").body(text).send()`. Its
 * origin is one that the schema declares with `outbound`. A handler that has fetched is
 * not run again when its transaction conflicts, the caller gets 409: so write first,
 * and fetch last.
 */
export class Fetch extends Operation {
  private verb: string = "";
  private headers: string[][] = [];
  private text: string | null = null;
  private bytes: Uint8Array | null = null;
  private seconds: f64 = 0;
  private way: string = "";
  private onlyPublic: bool = false;

  /** @param url an absolute one */
  constructor(private url: string) {
    super();
  }

  protected get op(): string {
    return "fetch";
  }

  get args(): string {
    const args = fields().set("url", this.url);
    if (this.verb.length > 0) args.set("method", this.verb);
    if (this.headers.length > 0) args.set("headers", this.headers);
    const text = this.text;
    if (text !== null) args.set<string>("body", text);
    const bytes = this.bytes;
    if (bytes !== null) put<Uint8Array>(args, "body", bytes);
    if (this.seconds != 0) args.set("timeout", this.seconds);
    if (this.way.length > 0) args.set("redirect", this.way);
    if (this.onlyPublic) args.set("publicOnly", true);
    return args.toString();
  }

  /** The method; without it GET. */
  method(method: string): Fetch {
    this.verb = method;
    return this;
  }

  /** One more header line. */
  header(name: string, value: string): Fetch {
    this.headers.push([name, value]);
    return this;
  }

  /** The body: a string or a Uint8Array. */
  body<T>(body: T): Fetch {
    if (body instanceof Uint8Array) this.bytes = body as Uint8Array;
    else this.text = body as string;
    return this;
  }

  /** How long it may take, in seconds; without it 10, at most 60. */
  timeout(seconds: f64): Fetch {
    this.seconds = seconds;
    return this;
  }

  /**
   * What becomes of an answer that redirects: "follow", as without it, "manual", which
   * keeps the answer, or "error", which fails with `unavailable`.
   */
  redirect(way: string): Fetch {
    this.way = way;
    return this;
  }

  /** Requires a public host that the schema does not list. Call it for URLs that clients send. */
  publicOnly(): Fetch {
    this.onlyPublic = true;
    return this;
  }

  /** Sends it and returns the answer, with any status. */
  send(): FetchResponse {
    return new FetchResponse(this.run());
  }

  /** The answer, when it was sent before: by `attempt` or fetchAll. */
  get response(): FetchResponse {
    return new FetchResponse(this.outcome);
  }
}

/** An answer of another service. */
export class FetchResponse {
  constructor(private outcome: Outcome) {}

  get status(): i32 {
    return parseJSON<i32>(this.outcome.member("status"));
  }

  /** The first header of that name, which is in lower case; empty when there is none. */
  header(name: string): string {
    const all = this.headers;
    for (let i = 0; i < all.length; i++) if (all[i][0] == name) return all[i][1];
    return "";
  }

  /** All header lines: names, which are in lower case, with their values. */
  get headers(): string[][] {
    return parseJSON<string[][]>(this.outcome.member("headers"));
  }

  get body(): Uint8Array {
    return octets(this.outcome.member("body"));
  }

  text(): string {
    const body = this.body;
    return String.UTF8.decodeUnsafe(body.dataStart, body.length);
  }
}

/** Begins a request. */
export function fetch(url: string): Fetch {
  return new Fetch(url);
}

/**
 * Sends requests that are under way together, and waits for all. What became of each,
 * its `outcome.error` and its `response` tell.
 */
export function fetchAll(requests: Fetch[]): void {
  keepLast();
  const op = String.UTF8.encode("fetch");
  const tickets = new Array<i32>(requests.length);
  for (let i = 0; i < requests.length; i++) {
    const args = String.UTF8.encode(requests[i].args);
    tickets[i] = call_start(changetype<usize>(op), op.byteLength, changetype<usize>(args), args.byteLength);
    if (tickets[i] < 0) requests[i].settle(settled("fetch", tickets[i]));
  }
  for (let i = 0; i < requests.length; i++) {
    if (tickets[i] < 0) continue;
    keepLast();
    requests[i].settle(settled("fetch", call_take(tickets[i])));
  }
}
