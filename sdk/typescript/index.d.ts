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
 * `runner build` compiles all of them into one module. Code outside of functions runs once,
 * during the build. Every request starts from the memory that it left, and no request sees
 * what another one stored in variables. Operations and random numbers can be used only in
 * handlers.
 *
 * A handler reads and changes rows with the rights of the caller. One request is one
 * transaction: it commits if the status of the answer is below 400. If another request
 * changed the same rows meanwhile, the handler runs again from the start.
 */
declare module "@runner/sdk" {
  /** The request that the handler answers. */
  export interface RouteRequest {
    /** Path parameters by name, percent-decoded. A parameter of the route is never empty. */
    readonly params: Readonly<Record<string, string>>;
    /** The first value of each query parameter, by name. A parameter that was not sent is `undefined`. */
    readonly query: Readonly<Record<string, string | undefined>>;
    /** All values of each query parameter, by name, in the order in which they were sent. */
    readonly queryAll: Readonly<Record<string, readonly string[] | undefined>>;
    /** The query as it was sent, without its "?". Signatures of URLs are made of it. */
    readonly rawQuery: string;
    /** Headers by name in lower case; repeated lines are joined with ", ". Credentials that the runner has checked are not among them. */
    readonly headers: Readonly<Record<string, string | undefined>>;
    readonly method: string;
    /** The raw path, without the query. */
    readonly path: string;
    /** The exact body, for signatures. If the `input:` of the route has defaults, they are filled in. As text it is UTF-8: `${req.rawBody}`, `JSON.parse(`${req.rawBody}`)`, `req.rawBody.toString("hex")`. */
    readonly rawBody: Uint8Array & {
      toString(encoding?: "utf8" | "utf-8" | "hex" | "base64" | "base64url" | "latin1" | "binary" | "ascii", start?: number, end?: number): string;
    };
    /** The body as text. */
    text(): string;
    /**
     * The body as it comes. On a route with `stream:` the handler runs before it has arrived, and
     * `body:` of the route can be larger than memory. What was read is gone: if another request
     * changes what the handler has read from the store, the caller gets 409, and the handler does
     * not run again. While the stream waits for the caller, nothing else of the handler goes on.
     */
    stream(): ReadableStream<Uint8Array>;
    /**
     * The body as a form, `multipart/form-data` or `application/x-www-form-urlencoded`. If the
     * body is not such a form, the promise is rejected; if the handler does not catch that, the
     * answer is 400 `bad_request`.
     */
    formData(): Promise<FormData>;
    /**
     * What the client has uploaded, on a route with `upload: on`. The files are stored, and are
     * gone after the request unless a row that is committed has them.
     */
    form(): UploadedForm;
    /** The first uploaded file of that field. Without a name: the body that is one file. */
    file(name?: string): UploadedFile | undefined;
    /**
     * The JSON body. An empty body and `null` are `{}`, so a check for a field finds that it
     * is missing. If the body is not JSON, this throws a {@link BodyError}; if the handler does
     * not catch it, the answer is 400 `invalid_json`. Whether the body fits `T` is not checked
     * here: `input:` in the schema does that.
     */
    body<T = any>(): T;
  }

  /** A file: the value of a field of type `file`, or one that the request has uploaded or the handler has made. */
  export interface StoredFile {
    readonly id: string;
    /** A text for people, never a path. */
    readonly name: string;
    /** The media type without parameters. It is found from the bytes. */
    readonly type: string;
    /** In bytes. */
    readonly size: number;
    /** The digest of the bytes, in hexadecimal digits. */
    readonly sha256: string;
    /** Reads all bytes into memory. */
    bytes(): Promise<Uint8Array>;
    /** Reads the bytes, of which one part at a time is in memory. */
    stream(): ReadableStream<Uint8Array>;
    /** Reads the bytes as UTF-8. */
    text(): Promise<string>;
  }

