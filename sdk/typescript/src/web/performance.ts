// Performance (High Resolution Time, 7) and Navigator (HTML, 8.10). The optional script usertiming.ts adds the entries
// of User Timing.

import { expose, define } from "./define.ts";
import { now, origin } from "./clock.ts";
import { EventTarget } from "./events.ts";

const key = {};
class Performance extends EventTarget {
  #made = true;
  constructor(given: unknown) {
    if (given !== key) throw new TypeError("Performance has no public constructor: use performance");
    super();
  }
  now(): number {
    this.#made;
    return now();
  }
  get timeOrigin(): number {
    this.#made;
    return origin();
  }
  toJSON(): object {
    this.#made;
    return { timeOrigin: origin() };
  }
}

class Navigator {
  #made = true;
  constructor(given: unknown) {
    if (given !== key) throw new TypeError("Navigator has no public constructor: use navigator");
  }
  get userAgent(): string {
    return this.#made ? "runner" : "";
  }
}

export function installPerformance(): void {
  expose("Performance", Performance);
  expose("Navigator", Navigator);
  define("performance", new Performance(key));
  define("navigator", new Navigator(key));
}
