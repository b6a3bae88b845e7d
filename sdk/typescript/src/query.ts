// Operations on rows, with the caller's authority. Each step gives a new builder
// and leaves the one that it is called on as it was.

import { withFiles } from "./files.ts";
import { begin, type Change as Step, HostError, known, Mark, Operation, placed, result, Row, Rows, run, spares, Whole } from "./host.ts";

/** What a row must be like, as the host reads it; a list of conditions is one. */
export class Condition {
  declare readonly form: unknown;
  constructor(form: unknown) {
    this.form = form;
  }
}

interface Matching {
  ignoreCase?: boolean;
}

export const field = (name: string, operator: string, value: unknown, matching?: Matching) => {
  const form = [name, operator, value];
  if (matching !== undefined && known("query", matching, "ignoreCase").ignoreCase === true) form.push("ignoreCase");
  return new Condition(form);
};

export const and = (...conditions: Condition[]) => new Condition(forms(conditions));
export const or = (...conditions: Condition[]) => new Condition(["or", ...conditions.map((c) => c.form)]);
export const not = (condition: Condition) => new Condition(["not", condition.form]);

const isList = (form: unknown): form is unknown[] => Array.isArray(form) && (form.length === 0 || Array.isArray(form[0]));

/** The forms of conditions that must all hold; those of an `and` are taken apart. */
function forms(conditions: Condition[]): unknown[] {
  return conditions.flatMap((c) => (isList(c.form) ? c.form : [c.form]));
}

/** n, which must be a whole number. */
function whole(name: string, n: unknown, operation: string): number {
  if (Number.isInteger(n)) return n as number;
  throw new HostError("invalid", `${name}: ${typeof n === "string" ? JSON.stringify(n) : String(n)} is not a whole number`, operation);
}

/** The result of an operation with a limit. */
interface Counts {
  count: number;
  more: boolean;
}

// What follows sets its fields one by one: a class's fields are defined, which takes far longer.
const none: unknown[] = [];

abstract class Filtered<T, Self> extends Operation<T> {
  declare protected conditions: unknown[];
  protected abstract copy(): Self & Filtered<T, Self>;

  where(name: string, operator: string, value: unknown, matching?: Matching): Self {
    return this.match(field(name, operator, value, matching));
  }
  match(...conditions: Condition[]): Self {
    const copy = this.copy();
    copy.conditions = [...this.conditions, ...forms(conditions)];
    return copy;
  }
}

/** What a query includes of a relation: fields, or the query of its rows. */
type What = string[] | ((query: Selection) => Selection);

type Includes = Record<string, unknown>;

/** The includes with one more. */
function including(all: Includes | undefined, name: string, what: What = []): Includes {
  if (typeof what !== "function") return { ...all, [name]: { select: what.length > 0 ? what : undefined } };
  const selection: unknown = what(new Selection());
  if (!(selection instanceof Selection)) throw new HostError("invalid", `include("${name}", q => …) returns no query: write q => q.limit(20)`, "query");
  return { ...all, [name]: selection.options() };
}

class Selection extends Filtered<any[], Selection> {
  declare private entity: string;
  declare private fields: unknown[];
  declare private order: unknown[];
  declare private most: number | undefined;
  declare private cursor: string | undefined;
  declare private included: Includes | undefined;
  constructor() {
    super();
    this.entity = "";
    this.conditions = none;
    this.fields = none;
    this.order = none;
    this.most = undefined;
    this.cursor = undefined;
    this.included = undefined;
    this.at = undefined;
  }
  protected copy(): Selection {
    var copy = spareSelection();
    copy.entity = this.entity;
    copy.conditions = this.conditions;
    copy.fields = this.fields;
    copy.order = this.order;
    copy.most = this.most;
    copy.cursor = this.cursor;
    copy.included = this.included;
    copy.at = this.at;
    return copy;
  }
  of(entity: string, fields: unknown[]): this {
    this.entity = entity;
    this.fields = fields;
    return this;
  }
  from(entity: string): Selection {
    const copy = this.copy();
    copy.entity = entity;
    return copy;
  }
  select(...fields: string[]): Selection {
    const copy = this.copy();
    copy.fields = [...this.fields, ...fields];
    return copy;
  }
  orderBy(name: string, direction = "asc"): Selection {
    const copy = this.copy();
    copy.order = [...this.order, [name, direction]];
    return copy;
  }
  limit(n: number): Selection {
    const copy = this.copy();
    copy.most = whole("limit", n, "query");
    return copy;
  }
  after(cursor: string | null | undefined): Selection {
    const copy = this.copy();
    copy.cursor = cursor ?? undefined;
    return copy;
  }
  include(name: string, what?: What): Selection {
    const copy = this.copy();
    copy.included = including(this.included, name, what);
    return copy;
  }
  /** The arguments without the entity, for an include. */
  options(): Record<string, unknown> {
    return {
      select: this.fields.length > 0 ? this.fields : undefined,
      where: this.conditions.length > 0 ? this.conditions : undefined,
      orderBy: this.order.length > 0 ? this.order : undefined,
      limit: this.most,
      cursor: this.cursor,
      include: this.included,
    };
  }
  private args(): Record<string, unknown> {
    if (this.entity === "") throw new HostError("invalid", 'select(…) without an entity: go on with from("Order")', "query");
    const args = this.options();
    args.from = this.entity;
    return args;
  }
  get title(): string {
    return `a query of ${this.entity}`;
  }
  leave(): number {
    run("query", this.args());
    return Rows;
  }
  perform(): any[] {
    this.leave();
    return withFiles(result().rows);
  }
  page(): Operation<any> {
    return new Page("query", this.args());
  }
  first(): Operation<any> {
    return new First(this.limit(1), this.entity, false);
  }
  firstOrFail(): Operation<any> {
    return new First(this.limit(1), this.entity, true);
  }
  count(options?: { atMost?: number }): Operation<any> {
    const { from, where } = this.args();
    const atMost = options === undefined ? undefined : known("count", options, "atMost").atMost;
    if (atMost === undefined) return new Counted("count", { from, where });
    return new Whole("count", { from, where, atMost: whole("atMost", atMost, "count") });
  }
}

