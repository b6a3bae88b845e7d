// Sessions of the app's users.

import { call } from "./host";
import { fields, Fields, parseJSON } from "./json";

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

/** Opens and ends sessions, on routes that say `mints: session`; elsewhere it is denied. */
export class Sessions {
  /**
   * Signs a user in: the answer sets the cookie of a new session, when it commits. The
   * session that the caller had ends.
   */
  create(options: SessionOptions): Session {
    const made = call("sessions.create", options.args.toString());
    return new Session(parseJSON<string>(made.member("id")), parseJSON<string>(made.member("expiresAt")));
  }
  /** Ends a session of the caller's; without an id the one that calls, whose cookie the answer takes back. */
  revoke(id: string = ""): void {
    const args = fields();
    if (id.length > 0) args.set("id", id);
    call("sessions.revoke", args.toString());
  }
}
