// What a handler knows and may do beside the request itself.

import { Mark, type Operation, runner, Whole } from "./host.ts";

const change = (op: string, args: object) => new Whole(op, args, undefined, new Mark(op));

const client = {
  apiKeys: {
    create: (options: { scope: string; name?: string; expiresIn?: number; metadata?: object }) => change("apiKeys.create", options),
    get: (id: string) => new Whole("apiKeys.get", { id }),
    list: (options: { scope?: string; limit?: number; cursor?: string } = {}) =>
      new Whole("apiKeys.list", options, ({ keys, nextCursor }) => Object.assign(keys, { nextCursor })),
    rotate: (id: string, options: { gracePeriod?: number } = {}) => change("apiKeys.rotate", { id, gracePeriod: options.gracePeriod ?? 0 }),
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
