/**
 * The SDK for handlers written in TypeScript.
 *
 * A file in the app's directory `handlers` exports one function for each handler, named
 * as in the schema (`POST /orders -> createOrder`):
 *
 * ```ts
 * import { badRequest, created, insert, type RouteRequest } from "@runner/sdk";
 *
 * interface NewOrder { item?: string; qty?: number }
 *
 * export async function createOrder(req: RouteRequest) {
 *   const { item, qty = 1 } = req.body<NewOrder>();
 *   if (!item) return badRequest("missing field: item");
 *   return created(await insert("Order", { item, qty }));
 * }
 * ```
 *
 * `runner build` makes a module of all of them. What stands outside of functions is
 * evaluated then, once: every request begins with what it left, and nothing that one
 * request leaves is seen by another. Operations, randomness and whatever else belongs
 * to a request are for handlers alone.
 *
 * Rows are read and changed with the caller's authority. All that one request reads
 * and writes is one transaction: it commits when the handler answers below 400; when
 * another request got in between, the handler runs again, from a fresh start.
 */
declare module "@runner/sdk" {
  /** The request at hand. */
  export interface RouteRequest {
    /** Path parameters by name, percent-decoded; those of the route are never empty. */
    readonly params: Readonly<Record<string, string>>;
    /** Query values by name; of several the first. One that was not sent is `undefined`. */
    readonly query: Readonly<Record<string, string | undefined>>;
    /** All query values by name, in order. */
    readonly queryAll: Readonly<Record<string, readonly string[] | undefined>>;
    /** The query as it was sent, without its "?". Signatures of URLs are made of it. */
    readonly rawQuery: string;
    /** Headers by name in lower case; repeated lines are joined with ", ". Credentials that the runner has checked are not among them. */
    readonly headers: Readonly<Record<string, string | undefined>>;
    readonly method: string;
    /** The raw path, without the query. */
    readonly path: string;
    /** The exact body, for signatures. As text it is UTF-8: `${req.rawBody}`, `JSON.parse(`${req.rawBody}`)`, `req.rawBody.toString("hex")`. */
    readonly rawBody: Uint8Array & {
      toString(encoding?: "utf8" | "utf-8" | "hex" | "base64" | "base64url" | "latin1" | "binary" | "ascii", start?: number, end?: number): string;
    };
    /** The body as text. */
    text(): string;
    /**
     * The body as a form, `multipart/form-data` or `application/x-www-form-urlencoded`. One
     * that is not such a form answers 400 `bad_request`, unless it is caught.
     */
    formData(): Promise<FormData>;
    /**
     * The JSON body. An empty one and `null` give `{}`, so that a check for a field
     * finds it missing. One that is not JSON is a {@link BodyError}, which answers 400
     * `invalid_json` unless it is caught. That it fits `T` is not checked here: see
     * `input:` in the schema.
     */
    body<T = any>(): T;
  }

  /** A handler's answer, made by one of the helpers. */
  export interface Response {
    readonly status: number;
    /**
     * The answer with one more header line. A header that the runner does not let pass
     * makes the answer 500 `handler_failed`, and the log says which.
     */
    withHeader(name: string, value: string): Response;
  }

  /**
   * A function over a request. It returns a response, or a promise of one; another
   * value is that of {@link ok}. A `Response` of the Fetch Standard is sent with its status, its
   * headers and its body; of one that `fetch` gave, only the content type of the headers. What it throws becomes an answer too: an answer is that itself, a
   * failed operation on rows, keys, sessions or webhooks has its own status (`not_found`
   * 404, `denied` 403, `conflict` 409, `unavailable` 503), and anything else is 500, with
   * the place in the server's log.
   */
  export type Handler = (req: RouteRequest) => unknown;

