// What a handler knows and may do beside the request itself.

import { HostError, known, Mark, type Operation, result, run, runner, Whole } from "./host.ts";

const change = (op: string, args: object) => new Whole(op, args, undefined, new Mark(op));

interface Range {
  limit?: number;
  cursor?: string;
}
interface Whose {
  user?: string;
  tenant?: string;
  allTenants?: boolean;
}
interface Page {
  nextCursor: string | null;
}

/** The rows that are asked for at once when a list has no limit: the most that the host gives. */
const atOnce = 1000;

/** Lists what a page has under a name: with a limit a page, otherwise the rows of all pages. */
function list(op: string, rows: string, options: Range): Operation<unknown> {
  if (options.limit !== undefined) {
    if (typeof options.limit !== "number") throw new TypeError(`${op}: limit is a number from 1 to 1000`);
    return new Whole(op, options);
  }
  const args = { ...options, limit: atOnce };
  return new Whole(op, args, (page: Page & Record<string, unknown[]>) => {
    const all = page[rows];
    for (let cursor = page.nextCursor; cursor !== null; cursor = page.nextCursor) {
      run(op, { ...args, cursor });
      page = result();
      for (const row of page[rows]) all.push(row);
    }
    return all;
  });
}

/** Returns arguments in which an undefined user or tenant is null, which the host refuses: it must not be taken for the caller's. */
function whose<T extends Whose>(op: string, options: T, ...names: (keyof T & string)[]): T {
  const args: Record<string, unknown> = { ...known(op, options, ...names) };
  for (const name of ["user", "tenant", "allTenants", "except"]) if (name in args) args[name] ??= null;
  return args as T;
}

/** Returns the id of a session that is to end. One that is missing must not be taken for the session that calls. */
function sessionId(id: unknown): unknown {
  if (id !== undefined && id !== null) return id;
  throw new HostError("invalid", `sessions.revoke: id is ${id}: check it before, or call revoke() to end the session of this request`, "sessions.revoke");
}

const client = {
  apiKeys: {
    create: (options: { scope: string; name?: string; expiresIn?: number; metadata?: object }) => change("apiKeys.create", options),
    get: (id: string) => new Whole("apiKeys.get", { id }),
    list: (options: Range & { scope?: string } = {}) => list("apiKeys.list", "keys", known("apiKeys.list", options, "scope", "limit", "cursor")),
    rotate: (id: string, options: { gracePeriod?: number } = {}) => {
      const { gracePeriod = 0 } = known("apiKeys.rotate", options, "gracePeriod");
      if (typeof gracePeriod !== "number") throw new TypeError("apiKeys.rotate: gracePeriod is a number of seconds");
      return change("apiKeys.rotate", { id, gracePeriod });
    },
    revoke: (id: string) => change("apiKeys.revoke", { id }),
  },
  sessions: {
    create: (options: { userId: string; tenant?: string; roles?: string[]; ttl?: number }) => change("sessions.create", options),
    list: (options: Range & Whose = {}) =>
      list("sessions.list", "sessions", whose("sessions.list", options, "user", "tenant", "allTenants", "limit", "cursor")),
    revoke: (...given: [id?: string]) => change("sessions.revoke", given.length === 0 ? {} : { id: sessionId(given[0]) }),
    revokeAll: (options: Whose & { except?: string } = {}) =>
      new Whole<number>(
        "sessions.revokeAll",
        whose("sessions.revokeAll", options, "user", "tenant", "allTenants", "except"),
        ({ count }) => count,
        new Mark("sessions.revokeAll"),
      ),
  },
  webhooks: {
    verify: (options: { scheme: string; secret: string }) => new Whole("webhooks.verify", options),
  },
};

interface Facts {
  requestId: string;
  route: string;
  scheme: string;
  deadline: string;
  job?: { id: string; attempt: number; scheduledFor: string };
  auth: Record<string, unknown>;
}

class Context {
  readonly client = client;
  #facts?: Facts;

  #read(): Facts {
    if (this.#facts === undefined) {
      const text = runner.host.context();
      if (typeof text === "number") throw new Error("read the request's context");
      const facts: Facts = JSON.parse(text);
      facts.auth.roles ??= [];
      this.#facts = facts;
    }
    return this.#facts;
  }
  get requestId(): string {
    return this.#read().requestId;
  }
  get route(): string {
    return this.#read().route;
  }
  /** Of the URL that the client has used: http or https. */
  get scheme(): string {
    return this.#read().scheme;
  }
  get deadline(): Date {
    return new Date(this.#read().deadline);
  }
  get job(): { id: string; attempt: number; scheduledFor: Date } | undefined {
    const job = this.#read().job;
    return job && { ...job, scheduledFor: new Date(job.scheduledFor) };
  }
  get auth(): Record<string, unknown> {
    return this.#read().auth;
  }
  secret(name: string): Operation<string> {
    return new Whole("secret", { name }, ({ value }) => value);
  }
  keepWrites(): void {
    runner.host.keep_writes();
  }
}

const context = new Context();

export function getContext(): Context {
  runner.demand("getContext");
  return context;
}
