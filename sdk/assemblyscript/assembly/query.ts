// Operations on rows, with the caller's authority. Each step gives a new builder and
// leaves the one that it is called on as it was.

import { fail, HostError, Outcome, tryCall } from "./host";
import { encode, nil, oddOf } from "./json";

/** The part of its result that an operation is about, as numbered by the ABI. */
export const enum Part {
  All,
  Rows,
  Row,
  /** The number of rows, which the ABI cannot hand on by itself. */
  Count,
}

/**
 * An operation: it is run by `run` and `attempt`, and by what reads its result. As the
 * body of an answer it is run and handed on without being read.
 */
export class Operation {
  part: Part = Part.All;
  private ran: Outcome | null = null;

  protected get op(): string {
    return "";
  }

  /** Its arguments, as JSON. */
  get args(): string {
    return "{}";
  }

  /** Runs it. One that fails answers (`not_found` 404, `denied` 403, `conflict` 409, `unavailable` 503, else 500) and ends the request. */
  run(): Outcome {
    const outcome = this.attempt();
    const failed = outcome.error;
    if (failed !== null) fail(failed);
    return outcome;
  }

  /** Runs it; the outcome's error says whether it failed. */
  attempt(): Outcome {
    const outcome = tryCall(this.op, this.args);
    this.ran = outcome;
    return outcome;
  }

  /** Says what it gave. */
  settle(outcome: Outcome): void {
    this.ran = outcome;
  }

  /** What it gave when it was run last. */
  get outcome(): Outcome {
    const ran = this.ran;
    return ran === null ? this.run() : ran;
  }
}

/** What a row must be like. */
export class Condition {
  constructor(
    readonly form: string,
    readonly list: bool = false,
  ) {}

  /** A comparison made by field, with =, startsWith or contains, without regard to case, by the case folding of Unicode. */
  ignoreCase(): Condition {
    return new Condition(this.form.slice(0, -1) + ',"ignoreCase"]');
  }
}

/**
 * Compares a field; the operators are =, !=, <, <=, >, >=, in, startsWith and contains. A value
 * that is missing, null, ends the request with 500: `nil` compares with null.
 */
export function field<T>(name: string, operator: string, value: T): Condition {
  const text = encode<T>(value);
  if (text == "null" && !isNil<T>(value)) refuse(name, operator, "is null");
  const odd = oddOf(text);
  if (odd !== null) refuse(name, operator, odd.place.length > 0 ? "has " + odd.what + " at " + odd.place : "is " + odd.what);
  return new Condition("[" + encode<string>(name) + "," + encode<string>(operator) + "," + text + "]");
}

function isNil<T>(value: T): bool {
  if (isReference<T>()) return changetype<usize>(value) == changetype<usize>(nil);
  return false;
}

function refuse(name: string, operator: string, is: string): void {
  fail(new HostError("invalid", name + ": the value of " + operator + " " + is + ": check it before the query, or compare with nil"));
}

/** Holds when all of the conditions do. */
export function and(conditions: Condition[]): Condition {
  return new Condition(join(forms([], conditions)), true);
}

/** Holds when one of the conditions does. */
export function or(conditions: Condition[]): Condition {
  const all = ['"or"'];
  for (let i = 0; i < conditions.length; i++) all.push(conditions[i].list ? "[" + conditions[i].form + "]" : conditions[i].form);
  return new Condition("[" + join(all) + "]");
}

/** Holds when the condition does not. */
export function not(condition: Condition): Condition {
  return new Condition('["not",' + (condition.list ? "[" + condition.form + "]" : condition.form) + "]");
}

/** Adds conditions to those that must all hold; an `and` is taken apart. */
function forms(all: string[], more: Condition[]): string[] {
  const copy = all.slice(0);
  for (let i = 0; i < more.length; i++) if (more[i].form.length > 0) copy.push(more[i].form);
  return copy;
}

function join(items: string[]): string {
  return items.join(",");
}

