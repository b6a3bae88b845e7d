// What a handler knows and may do beside the request itself.

import { keep_writes } from "./abi";
import { call, writeLog } from "./host";
import { JSON } from "json-as";
import { parseJSON, fields, Fields, member } from "./json";
import { Job, Jobs } from "./jobs";
import { Source, text } from "./memory";
import { Sessions } from "./sessions";
import { Webhooks } from "./webhooks";

/** The caller, as the runner authenticated it; the headers do not contain it. Fields that a caller does not have are empty. */
export class Auth {
  constructor(private json: string) {}

  private text(name: string): string {
    return parseJSON<string>(member(this.json, name));
  }

  /** "anonymous", "session", "apiKey" or, for an operator who runs a function, "system". */
  get kind(): string {
    return this.text("kind");
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
  get keyId(): string {
    return this.text("keyId");
  }
  get scope(): string {
    return this.text("scope");
  }
  get capability(): string {
    return this.text("capability");
  }
  /** The metadata of the key, as a class with `@json` or JSON.Obj. */
  metadata<T>(): T {
    return parseJSON<T>(member(this.json, "metadata"));
  }
  /** What the caller's JWT claims, as a class with `@json` or JSON.Obj; null or an empty T of every other caller. */
  claims<T>(): T {
    return parseJSON<T>(member(this.json, "claims"));
  }
}

/** An API key, as its managers see it. Times are RFC 3339; what it does not have is empty. */
export class ApiKey {
  /** @param json the whole key, as the runner gives it */
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
  get scope(): string {
    return this.text("scope");
  }
  get capability(): string {
    return this.text("capability");
  }
  get name(): string {
    return this.text("name");
  }
  /** "active", "rotating", "disabled", "expired" or "revoked". */
  get status(): string {
    return this.text("status");
  }
  get hint(): string {
    return this.text("hint");
  }
  get tenant(): string {
    return this.text("tenant");
  }
  /** The id of the user or the key that created it; empty for a key of an operator. */
  get owner(): string {
    return this.text("owner");
  }
  /** "user" or "key": what `owner` is the id of. */
  get ownerKind(): string {
    return this.text("ownerKind");
  }
  get createdAt(): string {
    return this.text("createdAt");
  }
  get expiresAt(): string {
    return this.text("expiresAt");
  }
  get rotatedAt(): string {
    return this.text("rotatedAt");
  }
  get previousTokenExpiresAt(): string {
    return this.text("previousTokenExpiresAt");
  }
  get revokedAt(): string {
    return this.text("revokedAt");
  }
  get lastUsedAt(): string {
    return this.text("lastUsedAt");
  }
  /** The token, of a key that was made or rotated just now: nothing shows it again. */
  get token(): string {
    return this.text("token");
  }
  metadata<T>(): T {
    return parseJSON<T>(member(this.json, "metadata"));
  }
}

/** One page of a list of keys; nextCursor is empty on the last one. */
export class ApiKeyPage {
  /** @param json the whole page, as the runner gives it */
  constructor(readonly json: string) {}

  /** The JSON in an answer. */
  toJSON(): string {
    return this.json;
  }

  get keys(): ApiKey[] {
    const all = parseJSON<JSON.Raw[]>(member(this.json, "keys"));
    const keys: ApiKey[] = [];
    for (let i = 0; i < all.length; i++) keys.push(new ApiKey(all[i].data));
    return keys;
  }
  get nextCursor(): string {
    return parseJSON<string>(member(this.json, "nextCursor"));
  }
}

/** A key to be made: `new ApiKeyOptions("partner_sync").named("Acme").expiring(3600)`. */
export class ApiKeyOptions {
  readonly args: Fields = fields();

