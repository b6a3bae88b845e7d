// The offsets of time zones, which the host knows.

import { errno, failure, result, runner } from "./host.ts";

/** A time in which the offset of a zone does not change; times are in seconds. */
export interface Period {
  /** The name as the IANA time zone database spells it. */
  zone: string;
  offset: number;
  /** Of the database: "CET", or "+03" where it has none. */
  abbreviation: string;
  /** Included; null: it has no beginning. */
  from: number | null;
  /** Excluded; null: it has no end. */
  until: number | null;
}

const utc: Period = { zone: "UTC", offset: 0, abbreviation: "UTC", from: null, until: null };

/** The zones with the names of UTC. */
const likeUTC = /^((etc\/)?(utc|uct|gmt|universal|zulu)|gmt[+-]?0)$/i;

// By name as it was asked for. What holds when is kept for a request, and not in the module:
// the host's data may become newer than the module.
const names = new Map<string, string>();
const periods = new Map<string, Period[]>();

/** The name of a zone as the database spells it. */
export function zoneNamed(name: string): string {
  if (likeUTC.test(name)) return utc.zone;
  let zone = names.get(name);
  if (zone === undefined) names.set(name, (zone = ask(name, 0).zone));
  return zone;
}

/** The period of a zone of zoneNamed that contains an instant, in milliseconds since 1970. */
export function periodAt(zone: string, time: number): Period {
  if (zone === utc.zone) return utc;
  const at = Math.floor(time / 1000);
  const kept = periods.get(zone);
  if (kept) for (const period of kept) if ((period.from ?? at) <= at && at < (period.until ?? Infinity)) return period;
  const period = ask(zone, at);
  if (runner.live) {
    if (kept) kept.push(period);
    else periods.set(zone, [period]);
  }
  return period;
}

function ask(zone: string, at: number): Period {
  const op = "timeZone";
  const n = runner.host.call(op, JSON.stringify({ zone, at }));
  if (n >= 0) return result();
  if (errno(n) === "invalid") throw new RangeError(`Invalid time zone specified: ${zone}`);
  throw failure(n, op);
}