  /** A file of an upload. */
  export interface UploadedFile extends StoredFile {
    /** The name of its field; empty for a body that is one file. */
    readonly field: string;
    /** The media type that the client has declared; empty: none. */
    readonly declared: string;
  }

  /** The body of a request on a route with `upload: on`. */
  export interface UploadedForm {
    /** The names and texts of the fields, in the order of the body. */
    readonly fields: readonly (readonly [name: string, value: string])[];
    readonly files: readonly UploadedFile[];
    /** The first text of that name. */
    get(name: string): string | undefined;
    getAll(name: string): string[];
    /** The first file of that field. Without a name: the body that is one file. */
    file(name?: string): UploadedFile | undefined;
  }

  /**
   * Answers with a stored file: `return file(post.photo)`. It is sent by the host, and the ranges and conditions that
   * the client asks for apply. A type that a browser would run, such as HTML, SVG or PDF, is an attachment unless
   * `disposition` says `"inline"`. `name` replaces the name of the file, and `cache` is the `Cache-Control`.
   */
  export function file(
    stored: StoredFile,
    options?: { status?: number; disposition?: "inline" | "attachment"; name?: string; cache?: string },
  ): Response;
  /**
   * Makes a file, which a row can have: `insert("Post", { photo: await file(bytes, { name: "photo.png" }) })`.
   * It is gone after the request unless a row that is committed has it. Of a stream or a `Response`, one part at a
   * time is in memory. The type is found from the bytes; `type` names that of a text or of unknown bytes more closely.
   */
  export function file(
    contents: string | ArrayBuffer | ArrayBufferView | Blob | ReadableStream<Uint8Array> | globalThis.Response,
    options?: { name?: string; type?: string },
  ): Promise<StoredFile>;
  /**
   * Makes a link to the file of a row: `await sign(post.photo, { expires: "10m" })` is a path such as `/_files/…`, which
   * works without credentials until it expires, for as long as the row has this file. `expires` is a time from
   * `"1s"` to `"7d"`, or a number of seconds. `disposition` and `name` are as for an answer with the file.
   */
  export function sign(
    file: StoredFile,
    options: { expires: string | number; disposition?: "inline" | "attachment"; name?: string },
  ): Promise<string>;

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
   * headers and its body, of which a stream is read to its end before; of one that `fetch` gave, only the content type of the headers. What it throws becomes an answer too: an answer is that itself, a
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

  /** An event of `events`. `data` that is not text is sent as JSON. `retry` is in milliseconds. */
  export interface ServerEvent {
    event?: string;
    data?: unknown;
    id?: string | number;
    retry?: number;
  }
  /** What `stream` and `events` take: a generator function, or what `for await` can iterate. */
  export type Source<T> = Iterable<T> | AsyncIterable<T> | (() => Iterable<T> | AsyncIterable<T>);
  /**
   * An answer whose chunks are sent as they come. What the handler has written is committed before the first one, and
   * each later operation commits by itself. Give the route `stream: 5m` to let it take longer than a handler may.
   */
  export function stream(source: Source<string | Uint8Array>, options?: { type?: string; status?: number }): Response;
  /** `stream` of server-sent events: `events(async function* () { yield { data: await next() } })`. */
  export function events(source: Source<ServerEvent | string>): Response;
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
  /**
   * Answers any other failure, 400 to 599: with a message, or with your own code and members (RFC 9457):
   * `error(402, { code: "no_credit", detail: "buy more", balance: 3 })`.
   */
  export function error(status: number, problem?: string | Problem): Response;
  /** The contents of an error: a stable code in snake_case, a text for people, and your own members. */
  export interface Problem {
    code?: string;
    detail?: string;
    errors?: { field: string; message: string }[];
    /** The runner writes these. */
    type?: never;
    title?: never;
    status?: never;
    instance?: never;
    requestId?: never;
    request_id?: never;
    [member: string]: unknown;
  }

  /** An operation. It runs when it is awaited. */
  export interface Operation<T> extends PromiseLike<T> {
    catch<B = never>(failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<T | B>;
    finally(done?: (() => void) | null): Promise<T>;
  }