  /**
   * Answers 200. The body is sent as JSON, an `ArrayBuffer` or a view of one unchanged. A
   * string is sent unchanged too if `withHeader` sets a content type other than JSON. What
   * JSON has no form for, as a `Map`, makes the answer 500. An operation that was not
   * awaited is run, and the runner sends its result without handing it to the handler,
   * which is fastest: `return ok(query("Order").limit(20))`.
   */
  export function ok(body?: unknown): Response;
  /** Answers 201, with the `Location` of what was created if it is given. An empty one is none. */
  export function created(body?: unknown, location?: string): Response;
  /** Answers with plain text: `text/plain; charset=utf-8`. */
  export function text(body: string, status?: number): Response;
  /** Answers with a page: `text/html; charset=utf-8`. Escape the values that callers have sent. */
  export function html(body: string, status?: number): Response;
  /**
   * A handler of a function from a `Request` to a `Response`, as frameworks for workers have
   * them. With Hono: `export const app = fetchHandler(hono.fetch)`, behind a route that ends in
   * `*rest`. The second argument of the function is an empty object, the third has
   * `waitUntil`, which delays the answer until its promises are settled.
   */
  export function fetchHandler(
    fetch: (request: Request, env: any, context: any) => globalThis.Response | Promise<globalThis.Response>,
  ): (req: RouteRequest) => Promise<globalThis.Response>;
  /** Answers 204. */
  export function noContent(): Response;
  /**
   * Answers 302, or another redirect. The location is any URI reference: `/x`, `orders`, `?page=2`, a URL of
   * http(s) or of an app. Spaces and letters such as ü are encoded. One that begins with `//`, has a backslash or the
   * scheme of a script, or a URL whose host is not in ASCII or has a user name, answers 500.
   */
  export function redirect(location: string, status?: 301 | 302 | 303 | 307 | 308): Response;
  /** Answers 400: the caller sent something invalid. */
  export function badRequest(message?: string): Response;
  /** Answers 401: the caller is not authenticated. */
  export function unauthorized(message?: string): Response;
  /** Answers 403: the caller may not do this. */
  export function forbidden(message?: string): Response;
  /** Answers 404. */
  export function notFound(message?: string): Response;
  /** Answers any other failure, 400 to 599. */
  export function error(status: number, message?: string): Response;

  /** An operation: it is run when it is awaited. */
  export interface Operation<T> extends PromiseLike<T> {
    catch<B = never>(failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<T | B>;
    finally(done?: (() => void) | null): Promise<T>;
  }

  export type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "startsWith" | "contains";

  /**
   * What a field is compared with. A value that is missing is an error, at runtime too, and never `null`:
   * `undefined`, `NaN`, an invalid date, and what JSON has no form for.
   */
  export type Value = string | number | boolean | Date | { toJSON(): unknown } | readonly Value[] | null;

  /** What a row must be like. */
  export interface Condition {
    readonly form: unknown;
  }
  /** How texts are compared. */
  export interface Matching {
    /** Compares with `=`, `startsWith` and `contains` without regard to case, by the case folding of Unicode. */
    ignoreCase?: boolean;
  }
  /** Compares a field. */
  export function field(name: string, operator: Operator, value: Value, matching?: Matching): Condition;
  /** Holds when all of the conditions do. */
  export function and(...conditions: Condition[]): Condition;
  /** Holds when one of the conditions does. */
  export function or(...conditions: Condition[]): Condition;
  /** Holds when the condition does not. */
  export function not(condition: Condition): Condition;

  /**
   * The entities of the app's schema by name; the runner writes them to
   * `types/schema.d.ts`. For each it has the `row` as it is read, what its fields
   * are compared with (`where`), what is written (`insert`, `update`), and the entities
   * of its `relations`. While there are none, every name will do and rows are `any`.
   */
  export interface Entities {}
  /** The other names of the schema: `scope`, `role` and `secret`, each a union; `vars` has the types of the variables. */
  export interface Names {}
  /** The jobs of the schema by name, with their parameters. */
  export interface Jobs {}

  export type EntityName = [keyof Entities] extends [never] ? string : keyof Entities & string;
  type Named<Kind extends string> = Names extends { [K in Kind]: infer N } ? N : string;
  export type ScopeName = Named<"scope">;
  export type RoleName = Named<"role">;
  export type SecretName = Named<"secret">;
  export type JobName = [keyof Jobs] extends [never] ? string : keyof Jobs & string;

  type Known<E, Part extends string, Else> = E extends keyof Entities ? (Entities[E] extends { [P in Part]: infer T } ? T : Else) : Else;
  /**
   * A row of the entity as it is read. A field that the caller may not read is not
   * there: that is for the grant or the policy to say, which this type does not know.
   */
  export type Row<E extends EntityName> = Known<E, "row", any>;
  /** What a new row of the entity may, and must, be given. */
  export type Insert<E extends EntityName> = Known<E, "insert", object>;
  /** What of a row of the entity may be changed. */
  export type Update<E extends EntityName> = Known<E, "update", object>;

