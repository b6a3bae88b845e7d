// The clock of performance and of events (High Resolution Time, 3). The time origin of a request is when it first reads
// this clock.

import { runner } from "../host.ts";

const clock: () => number = performance.now.bind(performance);
const { now: date } = Date;

// Outside of requests, both times are 0.
let began: number | undefined;
let timeOrigin = 0;

/** The time of the time origin, in milliseconds since 1970. */
export function origin(): number {
  if (began === undefined && runner.live) {
    began = clock() - 0.001; // so that now never returns 0 in a request
    timeOrigin = date();
  }
  return timeOrigin;
}

/** Milliseconds since the time origin. */
export function now(): number {
  if (began === undefined && origin() === 0) return 0;
  return clock() - began!;
}