  export type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "startsWith" | "contains";

  /**
   * A value that a field is compared with. `undefined`, `NaN`, an invalid date and values that JSON cannot
   * represent are errors, at runtime too; they never mean `null`.
   */
  export type Value = string | number | boolean | Date | { toJSON(): unknown } | readonly Value[] | null;

  /** A condition that rows must fulfil. */
  export interface Condition {
    readonly form: unknown;
  }
  /** How texts are compared. */
  export interface Matching {
    /** Compares with `=`, `startsWith` and `contains` without regard to case, by the case folding of Unicode. */
    ignoreCase?: boolean;
  }
  /** A condition on a field: `field("total", ">", 100)`. */
  export function field(name: string, operator: Operator, value: Value, matching?: Matching): Condition;
  /** True if all conditions are true. */
  export function and(...conditions: Condition[]): Condition;
  /** True if at least one of the conditions is true. */
  export function or(...conditions: Condition[]): Condition;
  /** True if the condition is not true. */
  export function not(condition: Condition): Condition;

  /**
   * The entities of the app's schema by name. The runner writes them to
   * `types/schema.d.ts`. Each entity has the types of a `row` that is read, of the values in
   * conditions (`where`), of written values (`insert`, `update`), and of its `relations`.
   * Without that file every name is allowed, and rows are `any`.
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
   * A row of the entity as it is read. A field that the caller may not read is absent at
   * runtime. This type does not show that: grants and policies decide it for each caller.
   */
  export type Row<E extends EntityName> = Known<E, "row", any>;
  /** The fields of a new row of the entity: the required ones, and the optional ones. */
  export type Insert<E extends EntityName> = Known<E, "insert", object>;
  /** The fields of a row of the entity that can be changed. */
  export type Update<E extends EntityName> = Known<E, "update", object>;

  type Where<E> = Known<E, "where", any>;
  // R is a type of rows that was given, as in query<Order>("Order"), else never.
  type RowOf<E extends EntityName, R> = [R] extends [never] ? Row<E> : R;
  type WhereOf<E, R> = [R] extends [never] ? Where<E> : AnyWhere<R>;
  type AnyWhere<R> = { [F in keyof R]: any };
  type FieldOf<R> = keyof R & string;
  /** A row with the fields F; with all fields if F is empty. */
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
   * A query over the rows of an entity that the caller may read. Each method returns a new
   * query. `await` gives an array of at most `limit` rows. R is a whole row, W the values in
   * conditions, F the selected fields, if any, N the relations of the entity, I the included
   * rows.
   */
  export interface Selection<R = any, W = AnyWhere<R>, F = never, N = any, I = {}> extends Operation<Whole<R, F, I>[]> {
    /** Selects fields. Without it, rows have all fields that the caller may read. */
    select<G extends FieldOf<R>>(...fields: G[]): Selection<R, W, F | G, N, I>;
    /** Adds a condition. All conditions must be true. */
    where<G extends FieldOf<R>, O extends Operator>(field: G, operator: O, value: Operand<W[G & keyof W], O>, matching?: Matching): Selection<R, W, F, N, I>;
    /** Adds conditions, made by {@link field}, {@link and}, {@link or} and {@link not}. */
    match(...conditions: Condition[]): Selection<R, W, F, N, I>;
    /**
     * Includes the row of a to-one relation in place of its id, or the rows of a to-many
     * relation. A row that the caller may not read is null. An included row can include
     * others, two levels deep.
     */
    include<K extends keyof N & string, G extends FieldOf<TargetRow<N[K]>> = never>(
      relation: K,
      fields?: readonly G[],
    ): Selection<R, W, F, N, I & { [P in K]: Included<N[K], Chosen<TargetRow<N[K]>, G>> }>;
    /** Includes rows that a query selects: `include("lines", (q) => q.limit(20))`. */
    include<K extends keyof N & string, X>(
      relation: K,
      choose: (query: TargetQuery<N[K]>) => Operation<X[]>,
    ): Selection<R, W, F, N, I & { [P in K]: Included<N[K], X> }>;
    /** Orders the rows. A second `orderBy` orders rows that are equal in the first. */
    orderBy(field: FieldOf<R>, direction?: "asc" | "desc"): Selection<R, W, F, N, I>;
    /** The maximum number of rows, from 1 to 1,000. The default is 100. */
    limit(n: number): Selection<R, W, F, N, I>;
    /** Starts after a cursor: the `nextCursor` of the previous page. `null` and `undefined` mean the first page. */
    after(cursor: string | null | undefined): Selection<R, W, F, N, I>;
    /** A page of rows, and the cursor of the next page. `nextCursor` is null on the last page. */
    page(): Operation<{ rows: Whole<R, F, I>[]; nextCursor: string | null }>;
    /** The first row, or null if no row matches. `ok(query.first())`, without `await`, then answers 404. */
    first(): Operation<Whole<R, F, I> | null>;
    /** The first row. If no row matches, it throws an error with the code `not_found`; uncaught, it is answered 404. */
    firstOrFail(): Operation<Whole<R, F, I>>;
    /** The number of rows that match; the limit does not apply. */
    count(): Operation<number>;
    /** Counts at most `atMost` rows, 1 to 1,000,000, and returns whether there are more: `count({ atMost: 10_000 })`. */
    count(options: { atMost: number }): Operation<Counts>;
  }
  /** Begins a query of an entity. */
  export function query<R = never, E extends EntityName = EntityName>(
    entity: E,
  ): Selection<RowOf<E, NoInfer<R>>, WhereOf<E, NoInfer<R>>, never, RelationsOf<E, NoInfer<R>>>;

