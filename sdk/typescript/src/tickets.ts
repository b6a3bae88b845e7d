// Operations that go on beside the handler. Each has a ticket; when no job is left,
// serve waits for one of them.

import { failure, placeless, result, type Runner, written } from "./host.ts";
import { waitingFor } from "./web/timers.ts";

interface Waiting {
  op: string;
  began: Error;
  done: (value: unknown) => void;
  failed: (reason: unknown) => void;
}

export function installTickets(runner: Runner): void {
  const { host } = runner;
  const open = new Map<number, Waiting>();
  let sleeping = Infinity; // until when the operation lasts that stands for a timer

  runner.begin = (op, args) => {
    runner.demand(op);
    const began = new Error();
    return new Promise((done, failed) => {
      const ticket = host.call_start(op, written(op, args));
      if (ticket < 0) throw failure(ticket, op);
      open.set(ticket, { op, began, done, failed });
    });
  };

  const { abandon, busy } = runner;
  runner.busy = () => busy() + open.size;
  runner.abandon = () => {
    abandon();
    open.clear();
  };

  const timed = runner.waiting;
  runner.waiting = () => {
    const [first] = open.values();
    return first ? waitingFor(first.op, first.began) : timed();
  };

  runner.await = (pause) => {
    if (open.size === 0) return false;
    if (pause !== undefined && Date.now() + pause < sleeping) {
      const seconds = Math.min(Math.max(pause, 1), 60_000) / 1000;
      // Without one the timer is late, and the operations are not.
      if (host.call_start("sleep", JSON.stringify({ seconds })) >= 0) sleeping = Date.now() + seconds * 1000;
    }
    const ticket = host.call_wait();
    const waiting = open.get(ticket);
    if (ticket < 0) {
      for (const { op, failed } of open.values()) failed(placeless(failure(ticket, op)));
      open.clear();
    } else if (waiting === undefined) {
      host.call_take(ticket);
      sleeping = Infinity;
    } else {
      open.delete(ticket);
      const n = host.call_take(ticket);
      if (n < 0) waiting.failed(placeless(failure(n, waiting.op)));
      else waiting.done(result());
    }
    return true;
  };
}
