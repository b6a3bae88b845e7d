// The rows of the app's store, with an operator's rights.

import { HostError, written } from "../src/host.ts";
import { query } from "../src/query.ts";
import { ask, Lazy, type Started } from "./host.ts";

type Selection = ReturnType<typeof query>;

const page = 1000; // rows, the most that one query gives

async function run(entity: string, op: string, args: object, started: Started): Promise<any> {
  written(op, args); // names a value that has no JSON form
  return ask("rows", { entity, op, args }, started);
}

class Rows implements PromiseLike<any[]> {
  readonly #entity: string;
  readonly #query: Selection;
  constructor(entity: string, query: Selection) {
    this.#entity = entity;
    this.#query = query;
  }
  #next(query: Selection): Rows {
    return new Rows(this.#entity, query);
  }
  // The steps are those of the SDK's query.
  where(...given: Parameters<Selection["where"]>): Rows {
    return this.#next(this.#query.where(...given));
  }
  match(...given: Parameters<Selection["match"]>): Rows {
    return this.#next(this.#query.match(...given));
  }
  select(...given: string[]): Rows {
    return this.#next(this.#query.select(...given));
  }
  orderBy(...given: Parameters<Selection["orderBy"]>): Rows {
    return this.#next(this.#query.orderBy(...given));
  }
  limit(n: number): Rows {
    return this.#next(this.#query.limit(n));
  }
  include(...given: Parameters<Selection["include"]>): Rows {
    return this.#next(this.#query.include(...given));
  }

  #lazy<T>(title: string, op: string, args: object, make: (result: any) => T): Lazy<T> {
    return new Lazy(`rows("${this.#entity}")${title}`, async (started) => make(await run(this.#entity, op, args, started)));
  }
  #from(query = this.#query): Record<string, unknown> {
    return { ...query.options(), from: this.#entity };
  }
  all(): Lazy<any[]> {
    const args = this.#from();
    return new Lazy(`rows("${this.#entity}").all()`, async (started) => {
      if (args.limit !== undefined) return (await run(this.#entity, "query", args, started)).rows;
      const all: any[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const { rows, nextCursor } = await run(this.#entity, "query", { ...args, limit: page, cursor }, started);
        for (const row of rows) all.push(row);
        cursor = nextCursor ?? null;
      }
      return all;
    });
  }
  first(): Lazy<any> {
    return this.#lazy(".first()", "query", this.#from(this.#query.limit(1)), ({ rows }) => rows[0] ?? null);
  }
  count(): Lazy<number> {
    const { from, where } = this.#from();
    return this.#lazy(".count()", "count", { from, where }, ({ count }) => count);
  }
  then<A = any[], B = never>(done?: ((value: any[]) => A | PromiseLike<A>) | null, failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<A | B> {
    return this.all().then(done, failed);
  }

  insert(values: object | object[]): Lazy<any> {
    return this.#lazy(".insert(…)", "insert", { into: this.#entity, values }, ({ rows }) => (Array.isArray(values) ? rows : rows[0]));
  }
  get(id: string): Lazy<any> {
    return this.#lazy(`.get("${id}")`, "get", { from: this.#entity, id }, ({ row }) => row);
  }
  update(id: string, set: object): Lazy<any> {
    return this.#lazy(`.update("${id}", …)`, "update", { in: this.#entity, set, where: [["id", "=", id]] }, ({ rows }) => rows?.[0] ?? this.#missing(id, "update"));
  }
  delete(id: string): Lazy<void> {
    return this.#lazy(`.delete("${id}")`, "delete", { from: this.#entity, where: [["id", "=", id]] }, ({ count }) => {
      if (count === 0) this.#missing(id, "delete");
    });
  }
  #missing(id: string, op: string): never {
    throw new HostError("not_found", `no row of ${this.#entity} has the id ${id}`, op, this.#entity);
  }
}

export function rows(entity: string): Rows {
  if (typeof entity !== "string" || entity === "") throw new TypeError('rows: the name of an entity is missing: rows("Order")');
  return new Rows(entity, query(entity));
}