  type Where<E> = Known<E, "where", any>;
  // R is a type of rows that was given, as in query<Order>("Order"), else never.
  type RowOf<E extends EntityName, R> = [R] extends [never] ? Row<E> : R;
  type WhereOf<E, R> = [R] extends [never] ? Where<E> : AnyWhere<R>;
  type AnyWhere<R> = { [F in keyof R]: any };
  type FieldOf<R> = keyof R & string;
  /** A row of which only the fields F were asked for; without any, all. */
  type Chosen<R, F> = [F] extends [never] ? R : [FieldOf<R>] extends [F] ? R : Pick<R, F & keyof R>;
  // Where the schema does not say what a field is compared with, it is any value.
  type Operand<T, O extends Operator> = Value extends T ? OperandOfAny<O> : OperandOf<T, O>;
  type OperandOfAny<O> = O extends "in" ? readonly Exclude<Value, null>[] : O extends "startsWith" ? string : O extends "=" | "!=" ? Value : Exclude<Value, null>;
  type OperandOf<T, O extends Operator> = O extends "in"
    ? readonly Exclude<T, null>[]
    : O extends "startsWith"
      ? string
      : O extends "contains"
        ? Exclude<T, null> extends readonly (infer Element)[] ? Element : string
        : O extends "=" | "!=" ? T : Exclude<T, null>;

  type IsAny<T> = 0 extends 1 & T ? true : false;
  // The relations of an entity: each is { one: "Partner" } or { many: "Line" }.
  type RelationsOf<E, R> = [R] extends [never] ? Known<E, "relations", any> : any;
  type TargetOf<L> = IsAny<L> extends true ? any : L extends { one: infer E } | { many: infer E } ? E : never;
  type TargetRow<L> = IsAny<L> extends true ? any : Row<TargetOf<L> & EntityName>;
  type TargetQuery<L> = IsAny<L> extends true ? Selection : Selection<Row<TargetOf<L> & EntityName>, Where<TargetOf<L>>, never, RelationsOf<TargetOf<L>, never>>;
  type Included<L, X> = IsAny<L> extends true ? any : L extends { many: any } ? X[] : X | null;
  /** A row with the rows I of its relations. */
  type Whole<R, F, I> = [keyof I] extends [never] ? Chosen<R, F> : Omit<Chosen<R, F>, keyof I> & I;

  /**
   * A query over the rows of an entity that the caller may read. Each step gives a new
   * one. Awaited it is an array of at most `limit` rows. R is a whole row, W what its
   * fields are compared with, F the fields that were selected, if any, N the relations of
   * the entity, I the rows that are included.
   */
  export interface Selection<R = any, W = AnyWhere<R>, F = never, N = any, I = {}> extends Operation<Whole<R, F, I>[]> {
    /** The fields of the rows; without it all that the caller may read. */
    select<G extends FieldOf<R>>(...fields: G[]): Selection<R, W, F | G, N, I>;
    /** One more condition: all must hold. */
    where<G extends FieldOf<R>, O extends Operator>(field: G, operator: O, value: Operand<W[G & keyof W], O>, matching?: Matching): Selection<R, W, F, N, I>;
    /** More conditions, made by {@link field}, {@link and}, {@link or} and {@link not}. */
    match(...conditions: Condition[]): Selection<R, W, F, N, I>;
    /**
     * Includes the row of a to-one relation in place of its id, or the rows of a to-many
     * relation, with the caller's authority over them: a row that the caller may not read is
     * null. Includes may have includes, on two levels.
     */
    include<K extends keyof N & string, G extends FieldOf<TargetRow<N[K]>> = never>(
      relation: K,
      fields?: readonly G[],
    ): Selection<R, W, F, N, I & { [P in K]: Included<N[K], Chosen<TargetRow<N[K]>, G>> }>;
    /** The same with a query of the included rows: `include("lines", (q) => q.limit(20))`. */
    include<K extends keyof N & string, X>(
      relation: K,
      choose: (query: TargetQuery<N[K]>) => Operation<X[]>,
    ): Selection<R, W, F, N, I & { [P in K]: Included<N[K], X> }>;
    /** The order of the rows; a second one orders what is equal in the first. */
    orderBy(field: FieldOf<R>, direction?: "asc" | "desc"): Selection<R, W, F, N, I>;
    /** At most so many rows, 1 to 1,000; without it 100. */
    limit(n: number): Selection<R, W, F, N, I>;
    /** The rows behind a cursor: the `nextCursor` of the page before. Without one it is the first page. */
    after(cursor: string | null | undefined): Selection<R, W, F, N, I>;
    /** The rows with the cursor of the next page, null on the last one. */
    page(): Operation<{ rows: Whole<R, F, I>[]; nextCursor: string | null }>;
    /** The first row; without any it is an error with the code `not_found`. */
    first(): Operation<Whole<R, F, I>>;
    /** The number of rows, without regard to the limit. */
    count(): Operation<number>;
  }
  /** Begins a query of an entity. */
  export function query<R = never, E extends EntityName = EntityName>(
    entity: E,
  ): Selection<RowOf<E, NoInfer<R>>, WhereOf<E, NoInfer<R>>, never, RelationsOf<E, NoInfer<R>>>;

