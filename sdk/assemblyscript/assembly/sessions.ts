// Sessions of the app's users.

import { JSON } from "json-as";
import { call } from "./host";
import { fields, Fields, member, parseJSON } from "./json";

/** A session to be opened: `new SessionOptions("ada").tenant("acme").roles(["admin"])`. */
export class SessionOptions {
  readonly args: Fields = fields();

  /** @param userId whom the session is of */
  constructor(userId: string) {
    this.args.set("userId", userId);
  }
  tenant(tenant: string): SessionOptions {
    this.args.set("tenant", tenant);
    return this;
  }
  roles(roles: string[]): SessionOptions {
    this.args.set("roles", roles);
    return this;
  }
  /** Its lifetime in seconds, at most the schema's `absolute`, which is what it is without. */
  ttl(seconds: i64): SessionOptions {
    this.args.set("ttl", seconds);
    return this;
  }
}

/** A session that was opened. Its cookie goes to the browser; no handler sees it. */
export class Session {
  constructor(
    readonly id: string,
    /** RFC 3339. */
    readonly expiresAt: string,
  ) {}
}

/** A session that has not ended. Times are RFC 3339; what it does not have is empty. */
export class LiveSession {
  /** @param json the whole session, as the runner gives it */
  constructor(readonly json: string) {}

  /** The JSON in an answer. */
  toJSON(): string {
    return this.json;
  }

  private text(name: string): string {
    return parseJSON<string>(member(this.json, name));
  }

  get id(): string {
    return this.text("id");
  }
  get userId(): string {
    return this.text("userId");
  }
  get tenant(): string {
    return this.text("tenant");
  }
  get roles(): string[] {
    return parseJSON<string[]>(member(this.json, "roles"));
  }
  get createdAt(): string {
    return this.text("createdAt");
  }
  get lastSeenAt(): string {
    return this.text("lastSeenAt");
  }
  get expiresAt(): string {
    return this.text("expiresAt");
  }
  /** Whether it is the session of this request. */
  get current(): bool {
    return member(this.json, "current") == "true";
  }
}

/**
 * Says whose sessions are listed or ended: `new SessionFilter().user("ada")`. Without a call
 * of `user` those of the caller, without `tenant` those of the caller's; an empty user is an error.
 */
export class SessionFilter {
  private args: Fields = fields();
  private pageSize: i32 = 0;
  private from: string = "";

  user(id: string): SessionFilter {
    this.args.set("user", id);
    return this;
  }
  tenant(tenant: string): SessionFilter {
    this.args.set("tenant", tenant);
    return this;
  }
  /** Those of the user in every tenant. */
  allTenants(): SessionFilter {
    this.args.set("allTenants", true);
    return this;
  }
  /** To end all but one: the id of a session, or "current" for the session of this request. */
  except(id: string): SessionFilter {
    this.args.set("except", id);
    return this;
  }
  /** To list at most so many. */
  limit(limit: i32): SessionFilter {
    this.pageSize = limit;
    return this;
  }
  /** To list those behind the page before. */
  cursor(cursor: string): SessionFilter {
    this.from = cursor;
    return this;
  }

  /** Lists them: all, or one page. */
  list(): SessionPage {
    const sessions: LiveSession[] = [];
    let from = this.from;
    do {
      let args = this.args.with("limit", this.pageSize == 0 ? 1000 : this.pageSize);
      if (from.length > 0) args = args.with("cursor", from);
      const page = call("sessions.list", args.toString());
      const all = parseJSON<JSON.Raw[]>(page.member("sessions"));
      for (let i = 0; i < all.length; i++) sessions.push(new LiveSession(all[i].data));
      from = parseJSON<string>(page.member("nextCursor"));
    } while (this.pageSize == 0 && from.length > 0);
    return new SessionPage(sessions, from);
  }
  /** Ends them, and returns their number. */
  revokeAll(): i32 {
    return parseJSON<i32>(call("sessions.revokeAll", this.args.toString()).member("count"));
  }
}

/** A list of sessions, oldest first; nextCursor is empty unless a limit cut it. */
export class SessionPage {
  constructor(
    readonly sessions: LiveSession[],
    readonly nextCursor: string,
  ) {}
}

/**
 * Opens, lists and ends sessions. A user reaches its own sessions in its tenant. A caller for whom
 * `@manage` in the schema's `session cookie` is true reaches those of its tenant. A route with
 * `mints: session` reaches those of every user that it names.
 */
export class Sessions {
  /**
   * Signs a user in, on a route that says `mints: session`; elsewhere it is denied. The answer
   * sets the cookie of a new session, when it commits. The session that the caller had ends.
   */
  create(options: SessionOptions): Session {
    const made = call("sessions.create", options.args.toString());
    return new Session(parseJSON<string>(made.member("id")), parseJSON<string>(made.member("expiresAt")));
  }
  /** The live sessions of a user: all of them, or one page. */
  list(filter: SessionFilter = new SessionFilter()): SessionPage {
    return filter.list();
  }
  /** Ends all sessions of a user, and returns their number. */
  revokeAll(filter: SessionFilter = new SessionFilter()): i32 {
    return filter.revokeAll();
  }
  /**
   * Ends a session; without an id the session of this request, whose cookie the answer clears. An
   * empty id is an error with the code `invalid`.
   */
  revoke(id: string = "current"): void {
    const args = fields();
    if (id != "current") args.set("id", id);
    call("sessions.revoke", args.toString());
  }
}
