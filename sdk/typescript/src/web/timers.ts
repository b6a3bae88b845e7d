// Timers. While a handler waits for one, the sandbox waits with it, as long as the
// request has time; once the handler has answered, none runs any more.

import { define } from "./define.ts";
import { type Runner } from "../host.ts";

/** The errno of the ABI for a client that is gone. */
const unavailable = -7;

interface Timer {
  id: number;
  due: number;
  every: number | null;
  does: () => unknown;
  /** Where a handler started it; undefined of a timer of the runtime's own. */
  started: Error | undefined;
}

/** Starts a timer that may be left running when the handler answers. */
export let startInternal: (name: string, does: () => unknown, after: number) => void;

/** Describes what a handler waits for, with the place where the wait began. */
export function waitingFor(what: string, began: Error): Error {
  began.name = `while it waited for ${what}`;
  began.message = "";
  return began;
}

export function installTimers(runner: Runner): void {
  const timers = new Map<number, Timer>();
  let last = 0;

  const start = (name: string, does: unknown, after: unknown, repeats: boolean, values: unknown[]): number => {
    runner.demand(name);
    if (typeof does !== "function") throw new TypeError(`${name}: the callback must be a function`);
    const pause = Math.max((after as number) | 0, repeats ? 1 : 0); // a long of Web IDL: 32 bits
    return add(pause, repeats ? pause : null, () => does(...values), new Error());
  };
  const add = (pause: number, every: number | null, does: () => unknown, started?: Error): number => {
    timers.set(++last, { id: last, due: Date.now() + pause, every, does, started });
    if (started) runner.timers++;
    return last;
  };
  const stop = (id?: number): void => {
    if (timers.get(id as number)?.started) runner.timers--;
    timers.delete(id as number);
  };
  runner.later = startInternal = (name, does, after) => {
    runner.demand(name);
    add(after, null, does);
  };

  define("setTimeout", (does: unknown, after?: number, ...values: unknown[]) => start("setTimeout", does, after, false, values));
  define("setInterval", (does: unknown, after?: number, ...values: unknown[]) => start("setInterval", does, after, true, values));
  const stops = () => (...given: number[]) => stop(given[0]);
  define("clearTimeout", stops());
  define("clearInterval", stops());
  define("setImmediate", (does: unknown, ...values: unknown[]) => start("setImmediate", does, 0, false, values));
  define("clearImmediate", stops());

  const next = (): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers.values()) if (!first || timer.due < first.due) first = timer;
    return first;
  };

  /** Whether the client of a streamed answer has hung up. Timers end then, so that the handler finds out. */
  const left = () => runner.host.response_write("") === unavailable;
  runner.pause = () => {
    const timer = next();
    return timer && Math.max(0, Math.ceil(timer.due - Date.now()));
  };
  runner.wake = () => {
    const timer = next();
    if (!timer || (timer.due > Date.now() && !left())) return; // the wait was cut short
    if (timer.every === null) stop(timer.id);
    else timer.due = Date.now() + timer.every;
    timer.does();
  };
  runner.busy = () => timers.size;
  const { abandon } = runner;
  runner.abandon = () => {
    abandon();
    timers.clear();
    runner.timers = 0;
  };
  runner.waiting = () => {
    for (const { every, started } of timers.values()) {
      if (started) return waitingFor(every === null ? "setTimeout" : "setInterval", started);
    }
  };
  runner.timer = () => {
    for (const { every, started } of timers.values()) {
      if (!started) continue;
      const [name, clear] = every === null ? ["setTimeout", "clearTimeout"] : ["setInterval", "clearInterval"];
      started.name = name;
      started.message = `it still ran when the handler had answered, and was discarded: await it or call ${clear}`;
      return started;
    }
  };
}