  /** The number of rows that an operation with a limit counted or changed, and whether other rows match. */
  export interface Counts {
    count: number;
    more: boolean;
  }

  // The fields that groupByTime accepts: times and dates.
  type TimesOf<E extends EntityName, R> = [R] extends [never] ? Known<E, "times", FieldOf<Row<E>>> : FieldOf<R>;
  type Nullable<T> = Exclude<T, null> | null;
  /** A group of rows: the values of its fields G, if any, and the computed values. */
  type Group<R, G, C> = ([G] extends [never] ? {} : { group: Pick<R, G & keyof R> }) & C;

  /**
   * Computes over the rows of an entity that the caller may read. `await` gives an array of
   * groups, ordered by their fields. Without `groupBy` there is one group. Null values are
   * ignored; the result is null if all values are null. Sums are exact. An average of decimals
   * has six more decimal places.
   */
  export interface Aggregation<R = any, W = AnyWhere<R>, G = never, C = {}, T = FieldOf<R>> extends Operation<Group<R, G, C>[]> {
    where<F extends FieldOf<R>, O extends Operator>(field: F, operator: O, value: Operand<W[F & keyof W], O>, matching?: Matching): Aggregation<R, W, G, C, T>;
    match(...conditions: Condition[]): Aggregation<R, W, G, C, T>;
    /** Groups by at most two fields. More than 1,000 groups are an error. */
    groupBy<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G | F, C, T>;
    /**
     * Groups by the day, week or month of a time, in a time zone of the IANA database: `groupByTime("createdAt", "day",
     * "Europe/Berlin")`. The group has the first day of the period, such as `"2026-10-25"`. Weeks begin on Monday. A date has
     * no time zone.
     */
    groupByTime<F extends T & FieldOf<R>>(field: F, period: "day" | "week" | "month", zone?: string): Aggregation<R, W, G | F, C, T>;
    /** The number of rows. */
    count(): Aggregation<R, W, G, C & { count: number }, T>;
    sum<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { sum: { [K in F]: Nullable<R[K]> } }, T>;
    avg<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { avg: { [K in F]: Nullable<R[K]> } }, T>;
    min<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { min: { [K in F]: Nullable<R[K]> } }, T>;
    max<F extends FieldOf<R>>(...fields: F[]): Aggregation<R, W, G, C & { max: { [K in F]: Nullable<R[K]> } }, T>;
  }
  /** Begins an aggregate of an entity: `aggregate("Order").groupBy("status").sum("total").count()`. */
  export function aggregate<R = never, E extends EntityName = EntityName>(
    entity: E,
  ): Aggregation<RowOf<E, NoInfer<R>>, WhereOf<E, NoInfer<R>>, never, {}, TimesOf<E, NoInfer<R>>>;