  type Nullable<T> = Exclude<T, null> | null;
  /** A group of rows: the fields G in which they are equal, if any, and what is computed. */
  type Group<R, G, C> = ([G] extends [never] ? {} : { group: Pick<R, G & keyof R> }) & C;

  /**
   * Computes over the rows of an entity that the caller may read. Awaited it is an array of
   * groups, ordered by their fields; without {@link groupBy} of one. Null is no value: what
   * has no value is null. Sums are exact; an average of decimals has six more places.
   */
  export interface Aggregation<R = any, W = AnyWhere<R>, G = never, C = {}> extends Operation<Group<R, G, C>[]> {
    where<F extends FieldOf<R>, O extends Operator>(field: F, operator: O, value: Operand<W[F & keyof W], O>, matching?: Matching): Aggregation<R, W, G, C>;
    match(...conditions: Condition[]): Aggregation<R, W, G, C>;
    /** The fields, at most two, that are equal in a group. There may be 1,000 groups. */
    groupBy<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G | F, C>;
    /** The number of rows. */
    count(): Aggregation<R, W, G, C & { count: number }>;
    sum<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { sum: { [K in F]: Nullable<R[K]> } }>;
    avg<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { avg: { [K in F]: Nullable<R[K]> } }>;
    min<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { min: { [K in F]: Nullable<R[K]> } }>;
    max<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { max: { [K in F]: Nullable<R[K]> } }>;
  }
  /** Begins an aggregate of an entity: `aggregate("Order").groupBy("status").sum("total").count()`. */
  export function aggregate<R = never, E extends EntityName = EntityName>(entity: E): Aggregation<RowOf<E, NoInfer<R>>, WhereOf<E, NoInfer<R>>>;

  /** The beginning of a query whose entity is still to be said. */
  export interface Choice<R, F extends string> {
    from<E extends [R] extends [never] ? EntityWith<F> : EntityName>(entity: E): Selection<RowOf<E, R>, WhereOf<E, R>, F, RelationsOf<E, R>>;
  }
  type EntityWith<F> = [keyof Entities] extends [never]
    ? string
    : { [E in keyof Entities & string]: [F] extends [FieldOf<Row<E>>] ? E : never }[keyof Entities & string];
  /** Begins a query with its fields: `select("id").from("Order")`. */
  export function select<R = never, F extends string = [R] extends [never] ? string : FieldOf<R>>(...fields: F[]): Choice<R, F>;

  /** One row by its id, with the rows that it includes as in {@link Selection}. */
  export interface Lookup<R = any, F = never, N = any, I = {}> extends Operation<Whole<R, F, I>> {
    include<K extends keyof N & string, G extends FieldOf<TargetRow<N[K]>> = never>(
      relation: K,
      fields?: readonly G[],
    ): Lookup<R, F, N, I & { [P in K]: Included<N[K], Chosen<TargetRow<N[K]>, G>> }>;
    include<K extends keyof N & string, X>(
      relation: K,
      choose: (query: TargetQuery<N[K]>) => Operation<X[]>,
    ): Lookup<R, F, N, I & { [P in K]: Included<N[K], X> }>;
  }
  /** One row by its id. One that is not there and one that the caller may not read are the same error, `not_found`. */
  export function get<R = never, E extends EntityName = EntityName, F extends FieldOf<RowOf<E, R>> = FieldOf<RowOf<E, R>>>(
    entity: E,
    id: string,
    ...fields: F[]
  ): Lookup<RowOf<E, NoInfer<R>>, F, RelationsOf<E, NoInfer<R>>>;

