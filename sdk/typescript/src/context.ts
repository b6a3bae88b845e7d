// What a handler knows and may do beside the request itself.

import { known, Mark, type Operation, present, result, run, runner, Whole } from "./host.ts";

const change = (op: string, args: object) => new Whole(op, present(args), undefined, new Mark(op));

interface Filter {
  scope?: string;
  limit?: number;
  cursor?: string;
}

/** The keys that are asked for at once when a list has no limit: the most that the host gives. */
const atOnce = 1000;

/** Returns the keys of a page and of all that follow. */
function rest(filter: Filter, page: { keys: unknown[]; nextCursor: string | null }): unknown[] {
  const all = page.keys;
  for (let cursor = page.nextCursor; cursor !== null; cursor = page.nextCursor) {
    run("apiKeys.list", { ...filter, limit: atOnce, cursor });
    page = result();
    for (const key of page.keys) all.push(key);
  }
  return all;
}

const client = {
  apiKeys: {
    create: (options: { scope: string; name?: string; expiresIn?: number; metadata?: object }) => change("apiKeys.create", options),
    get: (id: string) => new Whole("apiKeys.get", { id }),
    list: (options: Filter = {}) => {
      const filter = known("apiKeys.list", options, "scope", "limit", "cursor");
      if (filter.limit === undefined) return new Whole("apiKeys.list", { ...filter, limit: atOnce }, (page) => rest(filter, page));
      if (typeof filter.limit !== "number") throw new TypeError("apiKeys.list: limit is a number from 1 to 1000");
      return new Whole("apiKeys.list", present(filter as Record<string, unknown>));
    },
    rotate: (id: string, options: { gracePeriod?: number } = {}) => {
      const { gracePeriod = 0 } = known("apiKeys.rotate", options, "gracePeriod");
      if (typeof gracePeriod !== "number") throw new TypeError("apiKeys.rotate: gracePeriod is a number of seconds");
      return change("apiKeys.rotate", { id, gracePeriod });
    },
    revoke: (id: string) => change("apiKeys.revoke", { id }),
  },
  sessions: {
    create: (options: { userId: string; tenant?: string; roles?: string[]; ttl?: number }) => change("sessions.create", options),
    revoke: (id?: string) => change("sessions.revoke", { id }),
  },
  webhooks: {
    verify: (options: { scheme: string; secret: string }) => new Whole("webhooks.verify", options),
  },
};

interface Facts {
  requestId: string;
  route: string;
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