/** Fields of a selection, none of them for all. */
function selected(fields: string[]): string {
  return fields.length > 0 ? ',"select":' + encode<string[]>(fields) : "";
}

/** What is included, as a member of the arguments; nothing for none. */
function including(included: string[]): string {
  return included.length > 0 ? ',"include":{' + join(included) + "}" : "";
}

/** A query over the rows of an entity that the caller may read. */
export class Selection extends Operation {
  private entity: string = "";
  private fields: string[] = [];
  private conditions: string[] = [];
  private order: string[] = [];
  private most: i32 = i32.MIN_VALUE; // no limit
  private cursor: string = "";
  private included: string[] = [];
  private counting: bool = false;
  private atMost: i32 = i32.MIN_VALUE; // no limit

  constructor() {
    super();
    this.part = Part.Rows;
  }

  private copy(): Selection {
    const copy = new Selection();
    copy.entity = this.entity;
    copy.fields = this.fields;
    copy.conditions = this.conditions;
    copy.order = this.order;
    copy.most = this.most;
    copy.cursor = this.cursor;
    copy.included = this.included;
    return copy;
  }

  protected get op(): string {
    return this.counting ? "count" : "query";
  }

  get args(): string {
    const text = '{"from":' + encode<string>(this.entity);
    if (!this.counting) return text + this.options + "}";
    return text + this.condition + (this.atMost != i32.MIN_VALUE ? ',"atMost":' + this.atMost.toString() : "") + "}";
  }

  private get condition(): string {
    return this.conditions.length > 0 ? ',"where":[' + join(this.conditions) + "]" : "";
  }

  /** The arguments beside the entity, each after a comma. */
  get options(): string {
    let text = this.condition + selected(this.fields);
    if (this.order.length > 0) text += ',"orderBy":[' + join(this.order) + "]";
    if (this.most != i32.MIN_VALUE) text += ',"limit":' + this.most.toString();
    if (this.cursor.length > 0) text += ',"cursor":' + encode<string>(this.cursor);
    return text + including(this.included);
  }

  /**
   * Includes the row of a to-one relation in place of its id, or the rows of a to-many
   * relation, with the caller's authority over them: a row that the caller may not read is
   * null. What is included is a query without an entity:
   * `include("lines", select(["text"]).limit(20))`. Includes may have includes, on two levels.
   */
  include(relation: string, query: Selection = new Selection()): Selection {
    const copy = this.copy();
    copy.included = this.included.concat([inclusion(relation, query)]);
    return copy;
  }

  /** The entity, for a query that was begun with select. */
  from(entity: string): Selection {
    const copy = this.copy();
    copy.entity = entity;
    return copy;
  }

  /** The fields of the rows; without it all that the caller may read. */
  select(fields: string[]): Selection {
    const copy = this.copy();
    copy.fields = this.fields.concat(fields);
    return copy;
  }

  /** One more condition: all must hold. */
  where<T>(name: string, operator: string, value: T): Selection {
    return this.match([field<T>(name, operator, value)]);
  }

  /** More conditions, made by field, and, or and not. */
  match(conditions: Condition[]): Selection {
    const copy = this.copy();
    copy.conditions = forms(this.conditions, conditions);
    return copy;
  }

  /** The order of the rows; a second one orders what is equal in the first. */
  orderBy(name: string, direction: string = "asc"): Selection {
    const copy = this.copy();
    copy.order = this.order.concat(["[" + encode<string>(name) + "," + encode<string>(direction) + "]"]);
    return copy;
  }

  /** The maximum number of rows, 1 to 1,000; by default 100. */
  limit(n: i32): Selection {
    const copy = this.copy();
    copy.most = n;
    return copy;
  }

  /** The rows behind a cursor: the nextCursor of the page before. */
  after(cursor: string): Selection {
    const copy = this.copy();
    copy.cursor = cursor;
    return copy;
  }

  /** The rows, at most `limit`. */
  all<T>(): T[] {
    return this.run().rows<T>();
  }

