/**
 * Tests of an app: files `test/*.test.ts`, which `runner test` runs.
 *
 * ```ts
 * import { as, expect, rows, test } from "@runner/test";
 *
 * test("a partner sees its orders", async () => {
 *   await rows("Order").insert({ number: "A-1" });
 *   const partner = as.key("partner_sync", { tenant: "acme" });
 *   const answer = await partner.get("/v1/orders");
 *   expect(answer.status).toBe(200);
 *   expect(await answer.json()).toMatchObject([{ number: "A-1" }]);
 * });
 * ```
 *
 * Each test runs on its own copy of the data of the app. Variables of a file are not reset between tests.
 */
declare module "@runner/test" {
  import type { EntityName, Insert, JobName, Matching, Condition, Operand, Operator, RoleName, Row, ScopeName, Update, Where } from "@runner/sdk";

  /** Milliseconds, or text such as `"500ms"`, `"30s"`, `"15m"`, `"12h"`, `"90d"`, `"2w"`. */
  export type Duration = number | string;

  interface AddTest {
    /** Registers a test. It fails if the function throws, or if its promise is rejected or does not settle within the timeout (default: 5 seconds). */
    (name: string, fn: () => unknown, timeout?: Duration): void;
    /**
     * Registers a test for each row of a table. The items of a row that is an array are the arguments.
     * In the name, `%s` is replaced by an argument, `%#` by the index of the row, and `$name` by that
     * member of a row that is an object.
     */
    each: Each;
  }
  interface Each {
    <T extends any[] | [any]>(table: readonly T[]): (name: string, fn: (...values: T) => unknown, timeout?: Duration) => void;
    <T>(table: readonly T[]): (name: string, fn: (value: T) => unknown, timeout?: Duration) => void;
  }
  interface AddBlock {
    /** Groups tests. Hooks in the function apply to these tests only. */
    (name: string, fn: () => void): void;
    each: Each;
  }
  export const test: AddTest & {
    /** If a file has tests with `only`, its other tests are skipped. */
    only: AddTest;
    skip: AddTest;
    /** A test that is not written yet. */
    todo(name: string): void;
  };
  export { test as it };
  export const describe: AddBlock & { only: AddBlock; skip: AddBlock };

  /** Runs once, before the tests of the file or block. Each of them begins with the data that it has stored. */
  export function beforeAll(fn: () => unknown, timeout?: Duration): void;
  export function afterAll(fn: () => unknown, timeout?: Duration): void;
  export function beforeEach(fn: () => unknown, timeout?: Duration): void;
  export function afterEach(fn: () => unknown, timeout?: Duration): void;

  export interface RequestOptions {
    headers?: HeadersInit;
    /** Parameters of the query. A list becomes one parameter for each value. `undefined` is left out. */
    query?: Record<string, unknown> | URLSearchParams;
  }
  /**
   * A caller of the app. Redirects are not followed. Cookies that a response sets are sent with later
   * requests. Objects, lists, numbers, booleans and null are sent as JSON; text, bytes, `FormData` and
   * `URLSearchParams` as they are.
   */
  export interface Client {
    get(path: string, options?: RequestOptions): Promise<Response>;
    head(path: string, options?: RequestOptions): Promise<Response>;
    post(path: string, body?: unknown, options?: RequestOptions): Promise<Response>;
    put(path: string, body?: unknown, options?: RequestOptions): Promise<Response>;
    patch(path: string, body?: unknown, options?: RequestOptions): Promise<Response>;
    delete(path: string, options?: RequestOptions): Promise<Response>;
    fetch(path: string, options?: RequestOptions & { method?: string; body?: unknown }): Promise<Response>;
  }
  /** Creates callers, in tests or outside. Their credentials are created with their first request. */
  export const as: {
    /** A caller with a new API key of a scope. */
    key(scope: ScopeName, options?: { tenant?: string; name?: string; metadata?: Record<string, unknown>; expiresIn?: Duration }): Client;
    /** A caller with a session of a user. */
    session(options: { user: string; tenant?: string; roles?: readonly RoleName[]; expiresIn?: Duration }): Client;
    /** A caller with an identity token of these claims, if the schema has `session jwt`. */
    jwt(claims: Record<string, unknown>): Client;
    /** A new caller without credentials. */
    anonymous(): Client;
  };
  /** A caller without credentials. */
  export const request: Client;

  /** An operation that runs when it is awaited. The test fails if it is never awaited. */
  export interface Lazy<T> extends PromiseLike<T> {
    catch<B = never>(failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<T | B>;
    finally(done?: (() => void) | null): Promise<T>;
  }

  type FieldOf<R> = keyof R & string;
  /** A query for rows of an entity. `await` returns all rows that match. */
  export interface Rows<E extends EntityName, R = Row<E>> extends PromiseLike<R[]> {
    where<G extends FieldOf<Row<E>>, O extends Operator>(field: G, operator: O, value: Operand<Where<E>[G & keyof Where<E>], O>, matching?: Matching): Rows<E, R>;
    match(...conditions: Condition[]): Rows<E, R>;
    select<G extends FieldOf<Row<E>>>(...fields: G[]): Rows<E, Pick<Row<E>, G>>;
    orderBy(field: FieldOf<Row<E>>, direction?: "asc" | "desc"): Rows<E, R>;
    limit(n: number): Rows<E, R>;
    /** Includes the rows of a relation, as in a query of the SDK. */
    include(relation: string, fields?: readonly string[]): Rows<E, any>;
    all(): Lazy<R[]>;
    /** The first row, or null. */
    first(): Lazy<R | null>;
    count(): Lazy<number>;
  }
  /** A new row. It may set fields that handlers cannot set, such as the tenant. */
  type NewRow<E extends EntityName> = Insert<E> & Partial<Omit<Row<E>, keyof Insert<E> | "id">>;
  /** The rows of an entity. The test reads and changes them as an operator: grants and policies do not apply. */
  export function rows<E extends EntityName>(entity: E): Rows<E> & {
    insert(values: readonly NewRow<E>[]): Lazy<Row<E>[]>;
    insert(values: NewRow<E>): Lazy<Row<E>>;
    /** The row with an id. The code of the error is `not_found` if it does not exist. */
    get(id: string): Lazy<Row<E>>;
    update(id: string, changes: Update<E>): Lazy<Row<E>>;
    delete(id: string): Lazy<void>;
  };