const spareSelection = spares(8, () => new Selection());

/** The first row. As an answer it is 404 if there is none. */
class First extends Operation<any> {
  declare private readonly query: Selection;
  declare private readonly entity: string;
  declare private readonly required: boolean;
  constructor(query: Selection, entity: string, required: boolean) {
    super();
    this.query = query;
    this.entity = entity;
    this.required = required;
    this.at = query.at;
  }
  get title(): string {
    return this.query.title;
  }
  leave(): number {
    this.query.leave();
    return Row;
  }
  perform(): any {
    const [row] = this.query.perform();
    if (row === undefined && this.required) {
      throw new HostError("not_found", `no row of ${this.entity} matches the conditions`, "query", this.entity);
    }
    return row ?? null;
  }
}

class Counted extends Whole<number> {
  constructor(op: string, args: unknown) {
    super(op, args, (result) => result.count);
  }
}

interface Wanted {
  from: string;
  id: string;
  select?: string[];
  include?: Includes;
}

class Lookup extends Operation<any> {
  declare private readonly args: Wanted;
  constructor(args: Wanted) {
    super();
    this.args = args;
  }
  include(name: string, what?: What): Lookup {
    const copy = new Lookup({ ...this.args, include: including(this.args.include, name, what) });
    copy.at = this.at;
    return copy;
  }
  get title(): string {
    return `a look-up in ${this.args.from}`;
  }
  leave(): number {
    run("get", this.args);
    return Row;
  }
  perform(): any {
    this.leave();
    var row = result().row;
    withFiles([row]);
    return row;
  }
}

/** A field to group by, or a field with a period and a time zone. */
type Grouping = string | string[];

type Computed = Record<string, Grouping[] | true>;

class Aggregation extends Filtered<any[], Aggregation> {
  declare private readonly entity: string;
  declare private computed: Computed;
  constructor(entity: string) {
    super();
    this.entity = entity;
    this.conditions = none;
    this.computed = {};
  }
  protected copy(): Aggregation {
    const copy = new Aggregation(this.entity);
    copy.conditions = this.conditions;
    copy.computed = this.computed;
    copy.at = this.at;
    return copy;
  }
  private compute(name: string, fields: Grouping[]): Aggregation {
    const copy = this.copy();
    const before = this.computed[name];
    copy.computed = { ...this.computed, [name]: Array.isArray(before) ? [...before, ...fields] : fields };
    return copy;
  }
  groupBy(...fields: string[]): Aggregation {
    return this.compute("groupBy", fields);
  }
  groupByTime(name: string, period: string, zone?: string): Aggregation {
    return this.compute("groupBy", [zone === undefined ? [name, period] : [name, period, zone]]);
  }
  sum(...fields: string[]): Aggregation {
    return this.compute("sum", fields);
  }
  avg(...fields: string[]): Aggregation {
    return this.compute("avg", fields);
  }
  min(...fields: string[]): Aggregation {
    return this.compute("min", fields);
  }
  max(...fields: string[]): Aggregation {
    return this.compute("max", fields);
  }
  count(): Aggregation {
    const copy = this.copy();
    copy.computed = { ...this.computed, count: true };
    return copy;
  }
  get title(): string {
    return `an aggregate of ${this.entity}`;
  }
  leave(): number {
    run("aggregate", { from: this.entity, where: this.conditions.length > 0 ? this.conditions : undefined, ...this.computed });
    return Rows;
  }
  perform(): any[] {
    this.leave();
    return result().rows;
  }
}