  /** The rows with the cursor of the next page; as a body it is both. */
  page(): Page {
    return new Page(this.copy());
  }

  /** The first row, or null. */
  first<T>(): T | null {
    const rows = this.limit(1).all<T>();
    return rows.length > 0 ? rows[0] : null;
  }

  /** The first row; without any it fails with not_found. */
  firstOrFail<T>(): T {
    const rows = this.limit(1).all<T>();
    if (rows.length == 0) fail(new HostError("not_found", "no row of " + this.entity + " matches the conditions", "query", this.entity));
    return rows[0];
  }

  /** The first row, for an answer: `ok(query("Order").one())`. If no row matches, it is 404. */
  one(): Selection {
    const copy = this.limit(1);
    copy.part = Part.Row;
    return copy;
  }

  /** The number of rows, without regard to the limit. */
  count(): i32 {
    return this.counted().run().count;
  }

  /** Counts at most that number of rows, 1 to 1,000,000. The result has `count`, and `more` if other rows match. */
  countAtMost(rows: i32): Outcome {
    const copy = this.counted();
    copy.part = Part.All;
    copy.atMost = rows;
    return copy.run();
  }

  /** The number of rows, for an answer: `ok(query("Order").counted())`. */
  counted(): Selection {
    const copy = this.copy();
    copy.counting = true;
    copy.part = Part.Count;
    return copy;
  }
}

/** A relation with what is included of it. */
function inclusion(relation: string, query: Selection): string {
  return encode<string>(relation) + ":{" + query.options.slice(1) + "}";
}

/** Groups of the rows of an entity that the caller may read, and what is computed of them. */
export class Aggregation extends Operation {
  private conditions: string[] = [];
  private by: string[] = []; // as JSON
  private counting: bool = false;
  /** The fields of sum, avg, min and max. */
  private computed: string[][] = [[], [], [], []];

  constructor(private entity: string) {
    super();
    this.part = Part.Rows;
  }

  private copy(): Aggregation {
    const copy = new Aggregation(this.entity);
    copy.conditions = this.conditions;
    copy.by = this.by;
    copy.counting = this.counting;
    copy.computed = this.computed.slice(0);
    return copy;
  }

  private compute(at: i32, fields: string[]): Aggregation {
    const copy = this.copy();
    copy.computed[at] = this.computed[at].concat(fields);
    return copy;
  }

  protected get op(): string {
    return "aggregate";
  }

  get args(): string {
    let text = '{"from":' + encode<string>(this.entity);
    if (this.conditions.length > 0) text += ',"where":[' + join(this.conditions) + "]";
    if (this.by.length > 0) text += ',"groupBy":[' + join(this.by) + "]";
    if (this.counting) text += ',"count":true';
    const names = ["sum", "avg", "min", "max"];
    for (let i = 0; i < names.length; i++) {
      if (this.computed[i].length > 0) text += ',"' + names[i] + '":' + encode<string[]>(this.computed[i]);
    }
    return text + "}";
  }

  /** One more condition: all must hold. */
  where<T>(name: string, operator: string, value: T): Aggregation {
    return this.match([field<T>(name, operator, value)]);
  }

  /** More conditions, made by field, and, or and not. */
  match(conditions: Condition[]): Aggregation {
    const copy = this.copy();
    copy.conditions = forms(this.conditions, conditions);
    return copy;
  }

  /** The fields, at most two, that are equal in a group; without it all rows are one group. There may be 1,000 groups. */
  groupBy(fields: string[]): Aggregation {
    const copy = this.copy();
    copy.by = this.by.slice(0);
    for (let i = 0; i < fields.length; i++) copy.by.push(encode<string>(fields[i]));
    return copy;
  }

  /**
   * Groups by the "day", "week" or "month" of a time, in a time zone such as "Europe/Berlin". The group has the first day
   * of the period, such as "2026-10-25". Weeks begin on Monday. A date has no time zone: omit it.
   */
  groupByTime(name: string, period: string, zone: string = ""): Aggregation {
    const copy = this.copy();
    const by = [name, period];
    if (zone.length > 0) by.push(zone);
    copy.by = this.by.concat([encode<string[]>(by)]);
    return copy;
  }

