// AbortController and AbortSignal (DOM Standard, section 3), as far as a fetch needs
// them. Other events do not exist; a listener gets an object with the type only.

import { DOMException } from "./exception.ts";
import { runner } from "./host.ts";
import { startInternal } from "./timers.ts";

type Listener = ((event: { type: "abort"; target: AbortSignal }) => unknown) | null;

// What only the maker of a signal does with it.
let make: () => AbortSignal;
let abort: (signal: AbortSignal, reason: unknown) => void;

export class AbortSignal {
  #aborted = false;
  #reason: unknown;
  #listeners = new Set<NonNullable<Listener>>();
  onabort: Listener = null;

  static {
    make = () => new AbortSignal(abort);
    abort = (signal, reason = new DOMException("it was aborted", "AbortError")) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason;
      const event = { type: "abort", target: signal } as const;
      const listeners = [...signal.#listeners];
      signal.#listeners.clear();
      for (const listener of [signal.onabort, ...listeners]) {
        try {
          listener?.call(signal, event);
        } catch (error) {
          runner.uncaught(error);
        }
      }
    };
  }

  constructor(key?: unknown) {
    if (key !== abort) throw new TypeError("AbortSignal: make an AbortController, and use its signal");
  }
  get aborted(): boolean {
    return this.#aborted;
  }
  get reason(): unknown {
    return this.#reason;
  }
  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }
  addEventListener(type: string, listener: Listener): void {
    if (type === "abort" && listener && !this.#aborted) this.#listeners.add(listener);
  }
  removeEventListener(type: string, listener: Listener): void {
    if (type === "abort" && listener) this.#listeners.delete(listener);
  }

  static abort(reason?: unknown): AbortSignal {
    const signal = make();
    abort(signal, reason);
    return signal;
  }
  static timeout(milliseconds: number): AbortSignal {
    const signal = make();
    startInternal("AbortSignal.timeout", () => abort(signal, new DOMException(`the signal timed out after ${milliseconds} ms`, "TimeoutError")), milliseconds);
    return signal;
  }
  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const signal = make();
    for (const one of signals) {
      if (one.aborted) abort(signal, one.reason);
      else one.addEventListener("abort", () => abort(signal, one.reason));
    }
    return signal;
  }
}

export class AbortController {
  readonly signal = make();
  abort(reason?: unknown): void {
    abort(this.signal, reason);
  }
}