class Insertion extends Operation<any> implements Step {
  declare run: boolean;
  declare before: Step | undefined;
  declare private entity: string;
  declare private values: unknown;
  constructor() {
    super();
    this.run = false;
    this.before = undefined;
    this.entity = "";
    this.values = undefined;
  }
  of(entity: string, values: unknown): this {
    this.before = begin(this);
    this.entity = entity;
    this.values = values;
    return this;
  }
  get title(): string {
    return `an insert into ${this.entity}`;
  }
  leave(): number {
    this.run = true;
    run("insert", { into: this.entity, values: this.values });
    return Array.isArray(this.values) ? Rows : Row;
  }
  perform(): any {
    var part = this.leave();
    var rows = withFiles(result().rows);
    return part === Rows ? rows : rows[0];
  }
}

const spareInsertion = spares(4, () => new Insertion());

/** A change or removal: of all rows only when every() says so. */
abstract class Changing<Self> extends Filtered<any, Self> {
  declare protected all: boolean;
  declare protected most: number | undefined;
  declare protected readonly entity: string;
  declare protected readonly mark: Mark;
  constructor(entity: string, mark: Mark) {
    super();
    this.conditions = none;
    this.all = false;
    this.most = undefined;
    this.entity = entity;
    this.mark = mark;
  }
  get title(): string {
    return this.mark.title;
  }
  every(): Self {
    const copy = this.copy() as Self & Changing<Self>;
    copy.all = true;
    return copy;
  }
  limit(n: number): Self {
    const copy = this.copy() as Self & Changing<Self>;
    copy.most = whole("limit", n, this.operation);
    return copy;
  }
  protected abstract get operation(): string;
  protected of<T extends Changing<Self>>(from: T): this {
    this.conditions = from.conditions;
    this.all = from.all;
    this.most = from.most;
    this.at = from.at;
    return this;
  }
  protected condition(): unknown[] | undefined {
    return this.conditions.length > 0 || this.all ? this.conditions : undefined;
  }
  abstract run(): void;
  leave(): undefined {}
  perform(): any {
    this.run();
    const { count, more }: Counts = result();
    return this.most === undefined ? count : { count, more };
  }
}

class Change extends Changing<Change> {
  declare private readonly set: unknown;
  constructor(entity: string, set: unknown, mark = new Mark("an update of ", entity)) {
    super(entity, mark);
    this.set = set;
  }
  protected copy(): Change {
    return new Change(this.entity, this.set, this.mark).of(this);
  }
  protected get operation(): string {
    return "update";
  }
  run(): void {
    this.mark.run = true;
    run("update", { in: this.entity, set: this.set, where: this.condition(), limit: this.most });
  }
  rows(): Operation<any[]> {
    return new Changed(this);
  }
}

/** A page of rows. */
class Page extends Whole<any> {
  perform(): any {
    const page = super.perform();
    withFiles(page.rows);
    return page;
  }
}

class Changed extends Operation<any[]> {
  declare private readonly change: Change;
  constructor(change: Change) {
    super();
    this.change = change;
    this.at = change.at;
  }
  get title(): string {
    return this.change.title;
  }
  leave(): number {
    this.change.run();
    return Rows;
  }
  perform(): any[] {
    this.leave();
    return withFiles(result().rows);
  }
}

class Removal extends Changing<Removal> {
  constructor(entity: string, mark = new Mark("a removal from ", entity)) {
    super(entity, mark);
  }
  protected copy(): Removal {
    return new Removal(this.entity, this.mark).of(this);
  }
  protected get operation(): string {
    return "delete";
  }
  run(): void {
    this.mark.run = true;
    run("delete", { from: this.entity, where: this.condition(), limit: this.most });
  }
}

export const query = (entity: string) => placed(spareSelection().of(entity, none));
export const select = (...fields: string[]) => placed(spareSelection().of("", fields));
export const aggregate = (entity: string) => placed(new Aggregation(entity));
export const get = (entity: string, id: string, ...fields: string[]): Lookup =>
  placed(new Lookup({ from: entity, id, select: fields.length > 0 ? fields : undefined }));
export const insert = (entity: string, values: unknown): Operation<any> => placed(spareInsertion().of(entity, values));
export const update = (entity: string, set: unknown) => placed(new Change(entity, set));
export const remove = (entity: string) => placed(new Removal(entity));
