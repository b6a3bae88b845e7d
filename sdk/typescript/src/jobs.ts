// Work for after the commit.

import { Mark, type Operation, Whole } from "./host.ts";

interface Options {
  delay?: number;
  at?: string | Date;
  key?: string;
}

export const jobs = {
  enqueue(name: string, params: object = {}, options: Options = {}): Operation<{ id: string; created: boolean }> {
    return new Whole("jobs.enqueue", { name, params, delay: options.delay, at: options.at, key: options.key }, undefined, new Mark("jobs.enqueue"));
  },
  cancel: (id: string) => new Whole<boolean>("jobs.cancel", { id }, ({ cancelled }) => cancelled, new Mark("jobs.cancel")),
};
