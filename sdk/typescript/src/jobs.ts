// Work for after the commit.

import { known, Mark, type Operation, Whole } from "./host.ts";

interface Options {
  delay?: number;
  at?: string | Date;
  key?: string;
}

export const jobs = {
  enqueue(name: string, params: object = {}, options: Options = {}): Operation<{ id: string; created: boolean }> {
    const { delay, at, key } = known("jobs.enqueue", options, "delay", "at", "key");
    return new Whole("jobs.enqueue", { name, params, delay, at, key }, undefined, new Mark("jobs.enqueue"));
  },
  cancel: (id: string) => new Whole<boolean>("jobs.cancel", { id }, ({ cancelled }) => cancelled, new Mark("jobs.cancel")),
};
