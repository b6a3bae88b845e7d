// The border to the host of a test run. All goes through one operation, "test"; docs/testing-protocol.md
// describes its arguments and results.

import { HostError, runner } from "../src/host.ts";

/** What a test, or a block with hooks, has while it runs. */
export class Scope {
  readonly parent: Scope | undefined;
  /** What was started and has not ended. */
  readonly open = new Set<Started>();
  /** What runs when it is awaited, and was not. */
  readonly lazy = new Set<Started>();
  /** What has failed without the test having seen it. */
  readonly failures: unknown[] = [];
  readonly rules: Rule[] = [];
  readonly requests: Request[] = [];
  asserted = 0;
  expected: number | undefined; // assertions; -1: at least one
  /** Of a test: its name, and how many snapshots it has compared, by name. */
  readonly name: string;
  readonly counts = new Map<string, number>();

  constructor(parent: Scope | undefined, name = "") {
    this.parent = parent;
    this.name = name;
  }
  /** Whether a scope is this one or around it. */
  within(scope: Scope): boolean {
    for (let at: Scope | undefined = this; at; at = at.parent) if (at === scope) return true;
    return false;
  }
}

/** An answer to outbound requests. */
export interface Rule {
  matches(url: string): boolean;
  answer(request: Request): unknown;
}

/** What was started, for messages, and where. */
export interface Started {
  title: string;
  at: Error;
}

let current: Scope | undefined;

/** Makes a scope the one in which the test's code runs; undefined: none runs. */
export function enter(scope: Scope | undefined): void {
  current = scope;
}

/** The scope of the code that runs. */
export function scope(what: string): Scope {
  if (current) return current;
  throw new Error(`${what} needs a test: call it inside of a test or of a hook such as beforeAll`);
}

/** How many tests have begun and ended. The host tells by it what is of a test that has ended. */
export let turn = 0;

export function nextTurn(): void {
  turn++;
}

/** Runs the operation. */
export const tell = (what: string, args: object = {}): Promise<any> => runner.begin("test", { do: what, ...args });

// A run can have 64 operations under way. The others wait here.
const mostAsked = 48;
let asked = 0;
const line: (() => void)[] = [];

/** Runs the operation for a test. */
export async function ask(what: string, args: object, started: Started): Promise<any> {
  const { open } = scope(started.title);
  open.add(started);
  const began = turn;
  try {
    if (asked >= mostAsked) await new Promise<void>((done) => line.push(done));
    else asked++;
    try {
      return await tell(what, { turn: began, ...args });
    } finally {
      const next = line.shift(); // which goes on in its place
      if (next) next();
      else asked--;
    }
  } catch (error) {
    throw from(started.at, error);
  } finally {
    open.delete(started);
  }
}

/** What the test is told has gone wrong: it has the place where the test began it. */
export function from(at: Error, error: unknown): unknown {
  if (error instanceof HostError && error.op === "test") error.message = error.message.replace(/^test: /, "");
  if (error instanceof HostError || error instanceof Failure) runner.moved(error, runner.raw(at));
  return error;
}

/** Discards what a test has left: who waits for it waits forever, and nothing of it runs again. */
export function abandon(): void {
  runner.abandon();
  asked = 0;
  line.length = 0;
}

/** What runs once it is awaited, as the operations of the SDK. That it never was is an error of the test. */
export class Lazy<T> implements PromiseLike<T> {
  readonly #started: Started;
  readonly #scope: Scope;
  #promise: Promise<T> | undefined;
  #run: (started: Started) => Promise<T>;

  constructor(title: string, run: (started: Started) => Promise<T>) {
    this.#scope = scope(title);
    this.#started = { title, at: new Error() };
    this.#run = run;
    this.#scope.lazy.add(this.#started);
  }
  then<A = T, B = never>(done?: ((value: T) => A | PromiseLike<A>) | null, failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<A | B> {
    this.#scope.lazy.delete(this.#started);
    this.#promise ??= this.#run(this.#started).catch((error) => {
      throw from(this.#started.at, error);
    });
    return this.#promise.then(done, failed);
  }
  catch<B = never>(failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, failed);
  }
  finally(done?: (() => void) | null): Promise<T> {
    return this.then().finally(done);
  }
}

export interface Place {
  file: string;
  line: number;
  column: number;
}

/** The frames of an error in the app's files: function (file:line:column). */
export function framesOf(error: unknown): string[] {
  const frames = runner.report("", error).split("\n").filter((line) => line.startsWith("    at "));
  return frames.map((frame) => frame.slice("    at ".length));
}

/** The place of a frame, by preference the first outside of packages. */
export function placeOf(frames: string[]): Place | null {
  const frame = frames.find((frame) => !frame.includes("node_modules/")) ?? frames[0] ?? "";
  const at = /^(?:.* \()?(.+):(\d+):(\d+)\)?$/.exec(frame);
  return at && { file: at[1], line: Number(at[2]), column: Number(at[3]) };
}

/** The error as the host gets it. */
export interface Described {
  message: string;
  diff: string;
  place: Place | null;
  stack: string[];
}

/** A comparison that does not hold. */
export class Failure extends Error {
  readonly diff: string;
  constructor(message: string, diff = "") {
    super(message);
    this.name = "";
    this.diff = diff;
  }
}

export function described(error: unknown): Described {
  const stack = framesOf(error);
  const message = error instanceof Failure ? error.message : runner.report("", error, undefined, []).slice(1);
  return { message, diff: error instanceof Failure ? error.diff : "", place: placeOf(stack), stack };
}

/** A duration in milliseconds: a number of them, or text such as 500ms, 30s, 15m, 12h, 90d, 2w. */
export function milliseconds(of: string, given: unknown): number {
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
  const at = /^(\d+)(ms|[smhdw])$/.exec(String(given));
  const value = typeof given === "number" ? given : at ? Number(at[1]) * units[at[2]] : NaN;
  if (Number.isFinite(value) && value >= 0) return value;
  throw new TypeError(`${of}: ${JSON.stringify(given)} is not a duration: use milliseconds, or text such as "90s", "15m" or "2d"`);
}