  type InsertOf<E extends EntityName, R> = [R] extends [never] ? Insert<E> : object;
  type OnlyAny<V> = 0 extends 1 & V ? unknown : never;
  /** Inserts values of the type `any`, which may be those of one row or of several. */
  export function insert<V>(entity: EntityName, values: V & OnlyAny<V>): Operation<any>;
  /**
   * Inserts a row, or a list of at most 1,000, and gives it as it is then, or them. A field that is absent or
   * `undefined` has its default.
   */
  export function insert<R = never, E extends EntityName = EntityName>(
    entity: E,
    values: readonly InsertOf<E, NoInfer<R>>[],
  ): Operation<RowOf<E, NoInfer<R>>[]>;
  export function insert<R = never, E extends EntityName = EntityName>(entity: E, values: InsertOf<E, NoInfer<R>>): Operation<RowOf<E, NoInfer<R>>>;

  /** A change of rows. Awaited it is how many there were. Without a condition it is an error unless {@link every} says that all are meant. */
  export interface Change<R = any, W = AnyWhere<R>> extends Operation<number> {
    where<G extends FieldOf<R>, O extends Operator>(field: G, operator: O, value: Operand<W[G & keyof W], O>, matching?: Matching): Change<R, W>;
    match(...conditions: Condition[]): Change<R, W>;
    every(): Change<R, W>;
    /** The rows as they are then. */
    rows(): Operation<R[]>;
  }
  /** Sets fields of rows, and leaves those that are absent or `undefined`: `await update("Order", { status: "paid" }).where("id", "=", id)`. */
  export function update<R = never, E extends EntityName = EntityName>(
    entity: E,
    set: [R] extends [never] ? Update<E> : object,
  ): Change<RowOf<E, NoInfer<R>>, WhereOf<E, NoInfer<R>>>;

  /** A removal of rows. Awaited it is how many there were. */
  export interface Removal<R = any, W = AnyWhere<R>> extends Operation<number> {
    where<G extends FieldOf<R>, O extends Operator>(field: G, operator: O, value: Operand<W[G & keyof W], O>, matching?: Matching): Removal<R, W>;
    match(...conditions: Condition[]): Removal<R, W>;
    every(): Removal<R, W>;
  }
  /** Deletes rows: `await remove("Order").where("id", "=", id)`. */
  export function remove<E extends EntityName>(entity: E): Removal<Row<E>, Where<E>>;

  /** An API key, as its managers see it. Times are RFC 3339. */
  export interface ApiKey {
    id: string;
    scope: string;
    capability: string;
    name: string;
    status: "active" | "rotating" | "disabled" | "expired" | "revoked";
    hint: string;
    tenant: string | null;
    /** The id of the user or the key that created it; null for a key of an operator. */
    owner: string | null;
    /** What `owner` is the id of: a user's id may equal the id of a key. */
    ownerKind: "user" | "key" | null;
    metadata: Record<string, unknown> | null;
    createdAt: string;
    expiresAt: string | null;
    rotatedAt: string | null;
    previousTokenExpiresAt: string | null;
    revokedAt: string | null;
    lastUsedAt: string | null;
  }
  /** A key with its token, which nothing shows again. */
  export interface IssuedApiKey extends ApiKey {
    token: string;
  }

  /** A page of keys. `nextCursor` leads to the next one; it is null on the last. */
  export interface ApiKeyPage {
    keys: ApiKey[];
    nextCursor: string | null;
  }

  /**
   * The keys that the caller reaches: those that it created, as a user or as a key. A key also reaches itself.
   * Where `@manage` in the schema is true, the caller reaches all keys of the scope in its tenant. Every other
   * key is `not_found`.
   */
  export interface ApiKeys {
    /** Creates a key of a scope that the caller may issue. `expiresIn` is in seconds. */
    create(options: { scope: ScopeName; name?: string; expiresIn?: number; metadata?: object }): Operation<IssuedApiKey>;
    get(id: string): Operation<ApiKey>;
    /** All keys, without tokens. */
    list(options?: { scope?: string; limit?: undefined; cursor?: string }): Operation<ApiKey[]>;
    /** At most `limit` (1 to 1000) keys, with the cursor of the next page. */
    list(options: { scope?: string; limit: number; cursor?: string }): Operation<ApiKeyPage>;
    /**
     * Gives the key, of a scope that the caller may issue, a new token. Each older one ends after the grace period,
     * in seconds, or at its own end if that is sooner; without a grace period all end at once. With a grace period
     * a key has at most 5 live tokens: a rotation beyond that is a `conflict`.
     */
    rotate(id: string, options?: { gracePeriod?: number }): Operation<IssuedApiKey>;
    /** Ends a key for good. */
    revoke(id: string): Operation<ApiKey>;
  }