  /** A query that has its fields, and needs its entity: call `from`. */
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
  /** One row by its id. If the row does not exist, or the caller may not read it, the error is `not_found`. */
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
   * Inserts a row, or a list of at most 1,000 rows, and returns the row or the rows as they are stored. A field
   * that is absent or `undefined` gets its default.
   */
  export function insert<R = never, E extends EntityName = EntityName>(
    entity: E,
    values: readonly InsertOf<E, NoInfer<R>>[],
  ): Operation<RowOf<E, NoInfer<R>>[]>;
  export function insert<R = never, E extends EntityName = EntityName>(entity: E, values: InsertOf<E, NoInfer<R>>): Operation<RowOf<E, NoInfer<R>>>;

  /** A change of rows. `await` gives the number of changed rows. It needs a condition, by `where` or `match`; to change all rows, call `every`. */
  export interface Change<R = any, W = AnyWhere<R>, T = number> extends Operation<T> {
    where<G extends FieldOf<R>, O extends Operator>(field: G, operator: O, value: Operand<W[G & keyof W], O>, matching?: Matching): Change<R, W, T>;
    match(...conditions: Condition[]): Change<R, W, T>;
    /** Changes all rows. */
    every(): Change<R, W, T>;
    /** Changes at most `n` rows, 1 to 1,000. `await` then returns how many, and whether other rows match. */
    limit(n: number): Change<R, W, Counts>;
    /** The changed rows, with their new values. */
    rows(): Operation<R[]>;
  }
  /** Sets fields of rows. Fields that are absent or `undefined` keep their values: `await update("Order", { status: "paid" }).where("id", "=", id)`. */
  export function update<R = never, E extends EntityName = EntityName>(
    entity: E,
    set: [R] extends [never] ? Update<E> : object,
  ): Change<RowOf<E, NoInfer<R>>, WhereOf<E, NoInfer<R>>>;

  /** A removal of rows. `await` gives the number of removed rows. It needs a condition, by `where` or `match`; to remove all rows, call `every`. */
  export interface Removal<R = any, W = AnyWhere<R>, T = number> extends Operation<T> {
    where<G extends FieldOf<R>, O extends Operator>(field: G, operator: O, value: Operand<W[G & keyof W], O>, matching?: Matching): Removal<R, W, T>;
    match(...conditions: Condition[]): Removal<R, W, T>;
    /** Removes all rows. */
    every(): Removal<R, W, T>;
    /** Removes at most `n` rows, 1 to 1,000. `await` then returns how many, and whether other rows match. */
    limit(n: number): Removal<R, W, Counts>;
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
  /** A key with its token. The token cannot be read again later. */
  export interface IssuedApiKey extends ApiKey {
    token: string;
  }

  /** A page of keys. `nextCursor` is the cursor of the next page; it is null on the last page. */
  export interface ApiKeyPage {
    keys: ApiKey[];
    nextCursor: string | null;
  }

  /**
   * The keys that the caller can manage: those that it created, as a user or as a key. A key can also manage
   * itself. If `@manage` in the schema is true, the caller can manage all keys of the scope in its tenant. For
   * every other key the error is `not_found`.
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
     * Gives the key a new token. The caller must be allowed to issue keys of its scope. Older tokens expire after
     * `gracePeriod`, in seconds, or at their own end if that is sooner; without it they expire at once. With a grace
     * period a key has at most 5 live tokens; one more is a `conflict`.
     */
    rotate(id: string, options?: { gracePeriod?: number }): Operation<IssuedApiKey>;
    /** Revokes a key. This cannot be undone. */
    revoke(id: string): Operation<ApiKey>;
  }

