// Tests: what the files register while the module is built, and a run of them.

import { forget, forgotten, runner } from "../src/host.ts";
import { noContent } from "../src/response.ts";
import { abandon, described, enter, Failure, framesOf, from, milliseconds, nextTurn, placeOf, Scope, type Started, tell } from "./host.ts";
import { isPumping, startPump } from "./outbound.ts";
import { beginSnapshots, endSnapshots } from "./snapshot.ts";

type Mode = "run" | "skip" | "only" | "todo";
type Does = (...values: any[]) => unknown;

/** A function that a file registers. */
interface Step {
  does: Does;
  at: Error;
  /** In milliseconds; undefined: usualTimeout. */
  timeout: number | undefined;
}
interface Hook extends Step {
  kind: HookKind;
}
type HookKind = "beforeAll" | "afterAll" | "beforeEach" | "afterEach";

interface Block {
  name: string;
  above: Block | undefined;
  mode: Mode;
  hooks: Hook[];
  children: (Block | Test)[];
}
interface Test extends Step {
  name: string;
  above: Block;
  mode: Mode;
}

let usualTimeout = 5000; // milliseconds

// The engine's own, as tests may replace the globals.
const { setTimeout, clearTimeout } = globalThis;

const files = new Map<string, Block>();
let open: Block | undefined; // what registers now

const newBlock = (name: string, above: Block | undefined, mode: Mode): Block => ({ name, above, mode, hooks: [], children: [] });
const isTest = (node: Block | Test): node is Test => "does" in node;

/** Evaluates the files, each of which registers its tests. */
export function load(all: [file: string, evaluate: () => unknown][]): void {
  for (const [file, evaluate] of all) {
    const block = newBlock("", undefined, "run");
    files.set(file, block);
    fill(block, evaluate);
  }
}

function fill(block: Block, does: () => unknown): unknown {
  const before = open;
  open = block;
  try {
    return does();
  } finally {
    open = before;
  }
}

function registers(what: string): Block {
  if (open) return open;
  throw new Error(`${what} registers at the top level of a test file or in a describe, not while a test runs`);
}

function checked(what: string, name: unknown, does: unknown): void {
  if (typeof name !== "string" && typeof name !== "function") throw new TypeError(`${what}: the name is missing: ${what}("what holds", …)`);
  if (typeof does !== "function") throw new TypeError(`${what}: the second argument is a function`);
}

const titled = (name: unknown): string => (typeof name === "function" ? name.name : String(name));
const limit = (of: string, given: unknown): number | undefined => (given === undefined ? undefined : milliseconds(of, given));

function addTest(mode: Mode, name: unknown, does: Does, timeout: unknown): void {
  const above = registers("test");
  above.children.push({ name: titled(name), above, mode, does, at: new Error(), timeout: limit("test", timeout) });
}

const adder = (mode: Mode) => (name: unknown, does: Does, timeout?: unknown): void => {
  checked("test", name, does);
  if (does.length > 0) throw new TypeError("test: the function takes no parameter such as done: return a promise or use async");
  addTest(mode, name, does, timeout);
};

function addBlock(mode: Mode, name: unknown, does: () => unknown): void {
  const above = registers("describe");
  const block = newBlock(titled(name), above, mode);
  above.children.push(block);
  if (fill(block, does) instanceof Promise) throw new TypeError("describe: the function is not async: prepare data in beforeAll");
}

const blockAdder = (mode: Mode) => (name: unknown, does: () => unknown): void => {
  checked("describe", name, does);
  addBlock(mode, name, does);
};

