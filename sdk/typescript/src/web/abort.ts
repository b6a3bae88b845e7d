// AbortController and AbortSignal (DOM Standard, section 3).

import { expose } from "./define.ts";
import { Event, EventTarget, fire, handlerOf, listens, setHandler, signals } from "./events.ts";
import { DOMException } from "./exception.ts";
import { withoutPlace } from "../host.ts";
import { takes } from "./idl.ts";
import { startInternal } from "./timers.ts";

// AbortController and the static methods of AbortSignal use these. The constructor accepts only this key.
const key = {};
let abort: (signal: AbortSignal, reason?: unknown) => void;
let followed: (signal: AbortSignal) => Links;

/** Calls a function when the signal is aborted, before its listeners (DOM Standard, 3.2, "add an algorithm"). */
export let addAlgorithm: (signal: AbortSignal, does: () => void) => void;
export let removeAlgorithm: (signal: AbortSignal, does: () => void) => void;

/** The links of a signal. Few signals have some, so they are created when they are first needed. */
interface Links {
  algorithms: Set<() => void>;
  /** The signals that AbortSignal.any made of this one, and those that this one was made of. */
  dependents: Set<AbortSignal>;
  sources: Set<AbortSignal> | undefined;
}

export class AbortSignal extends EventTarget {
  #reason: unknown = undefined;
  #links: Links | undefined = undefined;

  static {
    followed = (signal) => (signal.#links ??= { algorithms: new Set(), dependents: new Set(), sources: undefined });
    addAlgorithm = (signal, does) => {
      if (signal.#reason === undefined) followed(signal).algorithms.add(does);
    };
    removeAlgorithm = (signal, does) => {
      signal.#links?.algorithms.delete(does);
    };
    abort = (signal, reason) => {
      if (signal.#reason !== undefined) return;
      signal.#reason = reason === undefined ? new DOMException("the operation was aborted", "AbortError") : reason;
      const all = [signal];
      for (const one of signal.#links?.dependents ?? []) {
        if (one.#reason !== undefined) continue;
        one.#reason = signal.#reason;
        all.push(one);
      }
      for (const one of all) {
        const links = one.#links;
        if (links) {
          for (const does of links.algorithms) does();
          links.algorithms.clear();
          for (const source of links.sources ?? []) source.#links!.dependents.delete(one);
        }
        if (listens(one)) fire(one, new Event("abort"));
      }
    };
    signals.follow = (signal, remove) => {
      if (!(signal instanceof AbortSignal)) throw new TypeError("addEventListener: signal must be an AbortSignal");
      if (signal.#reason !== undefined) return false;
      addAlgorithm(signal, remove);
      return true;
    };
  }

  constructor(given?: unknown) {
    if (given !== key) throw new TypeError("AbortSignal has no public constructor: use the signal of an AbortController");
    super();
  }
  get aborted(): boolean {
    return this.#reason !== undefined;
  }
  get reason(): unknown {
    return this.#reason;
  }
  throwIfAborted(): void {
    if (this.#reason !== undefined) throw this.#reason;
  }
  get onabort(): ((event: Event) => unknown) | null {
    return handlerOf(this, "abort");
  }
  set onabort(does: unknown) {
    setHandler(this, "abort", does);
  }

  static abort(reason?: unknown): AbortSignal {
    const signal = new AbortSignal(key);
    abort(signal, reason);
    return signal;
  }
  static timeout(milliseconds: number): AbortSignal {
    takes(1, arguments, "AbortSignal.timeout");
    const after = Math.trunc(Number(milliseconds));
    if (!(after >= 0 && after <= Number.MAX_SAFE_INTEGER)) throw new TypeError("AbortSignal.timeout: the milliseconds must be from 0 to 2 ** 53 - 1");
    const signal = new AbortSignal(key);
    startInternal("AbortSignal.timeout", () => abort(signal, withoutPlace(() => new DOMException(`the signal timed out after ${after} ms`, "TimeoutError"))), after);
    return signal;
  }
  static any(given: Iterable<AbortSignal>): AbortSignal {
    takes(1, arguments, "AbortSignal.any");
    const all = [...given];
    for (const one of all) if (!(one instanceof AbortSignal)) throw new TypeError("AbortSignal.any: each member of the list must be an AbortSignal");
    const signal = new AbortSignal(key);
    const aborted = all.find((one) => one.#reason !== undefined);
    if (aborted) {
      signal.#reason = aborted.#reason;
      return signal;
    }
    const sources = new Set<AbortSignal>();
    for (const one of all) {
      for (const source of one.#links?.sources ?? [one]) {
        sources.add(source);
        followed(source).dependents.add(signal);
      }
    }
    followed(signal).sources = sources;
    return signal;
  }
}

/** Returns a signal, and the function that aborts it. */
export function abortable(): [AbortSignal, (reason?: unknown) => void] {
  const signal = new AbortSignal(key);
  return [signal, (reason) => abort(signal, reason)];
}

export class AbortController {
  #signal = new AbortSignal(key);
  get signal(): AbortSignal {
    return this.#signal;
  }
  abort(reason?: unknown): void {
    abort(this.#signal, reason);
  }
}

export function installAbort(): void {
  expose("AbortController", AbortController);
  expose("AbortSignal", AbortSignal);
}