  /** A new session. The runner sends its cookie to the browser; handlers cannot read it. */
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
    /** True for the session of this request. */
    current: boolean;
  }
  /** A page of sessions. `nextCursor` is the cursor of the next page; it is null on the last page. */
  export interface SessionPage {
    sessions: LiveSession[];
    nextCursor: string | null;
  }
  /**
   * Selects the user whose sessions are meant. The default is the caller, and the caller's
   * tenant. Another user can be selected in two cases: if `@manage` in the schema's
   * `session cookie` is true for the caller, within the caller's tenant; and on routes with
   * `mints: session`, where `allTenants` selects the user's sessions in every tenant.
   */
  export interface WhoseSessions {
    user?: string;
    tenant?: string;
    allTenants?: boolean;
  }
  /** Sessions of the app's users. A session of another user is `not_found`, unless the schema allows it. */
  export interface Sessions {
    /**
     * Signs a user in. The route must have `mints: session`; otherwise the error is `denied`.
     * When the request commits, the answer sets the cookie of the new session, and the caller's
     * previous session ends. `ttl` is in seconds. Its maximum, and its default, is `absolute`
     * in the schema.
     */
    create(options: { userId: string; tenant?: string; roles?: readonly RoleName[]; ttl?: number }): Operation<OpenedSession>;
    /** All live sessions of a user, oldest first. */
    list(options?: WhoseSessions & { limit?: undefined; cursor?: string }): Operation<LiveSession[]>;
    /** At most `limit` (1 to 1000) sessions, with the cursor of the next page. */
    list(options: WhoseSessions & { limit: number; cursor?: string }): Operation<SessionPage>;
    /** Ends the session of this request, and deletes its cookie. */
    revoke(): Operation<{ id: string }>;
    /** Ends a session. If `id` is `undefined`, it is an error. */
    revoke(id: string): Operation<{ id: string }>;
    /**
     * Ends all sessions of a user, and returns their number. `except` is the id of a session that
     * is kept, or `"current"` for the session of this request.
     */
    revokeAll(options?: WhoseSessions & { except?: string }): Operation<number>;
  }

  /** Webhooks on routes that have no `verify:` in the schema. */
  export interface Webhooks {
    /**
     * Checks that this request is signed with a declared secret; otherwise the error is
     * `denied`. Unlike `verify:` it does not store deliveries: a delivery that is sent twice
     * is accepted twice.
     */
    verify(options: { scheme: "standard" | "stripe" | "github" | "slack"; secret: SecretName }): Operation<{
      /** The id of the delivery, or the signature if the scheme has no ids. */
      id: string;
      /** The time of the signature, in seconds since 1970; null if the scheme has none. */
      timestamp: number | null;
    }>;
  }

  type JobParams<J extends JobName> = J extends keyof Jobs ? Jobs[J] : object;
  type JobArguments<J extends JobName> = {} extends JobParams<J>
    ? [params?: JobParams<J>, options?: JobOptions]
    : [params: JobParams<J>, options?: JobOptions];
  /** When a job runs, and its key. By default a job runs as soon as the request has committed. */
  export interface JobOptions {
    /** The delay before the job runs, in seconds. */
    delay?: number;
    /** The time when the job runs; a time in the past means at once. It cannot be used with `delay`. */
    at?: string | Date;
    /** A tenant has at most one live job with this name and key. While that job waits or runs, it is returned and no new one is created. */
    key?: string;
  }
  export interface EnqueuedJob {
    id: string;
    /** False if a live job with this key existed already. */
    created: boolean;
  }
  /** Jobs that the schema declares. They run after the commit. */
  export const jobs: {
    /**
     * Enqueues a job in the transaction of the request: the job runs if and only if the request
     * commits. The parameters are checked at once; the error is `invalid`.
     */
    enqueue<J extends JobName>(name: J, ...args: JobArguments<J>): Operation<EnqueuedJob>;
    /**
     * Cancels a job of the caller's tenant: it does not run again, and the writes of a current run are not
     * committed. The result is false if the job had ended already. If the id is unknown, the error is `not_found`.
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
    /** The claims of the caller's JWT; absent for other callers. */
    readonly claims?: Readonly<Record<string, unknown>>;
  }

