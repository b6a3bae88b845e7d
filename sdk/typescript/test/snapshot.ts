import { Failure } from "./host.ts";

// Snapshots: texts that the host keeps for a file, by name.

let kept: Record<string, string> = {};
let update = false;
let written: Record<string, string> = {};
let seen = new Map<string, object>(); // the name, and the scope of the test that compared it

export function beginSnapshots(snapshots: Record<string, string> | null | undefined, updates: boolean): void {
  kept = snapshots ?? {};
  update = updates;
  written = {};
  seen = new Map();
}

/** Compares a text with the snapshot of a name, and returns that snapshot if it is another. */
export function compareSnapshot(test: object, name: string, text: string): string | undefined {
  if ((seen.get(name) ?? test) !== test) throw new Failure(`another test of the file has the snapshot ${JSON.stringify(name)} too: give the tests different names`);
  seen.set(name, test);
  const before = Object.hasOwn(kept, name) ? kept[name] : undefined;
  if (before === text) return undefined;
  if (before !== undefined && !update) return before;
  written[name] = text;
  return undefined;
}

/** What is to be written, and the names that no test uses: those of tests that passed without them, or that do not exist. */
export function endSnapshots(all: string[], passed: string[]): { write: Record<string, string>; unused: string[] } {
  const of = (name: string, tests: string[]) => tests.some((test) => name.startsWith(test) && /^(: .+)? \d+$/s.test(name.slice(test.length)));
  const unused = Object.keys(kept).filter((name) => !seen.has(name) && (of(name, passed) || !of(name, all)));
  return { write: written, unused };
}