  /** A session that was opened. Its cookie goes to the browser; no handler sees it. */
  export interface OpenedSession {
    id: string;
    /** RFC 3339. */
    expiresAt: string;
  }
  /** A session that has not ended. Times are RFC 3339. */
  export interface LiveSession {
    id: string;
    userId: string;
    tenant: string | null;
    roles: RoleName[];
    createdAt: string;
    lastSeenAt: string;
    expiresAt: string;
    /** It is the session of this request. */
    current: boolean;
  }
  /** A page of sessions. `nextCursor` leads to the next one; it is null on the last. */
  export interface SessionPage {
    sessions: LiveSession[];
    nextCursor: string | null;
  }
  /**
   * Whose sessions: without options the caller's own. `tenant` is the caller's unless it is
   * given. Other users are for callers for whom `@manage` in the schema's `session cookie`
   * is true, within their tenant, and for routes with `mints: session`; there `allTenants` selects
   * the user's sessions in every tenant.
   */
  export interface WhoseSessions {
    user?: string;
    tenant?: string;
    allTenants?: boolean;
  }
  /** Sessions of the app's users. A session of another user is `not_found`, unless the schema allows it. */
  export interface Sessions {
    /**
     * Signs a user in, on a route with `mints: session`; elsewhere it is `denied`. The answer
     * sets the cookie of a new session, when it commits. The session that the caller had
     * ends. `ttl` is in seconds, at most the schema's `absolute`, which is what it is without.
     */
    create(options: { userId: string; tenant?: string; roles?: readonly RoleName[]; ttl?: number }): Operation<OpenedSession>;
    /** All live sessions of a user, oldest first. */
    list(options?: WhoseSessions & { limit?: undefined; cursor?: string }): Operation<LiveSession[]>;
    /** At most `limit` (1 to 1000) of them, with the cursor of the next page. */
    list(options: WhoseSessions & { limit: number; cursor?: string }): Operation<SessionPage>;
    /** Ends the session that calls, and takes its cookie back. */
    revoke(): Operation<{ id: string }>;
    /** Ends a session. An id that is missing is an error. */
    revoke(id: string): Operation<{ id: string }>;
    /**
     * Ends all sessions of a user but `except`, the id of one or `"current"` for the one that
     * calls, and returns their number.
     */
    revokeAll(options?: WhoseSessions & { except?: string }): Operation<number>;
  }

  /** Webhooks on routes that do not say `verify:` themselves. */
  export interface Webhooks {
    /**
     * Checks that this request is signed with a declared secret. What is not is
     * `denied`. It does not remember deliveries, as `verify:` does: one that comes
     * twice passes twice.
     */
    verify(options: { scheme: "standard" | "stripe" | "github" | "slack"; secret: SecretName }): Operation<{
      /** The delivery's id; where the scheme has none, the signature. */
      id: string;
      /** When it was signed, in seconds since 1970; null where the scheme does not say. */
      timestamp: number | null;
    }>;
  }

  type JobParams<J extends JobName> = J extends keyof Jobs ? Jobs[J] : object;
  type JobArguments<J extends JobName> = {} extends JobParams<J>
    ? [params?: JobParams<J>, options?: JobOptions]
    : [params: JobParams<J>, options?: JobOptions];
  /** When a job runs, and under which key. Without options it runs as soon as the request is committed. */
  export interface JobOptions {
    /** How long it waits, in seconds. */
    delay?: number;
    /** When it runs; a time that has passed means at once. Not together with `delay`. */
    at?: string | Date;
    /** There is one live job of this name and key in a tenant: while it waits or runs, it is given instead of a new one. */
    key?: string;
  }
  export interface EnqueuedJob {
    id: string;
    /** False if a live job with the key was there. */
    created: boolean;
  }
  /** Work for after the commit: jobs that the schema declares. */
  export const jobs: {
    /**
     * Enqueues a job in the transaction of the request: it runs if and only if that commits. Its
     * parameters are checked at once; wrong ones are `invalid`.
     */
    enqueue<J extends JobName>(name: J, ...args: JobArguments<J>): Operation<EnqueuedJob>;
    /**
     * Ends a job of the caller's tenant: it does not run any more, and what a run of it has written is not
     * committed. False if it has ended before; an unknown id is `not_found`.
     */
    cancel(id: string): Operation<boolean>;
  };

