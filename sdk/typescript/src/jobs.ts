// Work for after the commit.

import { HostError, Mark, type Operation, Whole } from "./host.ts";

interface Options {
  delay?: number;
  at?: string | Date;
  key?: string;
}

export const jobs = {
  enqueue(name: string, params: object = {}, options: Options = {}): Operation<{ id: string; created: boolean }> {
    if (typeof options !== "object") throw new HostError("invalid", "jobs.enqueue: the options must be an object, such as { delay: 60 }", "jobs.enqueue");
    return new Whole("jobs.enqueue", { ...options, name, params }, undefined, new Mark("jobs.enqueue"));
  },
  cancel: (id: string) => new Whole<boolean>("jobs.cancel", { id }, ({ cancelled }) => cancelled, new Mark("jobs.cancel")),
};