  /** The number of rows. */
  count(): Aggregation {
    const copy = this.copy();
    copy.counting = true;
    return copy;
  }

  sum(fields: string[]): Aggregation {
    return this.compute(0, fields);
  }

  avg(fields: string[]): Aggregation {
    return this.compute(1, fields);
  }

  min(fields: string[]): Aggregation {
    return this.compute(2, fields);
  }

  max(fields: string[]): Aggregation {
    return this.compute(3, fields);
  }

  /** The groups: classes with the members group, count, sum, avg, min and max that were asked for. Null is no value. */
  all<T>(): T[] {
    return this.run().rows<T>();
  }
}

/** Begins an aggregation: `aggregate("Order").groupBy(["status"]).sum(["total"]).count()`. */
export function aggregate(entity: string): Aggregation {
  return new Aggregation(entity);
}

/** A page of rows, with the cursor of the next one. */
export class Page extends Operation {
  constructor(private query: Selection) {
    super();
  }

  protected get op(): string {
    return "query";
  }

  get args(): string {
    return this.query.args;
  }

  /** The rows of the page. */
  rows<T>(): T[] {
    return this.outcome.rows<T>();
  }

  /** The cursor of the next page, empty on the last one. */
  get nextCursor(): string {
    return this.outcome.nextCursor;
  }
}

/** Begins a query of an entity. */
export function query(entity: string): Selection {
  return new Selection().from(entity);
}

/** Begins a query with its fields: `select(["id"]).from("Order")`. */
export function select(fields: string[]): Selection {
  return new Selection().select(fields);
}

/** One row by its id. */
export class Lookup extends Operation {
  constructor(
    private entity: string,
    private id: string,
    private fields: string[],
    private included: string[] = [],
  ) {
    super();
    this.part = Part.Row;
  }

  /** Includes rows of a relation, as a query does. */
  include(relation: string, query: Selection = new Selection()): Lookup {
    return new Lookup(this.entity, this.id, this.fields, this.included.concat([inclusion(relation, query)]));
  }

  protected get op(): string {
    return "get";
  }

  get args(): string {
    return '{"from":' + encode<string>(this.entity) + ',"id":' + encode<string>(this.id) + selected(this.fields) + including(this.included) + "}";
  }

  /** The row. One that is not there and one that the caller may not read are the same error, not_found. */
  row<T>(): T {
    return this.run().row<T>();
  }
}

/** Looks up one row by its id; the fields are all that the caller may read unless some are named. */
export function get(entity: string, id: string, fields: string[] = []): Lookup {
  return new Lookup(entity, id, fields);
}

/** New rows. */
export class Insertion extends Operation {
  constructor(
    private entity: string,
    private values: string,
  ) {
    super();
    this.part = values.startsWith("[") ? Part.Rows : Part.Row;
  }

  protected get op(): string {
    return "insert";
  }

  get args(): string {
    return '{"into":' + encode<string>(this.entity) + ',"values":' + this.values + "}";
  }

  /** Inserts, and gives the row as it is then; of several the first. */
  row<T>(): T {
    return this.run().row<T>();
  }

  /** Inserts, and gives the rows as they are then. */
  rows<T>(): T[] {
    return this.run().rows<T>();
  }
}

/**
 * Inserts a row, or a list of at most 1,000: a class with `@json`, `fields()`, or an
 * array of those. A field without a value is to be left out: mark it `@omitnull()`.
 */
export function insert<T>(entity: string, values: T): Insertion {
  return new Insertion(entity, encode<T>(values));
}

/** A change of rows. Without a condition it is an error unless `every` says that all are meant. */
export class Change extends Operation {
  private conditions: string[] = [];
  private meansAll: bool = false;
  private most: i32 = i32.MIN_VALUE; // no limit

