// Work for after the commit.

import { call } from "./host";
import { fields, Fields, parseJSON, member } from "./json";

/** When a job runs, and under which key: `new JobOptions().delay(60).key("k")`. */
export class JobOptions {
  readonly args: Fields = fields();

  /** How long it waits, in seconds. */
  delay(seconds: f64): JobOptions {
    if (seconds == Math.floor(seconds)) this.args.set("delay", <i64>seconds);
    else this.args.set("delay", seconds);
    return this;
  }
  /** When it runs, in RFC 3339; a time that has passed means at once. Not together with a delay. */
  at(time: string): JobOptions {
    this.args.set("at", time);
    return this;
  }
  /** There is one live job of this name and key in a tenant: while it waits or runs, it is given instead of a new one. */
  key(key: string): JobOptions {
    this.args.set("key", key);
    return this;
  }
}

/** A job that was enqueued. */
export class EnqueuedJob {
  constructor(
    readonly id: string,
    /** False if a live job with the key was there. */
    readonly created: bool,
  ) {}
}

/** Enqueues work for after the commit: jobs that the schema declares. */
export class Jobs {
  /**
   * Enqueues a job in the transaction of the request: it runs if and only if that commits.
   * Its parameters, an object, are checked at once; wrong ones are invalid.
   */
  enqueue<T>(name: string, params: T, options: JobOptions = new JobOptions()): EnqueuedJob {
    const args = options.args;
    args.set("name", name);
    args.set<T>("params", params);
    const made = call("jobs.enqueue", args.toString());
    return new EnqueuedJob(parseJSON<string>(made.member("id")), parseJSON<bool>(made.member("created")));
  }
  /**
   * Ends a job of the caller's tenant: it does not run any more, and what a run of it has written is
   * not committed. False if it has ended before; an unknown id is not_found.
   */
  cancel(id: string): bool {
    return parseJSON<bool>(call("jobs.cancel", fields().set("id", id).toString()).member("cancelled"));
  }
}

/** The job that a handler runs for. */
export class Job {
  constructor(private json: string) {}

  /** The idempotency key of what may not happen twice: send it along. */
  get id(): string {
    return parseJSON<string>(member(this.json, "id"));
  }
  /** Counts the runs from 1. */
  get attempt(): i32 {
    return parseJSON<i32>(member(this.json, "attempt"));
  }
  /** When the job was to run first, in RFC 3339. */
  get scheduledFor(): string {
    return parseJSON<string>(member(this.json, "scheduledFor"));
  }
}
