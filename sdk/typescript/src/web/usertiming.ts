// User Timing and the Performance Timeline. This script is optional: see develop/toolchain/typescript/parts.go. Entries
// are the marks and measures of handlers, and live as long as the request.

import { expose, standardize } from "./define.ts";
import { dictionary, isObject, takes } from "./idl.ts";
import { runner } from "../host.ts";

type Type = "mark" | "measure";
type MarkOptions = { detail?: unknown; startTime?: number };
type MeasureOptions = { detail?: unknown; start?: string | number; end?: string | number; duration?: number };

const key = {};
let last = 0;
const buffer: PerformanceEntry[] = [];
const observers = new Set<PerformanceObserver>();

const cloned = (detail: unknown) => (detail === undefined || detail === null ? null : runner.clone(detail, [])[0]);

function finite(value: unknown, what: string): number {
  const n = Number(value);
  if (!Number.isFinite(n)) throw new TypeError(`${what} is not a finite number`);
  return n;
}

class PerformanceEntry {
  #name: string;
  #type: Type;
  #start: number;
  #duration: number;
  #id = ++last;
  constructor(given: unknown, name: string, type: Type, start: number, duration: number) {
    if (given !== key) throw new TypeError("PerformanceEntry has no public constructor: use performance.mark or performance.measure");
    this.#name = name;
    this.#type = type;
    this.#start = start;
    this.#duration = duration;
  }
  get id(): number {
    return this.#id;
  }
  get name(): string {
    return this.#name;
  }
  get entryType(): string {
    return this.#type;
  }
  get startTime(): number {
    return this.#start;
  }
  get duration(): number {
    return this.#duration;
  }
  get navigationId(): number {
    this.#id;
    return 0;
  }
  toJSON(): object {
    this.#id;
    const { id, name, entryType, startTime, duration, navigationId } = this;
    return "detail" in this
      ? { id, name, entryType, startTime, duration, navigationId, detail: this.detail }
      : { id, name, entryType, startTime, duration, navigationId };
  }
}

class PerformanceMark extends PerformanceEntry {
  #detail: unknown;
  constructor(name: string, options?: MarkOptions) {
    takes(1, arguments, "PerformanceMark");
    const { detail, startTime } = dictionary(options, "PerformanceMark");
    const start = startTime === undefined ? performance.now() : finite(startTime, "PerformanceMark: startTime");
    if (start < 0) throw new TypeError("PerformanceMark: startTime is negative");
    super(key, `${name}`, "mark", start, 0);
    this.#detail = cloned(detail);
  }
  get detail(): unknown {
    return this.#detail;
  }
}

class PerformanceMeasure extends PerformanceEntry {
  #detail: unknown;
  constructor(given: unknown, name: string, start: number, duration: number, detail: unknown) {
    super(given, name, "measure", start, duration);
    this.#detail = detail;
  }
  get detail(): unknown {
    return this.#detail;
  }
}

function add<T extends PerformanceEntry>(entry: T): T {
  buffer.push(entry);
  for (const observer of observers) offer(observer, entry);
  return entry;
}

/** The time that a mark's name or a number means (User Timing, 3.1.3, "convert a mark to a timestamp"). */
function timeOf(mark: unknown): number {
  if (typeof mark === "number") {
    if (mark < 0) throw new TypeError("performance.measure: a time is negative");
    return finite(mark, "performance.measure: a time");
  }
  const name = `${mark as string}`;
  const entry = buffer.findLast((one) => one.entryType === "mark" && one.name === name);
  if (!entry) throw new DOMException(`performance.measure: the mark ${JSON.stringify(name)} does not exist`, "SyntaxError");
  return entry.startTime;
}

function select(entries: readonly PerformanceEntry[], name?: unknown, type?: unknown): PerformanceEntry[] {
  return entries
    .filter((entry) => (name === undefined || entry.name === name) && (type === undefined || entry.entryType === type))
    .sort((a, b) => a.startTime - b.startTime);
}

function clear(type: Type, given: IArguments | unknown[]): void {
  const name = given[0] === undefined ? undefined : `${given[0] as string}`;
  for (let i = buffer.length - 1; i >= 0; i--) if (buffer[i].entryType === type && (name === undefined || buffer[i].name === name)) buffer.splice(i, 1);
}

const { prototype } = performance.constructor as unknown as { prototype: { now(this: unknown): number } };

/** Refuses a call on an object other than performance. */
const check = (self: unknown, least: number, given: ArrayLike<unknown>, name: string): void => {
  prototype.now.call(self);
  takes(least, given, `performance.${name}`);
};