  constructor(
    private entity: string,
    private set: string,
  ) {
    super();
    this.part = Part.Count;
  }

  private copy(): Change {
    const copy = new Change(this.entity, this.set);
    copy.conditions = this.conditions;
    copy.meansAll = this.meansAll;
    copy.most = this.most;
    copy.part = this.part;
    return copy;
  }

  protected get op(): string {
    return "update";
  }

  get args(): string {
    return '{"in":' + encode<string>(this.entity) + ',"set":' + this.set + changed(this.conditions, this.meansAll, this.most) + "}";
  }

  /** One more condition: all must hold. */
  where<T>(name: string, operator: string, value: T): Change {
    return this.match([field<T>(name, operator, value)]);
  }

  /** More conditions, made by field, and, or and not. */
  match(conditions: Condition[]): Change {
    const copy = this.copy();
    copy.conditions = forms(this.conditions, conditions);
    return copy;
  }

  /** Permits to run without a condition, on all rows. */
  every(): Change {
    const copy = this.copy();
    copy.meansAll = true;
    return copy;
  }

  /** The maximum number of rows, 1 to 1,000. The result of `run` then has `more`, if other rows match. */
  limit(rows: i32): Change {
    const copy = this.copy();
    copy.most = rows;
    return copy;
  }

  /** Changes the rows, and returns their number. */
  count(): i32 {
    return this.run().count;
  }

  /** Changes, and gives the rows as they are then. */
  rows<T>(): T[] {
    return this.run().rows<T>();
  }

  /** The rows as they are then, for an answer. */
  changed(): Change {
    const copy = this.copy();
    copy.part = Part.Rows;
    return copy;
  }
}

/** Sets fields of rows: `update("Order", fields().set("status", "paid")).where("id", "=", id).count()`. */
export function update<T>(entity: string, set: T): Change {
  return new Change(entity, encode<T>(set));
}

/** A removal of rows. Without a condition it is an error unless `every` says that all are meant. */
export class Removal extends Operation {
  private conditions: string[] = [];
  private meansAll: bool = false;
  private most: i32 = i32.MIN_VALUE; // no limit

  constructor(private entity: string) {
    super();
    this.part = Part.Count;
  }

  private copy(): Removal {
    const copy = new Removal(this.entity);
    copy.conditions = this.conditions;
    copy.meansAll = this.meansAll;
    copy.most = this.most;
    return copy;
  }

  protected get op(): string {
    return "delete";
  }

  get args(): string {
    return '{"from":' + encode<string>(this.entity) + changed(this.conditions, this.meansAll, this.most) + "}";
  }

  /** One more condition: all must hold. */
  where<T>(name: string, operator: string, value: T): Removal {
    return this.match([field<T>(name, operator, value)]);
  }

  /** More conditions, made by field, and, or and not. */
  match(conditions: Condition[]): Removal {
    const copy = this.copy();
    copy.conditions = forms(this.conditions, conditions);
    return copy;
  }

  /** Permits to run without a condition, on all rows. */
  every(): Removal {
    const copy = this.copy();
    copy.meansAll = true;
    return copy;
  }

  /** The maximum number of rows, 1 to 1,000. The result of `run` then has `more`, if other rows match. */
  limit(rows: i32): Removal {
    const copy = this.copy();
    copy.most = rows;
    return copy;
  }

  /** Deletes the rows, and returns their number. */
  count(): i32 {
    return this.run().count;
  }
}

/** Deletes rows: `remove("Order").where("id", "=", id).count()`. */
export function remove(entity: string): Removal {
  return new Removal(entity);
}

/** Which rows are changed. Without a condition the runner refuses, unless all are meant. */
function changed(conditions: string[], all: bool, most: i32): string {
  const limit = most != i32.MIN_VALUE ? ',"limit":' + most.toString() : "";
  return (conditions.length > 0 || all ? ',"where":[' + join(conditions) + "]" : "") + limit;
}
