// Each of these has a value without a form in JSON. They are made with the type any, as values of
// bodies and of packages are.

import {
  aggregate, and, call, field, getContext, hmac, html, HostError, insert, jobs, not, ok, or, password, query, remove, select, text, timingSafeEqual, update,
} from "@runner/sdk";

const any = (value?: unknown): any => value;
const missing = any(), invalid = any(new Date("tomorrow")), nan = any(Number("many"));
class Secret {
  #value = "s";
  reveal() {
    return this.#value;
  }
}
class When {
  constructor(readonly value: unknown) {}
  toJSON() {
    return this.value;
  }
}
const check = "check it before the query, or compare with null on purpose";
const before = "check it first, or use null on purpose";
class Named {
  get user() {
    return "bob";
  }
}
const keys = () => getContext().client.apiKeys;
const sessions = () => getContext().client.sessions;
const account = (values: object) => any({ email: "new@example.com", password: "x", tags: [], ...values });
const circle: any = {};
circle.self = circle;

const all: [attempt: () => unknown, message: string][] = [
  // Conditions.
  [() => query("Account").where("resetToken", "=", missing), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").where("resetToken", "!=", missing), `resetToken: the value of != is undefined: ${check}`],
  [() => any(query("Account")).where("resetToken", "="), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").where("seenAt", ">", invalid), `seenAt: the value of > is an invalid date: ${check}`],
  [() => query("Account").where("score", "<", nan), `score: the value of < is NaN: ${check}`],
  [() => query("Account").where("score", ">=", any(-Infinity)), `score: the value of >= is -Infinity: ${check}`],
  [() => query("Account").where("score", "=", any(Object(NaN))), `score: the value of = is NaN: ${check}`],
  [() => query("Account").where("email", "in", ["a", missing]), `email: the value of in has undefined at [1]: ${check}`],
  [() => query("Account").where("email", "in", missing), `email: the value of in is undefined: ${check}`],
  [() => query("Account").where("email", "in", any(new Array(2))), `email: the value of in has undefined at [0]: ${check}`],
  [() => query("Account").where("email", "in", any(new Set(["a"]))), "email: the value of in is a Set: [...set] is a list"],
  [() => query("Account").where("email", "startsWith", missing), `email: the value of startsWith is undefined: ${check}`],
  [() => query("Account").where("tags", "contains", missing), `tags: the value of contains is undefined: ${check}`],
  [() => query("Account").where("email", "=", missing, { ignoreCase: true }), `email: the value of = is undefined: ${check}`],
  [() => query("Account").where("password", "=", any(password.hash("x"))), "password: the value of = is a promise: await it"],
  [() => query("Account").where("password", "=", any(query("Account"))), "password: the value of = is a promise: await it"],
  [() => query("Account").where("password", "=", any(() => "x")), "password: the value of = is a function: call it"],
  [() => query("Account").where("password", "=", any(Symbol("x"))), "password: the value of = is a symbol: its description is a text"],
  [() => query("Account").where("visits", "=", any(1n)), "visits: the value of = is a BigInt: Number(n) is a number, String(n) a text"],
  [() => query("Account").where("password", "=", any(/x/)), "password: the value of = is a RegExp: its source is a text"],
  [() => query("Account").where("password", "=", any(new Error("x"))), "password: the value of = is an Error: tell its message, or throw it"],
  [() => query("Account").where("password", "=", any(new Secret())), "password: the value of = is an object whose class has neither fields nor toJSON: name the value that is meant"],
  [() => query("Account").where("seenAt", "=", any(new When(null))), `seenAt: the value of = is an object whose toJSON gives null: ${check}`],
  [() => query("Account").where("seenAt", "=", any(new When(NaN))), `seenAt: the value of = is NaN: ${check}`],
  [() => query("Account").where("seenAt", "=", any(new When(new When(NaN)))), `seenAt: the value of = is NaN: ${check}`],
  [() => query("Account").where("seenAt", "=", any(new When(invalid))), `seenAt: the value of = is an invalid date: ${check}`],
  [() => query("Account").where("seenAt", "=", any(new When(undefined))), `seenAt: the value of = is undefined: ${check}`],
  [() => query("Account").where("password", "=", any("\ud800")), "query: where[0][2] must not have half of a surrogate pair, such as \\ud800"],
  [() => query("Account").match(field("score", "=", 1), field("resetToken", "=", missing)), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").match(or(field("score", "=", 1), and(field("score", "=", 1), field("resetToken", "=", missing)))), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").match(not(field("resetToken", "=", missing))), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").include("notes", (q) => q.where("text", "=", missing)), `include.notes: text: the value of = is undefined: ${check}`],
  [() => query("Account").where("resetToken", "=", missing).count(), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").where("resetToken", "=", missing).first(), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").where("resetToken", "=", missing).page(), `resetToken: the value of = is undefined: ${check}`],
  [() => aggregate("Account").where("resetToken", "=", missing).count(), `resetToken: the value of = is undefined: ${check}`],
  [() => update("Account", { password: "x" }).where("resetToken", "=", missing), `resetToken: the value of = is undefined: ${check}`],
  [() => update("Account", { password: "x" }).where("resetToken", "=", missing).rows(), `resetToken: the value of = is undefined: ${check}`],
  [() => remove("Account").where("resetToken", "=", missing), `resetToken: the value of = is undefined: ${check}`],
  [() => call("delete", { from: "Account", where: [["resetToken", "=", missing]] }), `resetToken: the value of = is undefined: ${check}`],
  [() => query("Account").where(missing, "=", "x"), `query: where[0][0] is undefined: ${before}`],
  // What else a query takes.
  [() => query("Account").limit(nan), "limit: NaN is not a whole number"],
  [() => query("Account").limit(any(null)), "limit: null is not a whole number"],
  [() => query("Account").limit(missing), "limit: undefined is not a whole number"],
  [() => query("Account").limit(any("10")), 'limit: "10" is not a whole number'],
  [() => query("Account").limit(1.5), "limit: 1.5 is not a whole number"],
  [() => query("Account").after(nan), `query: cursor is NaN: ${before}`],
  [() => query("Account").orderBy(missing), `query: orderBy[0][0] is undefined: ${before}`],
  [() => query("Account").select(missing), `query: select[0] is undefined: ${before}`],
  [() => select(missing).from(any("Account")), `query: select[0] is undefined: ${before}`],
  [() => query("Account").include("notes", [missing]), `query: include.notes.select[0] is undefined: ${before}`],
  [() => query("Account").include("notes", (q) => q.limit(nan)), "limit: NaN is not a whole number"],
  [() => aggregate("Account").sum(missing), `aggregate: sum[0] is undefined: ${before}`],
  // Values of rows.
  [() => insert("Account", account({ seenAt: invalid })), `insert: values.seenAt is an invalid date: ${before}`],
  [() => insert("Account", account({ score: nan })), `insert: values.score is NaN: ${before}`],
  [() => insert("Account", account({ tags: ["a", missing] })), `insert: values.tags[1] is undefined: ${before}`],
  [() => insert("Account", account({ resetToken: Symbol("x") })), "insert: values.resetToken is a symbol: its description is a text"],
  [() => insert("Account", account({ resetToken: () => "x" })), "insert: values.resetToken is a function: call it"],
  [() => insert("Account", account({ password: password.hash("x") })), "insert: values.password is a promise: await it"],
  [() => insert("Account", account({ meta: new Map([["a", 1]]) })), "insert: values.meta is a Map: Object.fromEntries(map) is an object, [...map] a list"],
  [() => insert("Account", account({ meta: new Set() })), "insert: values.meta is a Set: [...set] is a list"],
  [() => insert("Account", account({ meta: new WeakMap() })), "insert: values.meta is a WeakMap: its content cannot be read"],
  [() => insert("Account", account({ meta: [1].values() })), "insert: values.meta is an iterator: [...iterator] is a list"],
  [() => insert("Account", account({ meta: (function* () {})() })), "insert: values.meta is an iterator: [...iterator] is a list"],
  [() => insert("Account", account({ meta: new Uint8Array(2) })), "insert: values.meta is binary data: its text in base64 is a value"],
  [() => insert("Account", account({ meta: 10n ** 20n })), "insert: values.meta is a BigInt: Number(n) is a number, String(n) a text"],
  [() => insert("Account", account({ meta: NaN })), `insert: values.meta is NaN: ${before}`],
  [() => insert("Account", account({ meta: { items: [1, 2, 3, { at: invalid }] } })), `insert: values.meta.items[3].at is an invalid date: ${before}`],
  [() => insert("Account", account({ meta: { items: [1, , 3] } })), `insert: values.meta.items[1] is undefined: ${before}`],
  [() => insert("Account", account({ meta: { when: new When({ at: [NaN] }) } })), `insert: values.meta.when.at[0] is NaN: ${before}`],
  [() => insert("Account", account({ meta: circle })), "insert: values.meta.self.self is nested too deeply: at most 64 levels, and nothing that contains itself"],
  [() => insert("Account", [account({}), account({ meta: { a: Infinity } })]), `insert: values[1].meta.a is Infinity: ${before}`],
  [() => insert("Account", [account({}), missing]), `insert: values[1] is undefined: ${before}`],
  [() => insert("Account", missing), 'insert: member "values" is missing'],
  [() => update("Account", { seenAt: invalid }).every(), `update: set.seenAt is an invalid date: ${before}`],
  [() => update("Account", { score: nan }).every(), `update: set.score is NaN: ${before}`],
  [() => update("Account", { meta: { a: [{ b: nan }] } }).every().rows(), `update: set.meta.a[0].b is NaN: ${before}`],
  [() => update("Account", missing).every(), 'update: member "set" is missing'],
  // Jobs, keys, sessions and the others.
  [() => jobs.enqueue("remind", { meta: { at: invalid } }), `jobs.enqueue: params.meta.at is an invalid date: ${before}`],
  [() => jobs.enqueue("remind", { meta: new Map() }), "jobs.enqueue: params.meta is a Map: Object.fromEntries(map) is an object, [...map] a list"],
  [() => jobs.enqueue("remind", { meta: 1, at: invalid }), `jobs.enqueue: params.at is an invalid date: ${before}`],
  [() => jobs.enqueue("remind", { meta: 1 }, { delay: nan }), `jobs.enqueue: delay is NaN: ${before}`],
  [() => jobs.enqueue("remind", { meta: 1 }, { at: invalid }), `jobs.enqueue: at is an invalid date: ${before}`],
  [() => jobs.enqueue("remind", { meta: 1 }, any({ after: 60 })), 'jobs.enqueue: unknown option "after"; known: delay, at, key'],
  [() => jobs.enqueue("remind", { meta: 1 }, any(60)), "jobs.enqueue: the options are an object with delay, at, key"],
  [() => jobs.cancel(missing), 'jobs.cancel: member "id" is missing'],
  [() => keys().create({ scope: "all", expiresIn: nan }), `apiKeys.create: expiresIn is NaN: ${before}`],
  [() => keys().create({ scope: "all", metadata: { plan: { until: invalid } } }), `apiKeys.create: metadata.plan.until is an invalid date: ${before}`],
  [() => keys().create({ scope: "all", metadata: new Map() }), "apiKeys.create: metadata is a Map: Object.fromEntries(map) is an object, [...map] a list"],
  [() => keys().list({ limit: nan }), `apiKeys.list: limit is NaN: ${before}`],
  // Options that would count as left out, and end tokens or sessions, or list all.
  [() => keys().rotate("key_x", any(Promise.resolve({ gracePeriod: 60 }))), "apiKeys.rotate: the options are an object with gracePeriod"],
  [() => keys().rotate("key_x", any(new Map([["gracePeriod", 60]]))), "apiKeys.rotate: the options are an object with gracePeriod"],
  [() => keys().list(any(query("Account"))), "apiKeys.list: the options are an object with scope, limit, cursor"],
  [() => sessions().list(any(Object.create({ user: "bob" }))), "sessions.list: the options are an object with user, tenant, allTenants, limit, cursor"],
  [() => sessions().revokeAll(any(new Named())), "sessions.revokeAll: the options are an object with user, tenant, allTenants, except"],
  [() => jobs.enqueue("remind", { meta: 1 }, any(Promise.resolve({ delay: 60 }))), "jobs.enqueue: the options are an object with delay, at, key"],
  [() => keys().get(missing), 'apiKeys.get: member "id" is missing'],
  [() => sessions().revoke(missing), "sessions.revoke: id is undefined: check it before, or call revoke() to end the session of this request"],
  [() => sessions().revoke(any(null)), "sessions.revoke: id is null: check it before, or call revoke() to end the session of this request"],
  [() => query("Account").where("email", "=", "ada", any({ ignorecase: true })), 'query: unknown option "ignorecase"; known: ignoreCase'],
  [() => field("email", "=", "ada", any(true)), "query: the options are an object with ignoreCase"],
  [() => keys().revoke(missing), 'apiKeys.revoke: member "id" is missing'],
  [() => getContext().client.sessions.create({ userId: "u", ttl: nan }), `sessions.create: ttl is NaN: ${before}`],
  [() => getContext().client.sessions.create({ userId: "u", roles: ["staff", missing] }), `sessions.create: roles[1] is undefined: ${before}`],
  [() => getContext().client.sessions.create({ userId: missing }), 'sessions.create: member "userId" is missing'],
  [() => getContext().client.webhooks.verify({ scheme: "github", secret: missing }), 'webhooks.verify: member "secret" is missing'],
  [() => getContext().secret(missing), 'secret: member "name" is missing'],
  [() => hmac("SHA-256", "HOOK", missing), "the bytes must be an ArrayBuffer or a view of one"],
  [() => timingSafeEqual(missing, missing), "the bytes must be an ArrayBuffer or a view of one"],
  [() => password.hash(missing), "password.hash: a password is a string"],
  [() => fetch("https://example.com/", { timeout: nan }), `fetch: timeout is NaN: ${before}`],
  // Answers that would have the text "undefined".
  [() => text(missing), "text: the body is undefined"],
  [() => html(missing), "html: the body is undefined"],
  [() => ok().withHeader("x-a", missing), "withHeader: the value of x-a is undefined"],
];

/** Tells each attempt that does not fail with its message. */
export async function attempts() {
  const told: string[] = [];
  for (const [attempt, message] of all) {
    let was = "no error";
    try {
      await attempt();
    } catch (error) {
      was = error instanceof HostError && error.code !== "invalid" ? `${error.code} ${error.message}` : (error as Error).message;
    }
    if (was !== message) told.push(`was: ${was}\nwant: ${message}`);
  }
  return told.length > 0 ? text(told.join("\n")) : ok(all.length);
}

export const remind = () => ok();

/** Absent members are absent, and null is null on purpose. */
export async function allowed() {
  const made = await insert("Account", account({ resetToken: undefined, seenAt: null, score: -0, visits: undefined, meta: { a: undefined, b: null, c: [new Date(0), Object(1), new When("x")] } }));
  const none = await query("Account").where("resetToken", "=", null).where("seenAt", "=", any(null)).where("email", "=", made.email).after(undefined).count();
  await update("Account", { password: "y", meta: undefined, score: undefined }).where("id", "=", made.id);
  const seen = await update("Account", { seenAt: new Date(5) }).where("id", "=", made.id).rows();
  await remove("Account").where("id", "=", made.id);
  return ok({ none, ...seen[0], id: undefined });
}
