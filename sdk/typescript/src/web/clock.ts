// The clock of performance and of events (High Resolution Time, 3). The time origin of a request is when it first reads
// this clock.

import { runner } from "../host.ts";

const clock: () => number = performance.now.bind(performance);
const { now: date } = Date;

// Outside of requests, both times are 0.
let began: number | undefined;
let timeOrigin: number | undefined;

function begun(): boolean {
  if (runner.live) began ??= clock() - 0.001; // so that now never returns 0 in a request
  return began !== undefined;
}

/** The time of the time origin, in milliseconds since 1970. */
export const origin = (): number => (begun() ? (timeOrigin ??= date() - now()) : 0);

/**
 * Milliseconds since the time origin. It does not read the date: a live route whose handler does that runs again every
 * second, and each operation on rows reads this clock.
 */
export const now = (): number => (begun() ? clock() - began! : 0);