  constructor(scope: string) {
    this.args.set("scope", scope);
  }
  named(name: string): ApiKeyOptions {
    this.args.set("name", name);
    return this;
  }
  /** Its lifetime in seconds; without it the schema's default. */
  expiring(seconds: i64): ApiKeyOptions {
    this.args.set("expiresIn", seconds);
    return this;
  }
  /** A JSON object of at most 16 KiB. */
  with<T>(metadata: T): ApiKeyOptions {
    this.args.set<T>("metadata", metadata);
    return this;
  }
}

/** Narrows a list of keys: `new ApiKeyFilter("partner_sync", 20)`. Without a limit (1 to 1000) the list has all. */
export class ApiKeyFilter {
  constructor(
    public scope: string = "",
    public limit: i32 = 0,
    public cursor: string = "",
  ) {}
}

/**
 * The keys that the caller reaches: those that it created, as a user or as a key. A key also reaches itself.
 * Where `@manage` in the schema is true, the caller reaches all keys of the scope in its tenant. Every other
 * key is not_found.
 */
export class ApiKeys {
  /** Makes a key; the answer holds its token. */
  create(options: ApiKeyOptions): ApiKey {
    return key("apiKeys.create", options.args);
  }
  get(id: string): ApiKey {
    return key("apiKeys.get", fields().set("id", id));
  }
  /** Keys without tokens: at most `limit`, or without a limit all, as one page that is the last. */
  list(filter: ApiKeyFilter = new ApiKeyFilter()): ApiKeyPage {
    if (filter.limit != 0) return pageOfKeys(filter, filter.limit, filter.cursor);
    let keys = "";
    let cursor = filter.cursor;
    do {
      const page = pageOfKeys(filter, 1000, cursor);
      const list = member(page.json, "keys"); // "[…]"
      if (list.length > 2) keys += (keys.length > 0 ? "," : "") + list.slice(1, list.length - 1);
      cursor = page.nextCursor;
    } while (cursor.length > 0);
    return new ApiKeyPage(`{"keys":[${keys}],"nextCursor":null}`);
  }
  /**
   * Gives the key, of a scope that the caller may issue, a new token. Each older one ends after the grace period,
   * in seconds, or at its own end if that is sooner; without a grace period all end at once. With a grace period a
   * key has at most 5 live tokens: a rotation beyond that is a conflict.
   */
  rotate(id: string, gracePeriod: i64 = 0): ApiKey {
    return key("apiKeys.rotate", fields().set("id", id).set("gracePeriod", gracePeriod));
  }
  /** Ends a key for good. */
  revoke(id: string): ApiKey {
    return key("apiKeys.revoke", fields().set("id", id));
  }
}

function pageOfKeys(filter: ApiKeyFilter, limit: i32, cursor: string): ApiKeyPage {
  const args = fields().set("limit", limit);
  if (filter.scope.length > 0) args.set("scope", filter.scope);
  if (cursor.length > 0) args.set("cursor", cursor);
  return new ApiKeyPage(call("apiKeys.list", args.toString()).json);
}

function key(op: string, args: Fields): ApiKey {
  return new ApiKey(call(op, args.toString()).json);
}

/** The services of the runner, with the caller's authority. */
export class Client {
  readonly apiKeys: ApiKeys = new ApiKeys();
  readonly sessions: Sessions = new Sessions();
  readonly webhooks: Webhooks = new Webhooks();
  readonly jobs: Jobs = new Jobs();
}

/** What a handler knows and may do beside the request itself. */
export class Context {
  readonly client: Client = new Client();
  private json: string = "";

  private member(name: string): string {
    if (this.json.length == 0) {
      const read = text(Source.Context);
      if (read === null) throw new Error("the context belongs to a request, and there is none");
      this.json = read;
    }
    return member(this.json, name);
  }

  /** The id that stands on the answer and in the log. */
  get requestId(): string {
    return parseJSON<string>(this.member("requestId"));
  }
  /** The template of the matched route: `/v1/orders/:id`. */
  get route(): string {
    return parseJSON<string>(this.member("route"));
  }
  /** When the request's time is over. */
  get deadline(): Date {
    return Date.fromString(parseJSON<string>(this.member("deadline")));
  }
  /** The job that the handler runs for; null for a request. */
  get job(): Job | null {
    const json = this.member("job");
    return json.length > 0 ? new Job(json) : null;
  }
  get auth(): Auth {
    return new Auth(this.member("auth"));
  }

  /** The value of a secret that the schema declares. */
  secret(name: string): string {
    return parseJSON<string>(call("secret", fields().set("name", name).toString()).member("value"));
  }
  /** The value of a variable that the schema declares: a number for an int, seconds for a duration, a bool, and a string for the others. */
  var<T>(name: string): T {
    return parseJSON<T>(call("var", fields().set("name", name).toString()).member("value"));
  }
  /** Commits the writes of this request with any status; by default 400 and above discard them. */
  keepWrites(): void {
    keep_writes();
  }

  // Lines in the server's log, under the request's id. Bounded in number and size for each request.
  debug(line: string): void {
    writeLog(0, line);
  }
  info(line: string): void {
    writeLog(1, line);
  }
  warn(line: string): void {
    writeLog(2, line);
  }
  error(line: string): void {
    writeLog(3, line);
  }
}

const context = new Context();

/** The context of the request at hand. */
export function getContext(): Context {
  return context;
}
