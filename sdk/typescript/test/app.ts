// The app's clock and its jobs.

import { ask, Lazy, milliseconds } from "./host.ts";

const clockStep = (title: string, args: object) => new Lazy<Date>(title, async (started) => new Date((await ask("clock", args, started)).now));

export const clock = {
  set(time: Date | string | number): Lazy<Date> {
    const at = new Date(time);
    if (Number.isNaN(at.getTime())) throw new TypeError(`clock.set: ${JSON.stringify(time)} is not a time: use a Date, or text such as "2026-01-31T09:00:00Z"`);
    return clockStep("clock.set(…)", { set: at.toISOString() });
  },
  advance: (by: string | number) => clockStep(`clock.advance(${JSON.stringify(by)})`, { advance: milliseconds("clock.advance", by) }),
  now: () => clockStep("clock.now()", {}),
};

const jobList = (op: string) => (name?: string) => new Lazy<any[]>(`jobs.${op}()`, (started) => ask("jobs", { op, name }, started));

export const jobs = {
  enqueue: (name: string, params: object = {}, { tenant = "" }: { tenant?: string } = {}) =>
    new Lazy<{ id: string }>(`jobs.enqueue(${JSON.stringify(name)})`, (started) => ask("jobs", { op: "enqueue", name, params, tenant }, started)),
  run: () => jobList("run")(),
  list: jobList("list"),
  failed: jobList("failed"),
  waiting: jobList("waiting"),
};