  /** The caller, as the runner authenticated it; the headers do not contain it. */
  export interface Auth {
    /** "system" is an operator, who runs a function with `runner call`. */
    readonly kind: "anonymous" | "session" | "apiKey" | "system";
    readonly userId?: string;
    readonly tenant?: string;
    readonly roles: readonly RoleName[];
    readonly keyId?: string;
    readonly scope?: ScopeName;
    readonly capability?: string;
    readonly metadata?: Readonly<Record<string, unknown>>;
    /** What the caller's JWT claims; absent for every other caller. */
    readonly claims?: Readonly<Record<string, unknown>>;
  }

  /** What a handler knows and may do beside the request itself. */
  export interface Context {
    readonly client: { readonly apiKeys: ApiKeys; readonly sessions: Sessions; readonly webhooks: Webhooks };
    readonly auth: Auth;
    /** The id that stands on the answer and in the log. */
    readonly requestId: string;
    /** The template of the matched route: `/v1/orders/:id`. */
    readonly route: string;
    /** When the request's time is over. */
    readonly deadline: Date;
    /**
     * The job that the handler runs for. Send `id` along as the idempotency key of what may not happen
     * twice. `attempt` counts the runs from 1; `scheduledFor` is when the job was to run first.
     */
    readonly job?: { readonly id: string; readonly attempt: number; readonly scheduledFor: Date };
    /** The value of a secret that the schema declares. */
    secret(name: SecretName): Operation<string>;
    /** Commits the writes of this request with any status; by default 400 and above discard them. */
    keepWrites(): void;
  }
  /**
   * The variables that the schema declares, with the values that this server has for them. They can be
   * read in a handler, not while the module is built. A duration is in seconds, a decimal is a string.
   */
  export const vars: Names extends { vars: infer V } ? Readonly<V> : Readonly<Record<string, any>>;

  /** The context of the request at hand. */
  export function getContext(): Context;

  /**
   * Passwords. The host hashes them, a few at the same time, and the handler waits. The time
   * counts as CPU time of the request.
   */
  export const password: {
    /** A new hash of the password with Argon2id, as a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$…`. */
    hash(password: string): Promise<string>;
    /**
     * Compares a password with a hash: one of `password.hash`, or of bcrypt, scrypt or PBKDF2 as
     * Django, passlib and others write them. A wrong password gives `false`, the right one an
     * object: with `rehash`, store a new hash, as this one has another algorithm or other
     * parameters. With `null`, for a user who does not exist, it takes as long and gives `false`.
     */
    verify(password: string, hash: string | null | undefined): Promise<false | { rehash: boolean }>;
  };

  /** Compares, for signatures and tokens, in a time that depends on the lengths alone. */
  export function timingSafeEqual(a: string | ArrayBuffer | ArrayBufferView, b: string | ArrayBuffer | ArrayBufferView): boolean;

  /**
   * The HMAC (RFC 2104) of text or bytes under a secret that the schema declares, which
   * the handler then need not read; for a key of its own there is `crypto.subtle`.
   */
  export function hmac(
    algorithm: "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512",
    secret: SecretName,
    data: string | ArrayBuffer | ArrayBufferView,
  ): Operation<{ hex: string; base64: string }>;

  /** Any operation by its name, with its arguments and its result as JSON has them: `await call("count", { from: "Order" })`. */
  export function call<T = any>(op: string, args?: object): Operation<T>;

  /** A failed operation. */
  export class HostError extends Error {
    readonly code: "not_found" | "invalid" | "denied" | "conflict" | "too_large" | "limit" | "unavailable" | "deadline" | "internal";
    /** Which operation: `query`, `fetch`, …; absent of an error that a handler made. */
    readonly op?: string;
    constructor(code: HostError["code"], message?: string);
  }
  /** A body that is not JSON. */
  export class BodyError extends Error {}
}