  /** What a handler can use besides the request itself. */
  export interface Context {
    readonly client: { readonly apiKeys: ApiKeys; readonly sessions: Sessions; readonly webhooks: Webhooks };
    readonly auth: Auth;
    /** The id of the request, in the header of the answer and in the log. */
    readonly requestId: string;
    /** The template of the matched route: `/v1/orders/:id`. */
    readonly route: string;
    /** The time when the request times out. */
    readonly deadline: Date;
    /**
     * The job that the handler runs for. Use `id` as the idempotency key of requests that must not be
     * executed twice. `attempt` counts the runs from 1; `scheduledFor` is the planned time of the first run.
     */
    readonly job?: { readonly id: string; readonly attempt: number; readonly scheduledFor: Date };
    /** The value of a secret that the schema declares. */
    secret(name: SecretName): Operation<string>;
    /** Commits the writes of this request whatever its status is. By default a status of 400 or more discards them. */
    keepWrites(): void;
  }
  /**
   * The variables that the schema declares, with their values on this server. They can be
   * read in a handler, but not while the module is built. A duration is in seconds, a decimal is a string.
   */
  export const vars: Names extends { vars: infer V } ? Readonly<V> : Readonly<Record<string, any>>;

  /** The context of the current request. */
  export function getContext(): Context;

  /**
   * Passwords. The runner hashes them, a few at the same time, and the handler waits. The time
   * of a hash counts as CPU time of the request.
   */
  export const password: {
    /** A new hash of the password with Argon2id, as a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$…`. */
    hash(password: string): Promise<string>;
    /**
     * Compares a password with a hash: one of `password.hash`, or of bcrypt, scrypt or PBKDF2 as
     * Django, passlib and others write them. The result of a wrong password
     * is `false`, that of the right one an object. If its `rehash` is true, store a new hash: this one
     * has another algorithm or other parameters. Pass `null` for a user who does not exist: the result
     * is `false`, after the same time.
     */
    verify(password: string, hash: string | null | undefined): Promise<false | { rehash: boolean }>;
  };

  /** Compares signatures or tokens. The time depends only on their lengths. */
  export function timingSafeEqual(a: string | ArrayBuffer | ArrayBufferView, b: string | ArrayBuffer | ArrayBufferView): boolean;

  /**
   * The HMAC (RFC 2104) of text or bytes with a secret that the schema declares. The handler
   * does not have to read the secret. For other keys use `crypto.subtle`.
   */
  export function hmac(
    algorithm: "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512",
    secret: SecretName,
    data: string | ArrayBuffer | ArrayBufferView,
  ): Operation<{ hex: string; base64: string }>;

  /** Runs an operation by its name, with its arguments and its result as JSON: `await call("count", { from: "Order" })`. */
  export function call<T = any>(op: string, args?: object): Operation<T>;

  /** A failed operation. */
  export class HostError extends Error {
    readonly code: "not_found" | "invalid" | "denied" | "conflict" | "too_large" | "limit" | "unavailable" | "deadline" | "internal";
    /** The operation: `query`, `fetch`, …; absent if a handler created the error. */
    readonly op?: string;
    /** The entity of an operation on rows. */
    readonly entity?: string;
    /** The field that the error is about, such as `email` for a `conflict`. The fields of `@@unique` are separated by commas. */
    readonly field?: string;
    constructor(code: HostError["code"], message?: string);
  }
  /** A body that is not JSON. */
  export class BodyError extends Error {}
}