  /** The clock of the app. It does not change `Date.now()` in the test. */
  export const clock: {
    set(time: Date | string): Lazy<Date>;
    advance(by: Duration): Lazy<Date>;
    now(): Lazy<Date>;
  };

  export interface Job {
    readonly id: string;
    readonly name: JobName;
    readonly state: "waiting" | "running" | "done" | "failed" | "cancelled";
    readonly params: any;
    /** How many of its runs have begun. */
    readonly attempt: number;
    /** Why the last run has failed. */
    readonly error?: string;
    readonly [more: string]: unknown;
  }
  /** The jobs of the app. They run only when the test calls `jobs.run()`. */
  export const jobs: {
    /** Runs the jobs that are due, and the jobs that these enqueue. Returns the jobs that ran. */
    run(): Lazy<Job[]>;
    /** Enqueues a job as an operator. Without `tenant` it belongs to no tenant. */
    enqueue(name: JobName, params?: object, options?: { tenant?: string }): Lazy<{ id: string }>;
    /** All jobs, or those of a name, the newest first. */
    list(name?: JobName): Lazy<Job[]>;
    failed(name?: JobName): Lazy<Job[]>;
    waiting(name?: JobName): Lazy<Job[]>;
  };

  /** Calls a function of the schema as an operator. */
  export function call<T = any>(name: string, params?: object, options?: { tenant?: string; user?: string }): Lazy<{ status: number; body: T }>;

  /** Takes the place of other services: the test answers the requests that handlers send with `fetch`. */
  export const outbound: {
    /**
     * Answers requests to a URL and to the URLs below it, or to URLs that match an expression. If several
     * match, the last one registered answers. If the function throws, the handler's `fetch` fails. The
     * test fails if a request has no answer. In `beforeAll` it applies to all tests of the file or block.
     */
    on(url: string | URL | RegExp, fn: (request: Request) => Response | Promise<Response>): void;
    /** The requests that handlers have sent in this test. */
    readonly requests: readonly Request[];
  };

  /** Stands for several values, such as `expect.any(Number)`. */
  export interface AsymmetricMatcher {
    readonly text: string;
  }
  interface Matchers<R> {
    readonly not: Matchers<R>;
    /** The same value, as `Object.is` compares. Objects must be the same object. */
    toBe(expected: unknown): R;
    /** Equal content. Members that are `undefined` are ignored. Classes are not compared. */
    toEqual(expected: unknown): R;
    /** Equal content and the same classes. Members that are `undefined` are compared. */
    toStrictEqual(expected: unknown): R;
    /** Has at least these members. Lists must have the same length. */
    toMatchObject(expected: object): R;
    toBeNull(): R;
    toBeUndefined(): R;
    toBeDefined(): R;
    toBeTruthy(): R;
    toBeFalsy(): R;
    toBeNaN(): R;
    toBeGreaterThan(than: number | bigint): R;
    toBeGreaterThanOrEqual(than: number | bigint): R;
    toBeLessThan(than: number | bigint): R;
    toBeLessThanOrEqual(than: number | bigint): R;
    /** The difference is less than 0.5 in the last digit after the point. The default is 2 digits. */
    toBeCloseTo(to: number, digits?: number): R;
    toBeInstanceOf(type: Function): R;
    /** A text contains this part, or a list contains this item. */
    toContain(item: unknown): R;
    /** A list contains an equal item. */
    toContainEqual(item: unknown): R;
    toHaveLength(length: number): R;
    /** Has a member at a path such as `"lines[0].sku"`, with this value if it is given. */
    toHaveProperty(path: string | readonly (string | number)[], value?: unknown): R;
    toMatch(expected: string | RegExp): R;
    /** The function throws: an error whose message contains this text or matches, of this class, or with the message of this error. */
    toThrow(expected?: string | RegExp | Function | Error | AsymmetricMatcher): R;
    /** Equals the snapshot in `test/__snapshots__/<file>.snap`. A new snapshot is written to the file. */
    toMatchSnapshot(hint?: string): R;
  }
  interface AsymmetricMatchers {
    objectContaining(members: object): any;
    arrayContaining(items: readonly unknown[]): any;
    stringContaining(part: string): any;
    stringMatching(expression: string | RegExp): any;
    closeTo(to: number, digits?: number): any;
  }
  export const expect: {
    (value: unknown): Matchers<void> & {
      /** The value of a promise. Await the result. */
      readonly resolves: Matchers<Lazy<void>>;
      /** The reason with which a promise is rejected. Await the result. */
      readonly rejects: Matchers<Lazy<void>>;
    };
    readonly not: AsymmetricMatchers;
    /** Any value of a class. `Number`, `String` and other wrappers match primitive values too. */
    any(type: Function): any;
    /** Any value except null and undefined. */
    anything(): any;
    /** The test fails unless it makes exactly `n` comparisons with `expect`. */
    assertions(n: number): void;
    /** The test fails unless it makes at least one comparison. */
    hasAssertions(): void;
  } & AsymmetricMatchers;
}