/** The name of a row: %s, %d, %i, %f, %j, %o and %# in it are its values and its number, $name and $# of an object its members. */
function rowName(name: string, row: unknown, values: unknown[], index: number): string {
  const rest = [...values];
  const text = name.replace(/%([sdifjo#%])/g, (what, letter) => {
    if (letter === "%") return "%";
    if (letter === "#") return String(index);
    if (rest.length === 0) return what;
    const value = rest.shift();
    return letter === "j" || letter === "o" || (typeof value === "object" && value !== null) ? (JSON.stringify(value) ?? String(value)) : String(value);
  });
  if (typeof row !== "object" || row === null || Array.isArray(row)) return text;
  return text.replace(/\$(#|[A-Za-z_][\w.]*)/g, (what, path: string) => {
    if (path === "#") return String(index);
    let value: any = row;
    for (const key of path.split(".")) value = value?.[key];
    return value === undefined ? what : typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  });
}

const each =
  (what: string, add: (name: string, does: () => unknown, timeout: unknown) => void) =>
  (table: Iterable<unknown>) => {
    const rows = [...table];
    if (rows.length === 0) throw new TypeError(`${what}.each: the table has no rows`);
    return (name: unknown, does: Does, timeout?: unknown): void => {
      checked(what, name, does);
      rows.forEach((row, index) => {
        const values = Array.isArray(row) ? row : [row];
        add(rowName(titled(name), row, values, index), () => does(...values), timeout);
      });
    };
  };

const eachTest = (mode: Mode) => each("test", (name, does, timeout) => addTest(mode, name, does, timeout));
const eachBlock = (mode: Mode) => each("describe", (name, does) => addBlock(mode, name, does));
const withEach = (mode: Mode) => Object.assign(adder(mode), { each: eachTest(mode) });
const blockWithEach = (mode: Mode) => Object.assign(blockAdder(mode), { each: eachBlock(mode) });

export const test = Object.assign(withEach("run"), {
  only: withEach("only"),
  skip: withEach("skip"),
  todo: (name: unknown): void => {
    checked("test.todo", name, () => {});
    addTest("todo", name, () => {}, undefined);
  },
});

export const describe = Object.assign(blockWithEach("run"), { only: blockWithEach("only"), skip: blockWithEach("skip") });

const hook = (kind: HookKind) => (does: Does, timeout?: unknown): void => {
  const block = registers(kind);
  if (typeof does !== "function") throw new TypeError(`${kind}: the argument is a function`);
  block.hooks.push({ kind, does, at: new Error(), timeout: limit(kind, timeout) });
};
export const beforeAll = hook("beforeAll");
export const afterAll = hook("afterAll");
export const beforeEach = hook("beforeEach");
export const afterEach = hook("afterEach");

// A run.

const testsIn = (block: Block): Test[] => block.children.flatMap((node) => (isTest(node) ? [node] : testsIn(node)));

function pathOf(test: Test): string[] {
  const path = [test.name];
  for (let block: Block | undefined = test.above; block?.above; block = block.above) path.unshift(block.name);
  return path;
}

const fullName = (test: Test): string => pathOf(test).join(" ");

/** How a test runs, with what is said of the blocks around it. */
function modeOf(test: Test): Mode {
  let mode = test.mode;
  for (let block: Block | undefined = test.above; block; block = block.above) {
    if (block.mode === "skip" && mode !== "todo") return "skip";
    // Within describe.only all tests count, unless some of them have only.
    if (block.mode === "only" && mode === "run" && !testsIn(block).some((t) => t.mode === "only")) mode = "only";
  }
  return mode;
}

interface Begun {
  file: string;
  run: number[] | null;
  update: boolean;
  timeout?: number;
  snapshots: Record<string, string>;
}

/** The handler of the module: runs one file. */
export async function run(): Promise<unknown> {
  const begun: Begun = await tell("file");
  const file = files.get(begun.file);
  if (!file) throw new Error(`the module has no test file ${begun.file}`);
  usualTimeout = begun.timeout ?? usualTimeout;
  const tests = testsIn(file);
  const selected = new Set(begun.run ?? (await list(tests)));
  beginSnapshots(begun.snapshots, begun.update);
  const runner = new Runner(tests, selected);
  await runner.block(file, undefined, []);
  await tell("snapshots", endSnapshots(tests.map(fullName), runner.passed.map(fullName)));
  return noContent();
}

async function list(tests: Test[]): Promise<number[]> {
  const listed = tests.map((test) => {
    const place = placeOf(framesOf(test.at));
    return { name: pathOf(test), ...place, mode: modeOf(test) };
  });
  return (await tell("tests", { tests: listed })).run;
}

class Runner {
  readonly #numbers: Map<Test, number>;
  readonly #selected: Set<number>;
  readonly passed: Test[] = [];

  constructor(tests: Test[], selected: Set<number>) {
    this.#numbers = new Map(tests.map((test, i) => [test, i]));
    this.#selected = selected;
  }

  #runs(test: Test): boolean {
    return this.#selected.has(this.#numbers.get(test)!);
  }

  /** Runs what is selected of a block. The hooks are those of the blocks around it. */
  async block(block: Block, around: Scope | undefined, hooks: Hook[]): Promise<void> {
    if (!testsIn(block).some((test) => this.#runs(test))) return;
    const scope = new Scope(around);
    const of = (kind: HookKind) => block.hooks.filter((hook) => hook.kind === kind);
    let broken: { error: unknown } | undefined;
    const based = of("beforeAll").length > 0;
    if (based) {
      try {
        for (const hook of of("beforeAll")) await within(scope, hook);
      } catch (error) {
        broken = { error };
      }
      await tell("base");
    }
    if (broken) {
      for (const test of testsIn(block)) if (this.#runs(test)) await this.#end(test, broken.error);
    } else {
      const inner = [...hooks, ...block.hooks];
      for (const node of block.children) {
        if (!isTest(node)) await this.block(node, scope, inner);
        else if (this.#runs(node)) await this.#test(node, scope, inner);
      }
    }
    for (const hook of of("afterAll")) {
      try {
        await within(scope, hook);
      } catch (error) {
        await tell("failed", { error: described(error) });
      }
    }
    if (based) await tell("unbase");
  }

  async #test(test: Test, around: Scope, hooks: Hook[]): Promise<void> {
    await tell("begin", { test: this.#numbers.get(test)! });
    nextTurn();
    const scope = new Scope(around, fullName(test));
    const failures: unknown[] = [];
    const tries = async (step: Step): Promise<void> => {
      try {
        await within(scope, step);
      } catch (error) {
        failures.push(error);
      }
    };
    for (const hook of hooks) if (hook.kind === "beforeEach" && failures.length === 0) await tries(hook);
    if (failures.length === 0) await tries(test);
    for (const hook of hooks.filter((hook) => hook.kind === "afterEach").reverse()) await tries(hook);
    if (failures.length === 0) failures.push(...missed(scope, test.at));
    enter(undefined);
    abandon();
    forget();
    await this.#end(test, ...failures);
  }

  async #end(test: Test, ...failures: unknown[]): Promise<void> {
    const error = failures.length > 0 ? described(failures[0]) : null;
    if (error) error.place ??= placeOf(framesOf(test.at));
    else this.passed.push(test);
    await tell("end", { test: this.#numbers.get(test)!, status: error ? "failed" : "passed", error });
    nextTurn();
  }
}

/** A failure with the place where something was started. */
const failure = (at: Error, message: string) => from(at, new Failure(message)) as Failure;

/** Runs a function of a test in a scope, within its time. */
async function within(scope: Scope, step: Step): Promise<void> {
  const { does, at, timeout = usualTimeout } = step;
  await tell("step", { what: "kind" in step ? step.kind : "the test", timeout });
  enter(scope);
  startPump(scope);
  try {
    await limited(scope, does, at, timeout);
    for (const started of scope.lazy) throw failure(started.at, `${started.title} was never awaited, so it did not run: add await`);
    for (const started of scope.open) throw failure(started.at, `${started.title} was still under way at the end: await it`);
  } finally {
    scope.lazy.clear();
    scope.open.clear();
    enter(undefined);
  }
  if (scope.failures.length > 0) throw scope.failures[0];
  const lost = runner.lost();
  if (lost.length > 0) throw lost[0];
}

function limited(scope: Scope, does: Does, at: Error, timeout: number): Promise<void> {
  return new Promise((done, failed) => {
    const timer = setTimeout(() => failed(late(scope, at, `it did not end within ${timeout} ms`)), timeout);
    const settle = (then: () => void) => {
      clearTimeout(timer);
      runner.idle = undefined;
      then();
    };
    runner.idle = () => {
      if (isPumping() || runner.busy() > 1) return false;
      settle(() => failed(late(scope, at, "it waits for a promise that nothing settles")));
      return true;
    };
    try {
      Promise.resolve(does()).then(
        () => settle(done),
        (error) => settle(() => failed(error)),
      );
    } catch (error) {
      settle(() => failed(error));
    }
  });
}

/** The error of a test that does not end, at what it waits for. */
function late(scope: Scope, at: Error, message: string): Failure {
  const [first] = scope.open as Set<Started>;
  return first ? failure(first.at, `${message}, while it waited for ${first.title}`) : failure(at, message);
}

/** What a test that has ended has missed. */
function missed(scope: Scope, at: Error): Failure[] {
  const all: Failure[] = [];
  for (const what of forgotten()) all.push(failure(at, `${what} was never awaited, so nothing was written: add await`));
  const { expected, asserted } = scope;
  if (expected === -1 && asserted === 0) all.push(failure(at, "expect.hasAssertions: expect was not called"));
  if (expected !== undefined && expected >= 0 && expected !== asserted) all.push(failure(at, `expect.assertions: expected ${expected}, there were ${asserted}`));
  return all;
}