// The methods of performance.
const methods = {
  mark(name: string, options?: MarkOptions): PerformanceMark {
    check(this, 1, arguments, "mark");
    return add(new PerformanceMark(name, options));
  },
  measure(name: string, startOrOptions?: string | MeasureOptions, endMark?: string): PerformanceMeasure {
    check(this, 1, arguments, "measure");
    const text = `${name}`;
    let options: MeasureOptions = {};
    if (isObject(startOrOptions)) {
      const { detail, duration, end, start } = startOrOptions as MeasureOptions;
      options = { detail, duration: duration === undefined ? undefined : finite(duration, "performance.measure: duration"), end, start };
      if (start !== undefined || end !== undefined || duration !== undefined || detail !== undefined) {
        if (endMark !== undefined) throw new TypeError("performance.measure: with options, the end must be a member of the options, not an argument");
        if (start === undefined && end === undefined) throw new TypeError("performance.measure: the options must have a start or an end");
        if (start !== undefined && end !== undefined && duration !== undefined) throw new TypeError("performance.measure: the options must not have all of start, end and duration");
      }
    } else if (startOrOptions !== undefined && startOrOptions !== null) {
      options.start = `${startOrOptions}`;
    }
    const { start, duration } = options;
    let { end } = options;
    if (endMark !== undefined) end = `${endMark}`;
    const to = end !== undefined ? timeOf(end) : start !== undefined && duration !== undefined ? timeOf(start) + duration : performance.now();
    const from = start !== undefined ? timeOf(start) : duration !== undefined && end !== undefined ? to - duration : 0;
    return add(new PerformanceMeasure(key, text, from, to - from, cloned(options.detail)));
  },
  clearMarks(..._: [name?: string]): void {
    check(this, 0, arguments, "clearMarks");
    clear("mark", arguments);
  },
  clearMeasures(..._: [name?: string]): void {
    check(this, 0, arguments, "clearMeasures");
    clear("measure", arguments);
  },
  getEntries(): PerformanceEntry[] {
    check(this, 0, arguments, "getEntries");
    return select(buffer);
  },
  getEntriesByType(type: string): PerformanceEntry[] {
    check(this, 1, arguments, "getEntriesByType");
    return select(buffer, undefined, `${type}`);
  },
  getEntriesByName(name: string, type?: string): PerformanceEntry[] {
    check(this, 1, arguments, "getEntriesByName");
    return select(buffer, `${name}`, type === undefined ? undefined : `${type}`);
  },
};

class PerformanceObserverEntryList {
  #entries: readonly PerformanceEntry[];
  constructor(given: unknown, entries: readonly PerformanceEntry[]) {
    if (given !== key) throw new TypeError("PerformanceObserverEntryList has no public constructor: the callback of a PerformanceObserver gets one");
    this.#entries = entries;
  }
  getEntries(): PerformanceEntry[] {
    return select(this.#entries);
  }
  getEntriesByType(type: string): PerformanceEntry[] {
    takes(1, arguments, "getEntriesByType");
    return select(this.#entries, undefined, `${type}`);
  }
  getEntriesByName(name: string, type?: string): PerformanceEntry[] {
    takes(1, arguments, "getEntriesByName");
    return select(this.#entries, `${name}`, type === undefined ? undefined : `${type}`);
  }
}

type Callback = (entries: PerformanceObserverEntryList, observer: PerformanceObserver, options: { droppedEntriesCount: number }) => unknown;

let offer: (observer: PerformanceObserver, entry: PerformanceEntry) => void;
const types = Object.freeze(["mark", "measure"]);

class PerformanceObserver {
  #callback: Callback;
  #types = new Set<string>();
  /** Whether observe had entryTypes, or type. */
  #many: boolean | undefined;
  #records: PerformanceEntry[] = [];
  #queued = false;

  static {
    offer = (observer, entry) => {
      if (!observer.#types.has(entry.entryType)) return;
      observer.#records.push(entry);
      observer.#later();
    };
  }
  static get supportedEntryTypes(): readonly string[] {
    return types;
  }

  constructor(callback: Callback) {
    takes(1, arguments, "PerformanceObserver");
    if (typeof callback !== "function") throw new TypeError("PerformanceObserver: the callback must be a function");
    this.#callback = callback;
  }
  observe(options?: { entryTypes?: Iterable<string>; type?: string; buffered?: boolean }): void {
    const { buffered, entryTypes, type } = dictionary(options, "PerformanceObserver.observe");
    const many: string[] | undefined = entryTypes === undefined ? undefined : [...entryTypes].map(String);
    if (many === undefined && type === undefined) throw new TypeError("PerformanceObserver.observe: the options must have entryTypes or type");
    if (many !== undefined && (type !== undefined || buffered !== undefined)) throw new TypeError("PerformanceObserver.observe: the options must have no other member beside entryTypes");
    if (this.#many === (many === undefined)) throw new DOMException("PerformanceObserver.observe: one observer must not use both entryTypes and type", "InvalidModificationError");
    const wanted = (many ?? [`${type as string}`]).filter((one) => types.includes(one));
    this.#many = many !== undefined;
    if (wanted.length === 0) return;
    observers.add(this);
    if (many) this.#types = new Set(wanted);
    else this.#types.add(wanted[0]);
    if (!buffered) return;
    this.#records.push(...select(buffer, undefined, wanted[0]));
    if (this.#records.length > 0) this.#later();
  }
  disconnect(): void {
    this.#many = undefined;
    observers.delete(this);
    this.#types.clear();
    this.#records = [];
  }
  takeRecords(): PerformanceEntry[] {
    const records = this.#records;
    this.#records = [];
    return records;
  }
  #later(): void {
    if (this.#queued) return;
    this.#queued = true;
    runner.later("PerformanceObserver", () => {
      this.#queued = false;
      const records = this.takeRecords();
      if (records.length === 0) return;
      try {
        this.#callback.call(this, new PerformanceObserverEntryList(key, records), this, { droppedEntriesCount: 0 });
      } catch (error) {
        runner.uncaught(error);
      }
    }, 0);
  }
}

standardize("Performance.prototype", methods);
for (const name of Object.keys(methods)) {
  Object.defineProperty(prototype, name, { value: methods[name as "mark"], writable: true, enumerable: true, configurable: true });
}
expose("PerformanceEntry", PerformanceEntry);
expose("PerformanceMark", PerformanceMark);
expose("PerformanceMeasure", PerformanceMeasure);
expose("PerformanceObserver", PerformanceObserver);
expose("PerformanceObserverEntryList", PerformanceObserverEntryList);
