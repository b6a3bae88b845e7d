// What a handler knows and may do beside the request itself.

import { Mark, type Operation, result, run, runner, Whole } from "./host.ts";

const change = (op: string, args: object) => new Whole(op, args, undefined, new Mark(op));

interface Whose {
  user?: string;
  tenant?: string;
  allTenants?: boolean;
}
interface ListedSessions {
  sessions: object[];
  nextCursor: string | null;
}

/** Arguments in which undefined is null, which the host refuses: it must not be taken for the caller. */
const whose = (options: Whose) => {
  const args: Record<string, unknown> = { ...options };
  for (const name in args) args[name] ??= null;
  return args;
};

function listSessions(options: Whose & { limit?: number; cursor?: string } = {}): Operation<object[] & { nextCursor: string | null }> {
  const op = "sessions.list";
  const args = whose(options);
  const all = args.limit == null;
  if (all) args.limit = 1000;
  return new Whole(op, args, ({ sessions, nextCursor }: ListedSessions) => {
    while (all && nextCursor !== null) {
      run(op, { ...args, cursor: nextCursor });
      const page: ListedSessions = result();
      for (const one of page.sessions) sessions.push(one);
      nextCursor = page.nextCursor;
    }
    return Object.assign(sessions, { nextCursor });
  });
}

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
    list: listSessions,
    revoke: (id?: string) => change("sessions.revoke", { id }),
    revokeAll: (options: Whose & { except?: string } = {}) =>
      new Whole<number>("sessions.revokeAll", whose(options), ({ count }) => count, new Mark("sessions.revokeAll")),
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
