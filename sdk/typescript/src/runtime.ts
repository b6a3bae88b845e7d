// The script that is evaluated before the handlers. It leaves behind what people
// expect of JavaScript beside the language, and globalThis.__runner: the way to
// the host, for the SDK, which is part of the handlers' script. That is taken
// away before the first request.

import "./web/lengths.ts"; // before define.ts
import { installAbort } from "./web/abort.ts";
import { installConsole } from "./web/console.ts";
import { define } from "./web/define.ts";
import { installCrypto } from "./web/crypto.ts";
import { installEncoding } from "./web/encoding.ts";
import { installEvents } from "./web/events.ts";
import { installException } from "./web/exception.ts";
import { installFetch } from "./web/fetch/fetch.ts";
import { type Runner } from "./host.ts";
import { installClone } from "./web/clone.ts";
import { installLocale } from "./locale.ts";
import { installStreams } from "./web/streams/install.ts";
import { installTickets } from "./tickets.ts";
import { installTimers } from "./web/timers.ts";
import { installTraces } from "./trace.ts";
import { installPerformance } from "./web/performance.ts";
import { installURL } from "./web/url.ts";

declare const globalThis: { __runner: Runner };

const runner = globalThis.__runner;

runner.live = false;
runner.violation = null;
runner.unseen = 0;
runner.timers = 0;
runner.frozen = [];
installTraces(runner, "handlers.js");
runner.uncaught = (error, kind = "exception") => runner.host.log(4, runner.report(kind, error));

// What belongs to a request cannot be had while the module is built. The first
// attempt is kept: catching the error does not undo it.
runner.demand = (what) => {
  if (runner.live) return;
  const error = new Error(
    `${what} belongs to a request, and there is none while the module is built: call it inside of a handler`,
  );
  runner.violation ??= error;
  throw error;
};

runner.freeze = (what) => {
  const error = new Error(`${what} the same in every request: call it inside of a handler`);
  if (runner.frozen.length < 100 && !runner.frozen.some((e) => e.stack === error.stack)) runner.frozen.push(error);
};

const rejections = (runner.rejections = new Map());
runner.rejected = (promise, reason, handled) => {
  if (handled) rejections.delete(promise);
  else rejections.set(promise, reason);
  runner.unseen = rejections.size;
};
runner.lost = () => [...rejections.values()];
runner.abandon = () => {
  rejections.clear();
  runner.unseen = 0;
};

define("self", globalThis);
installException();
installConsole(runner);
installEncoding(runner);
installURL();
installLocale();
installCrypto(runner);
installTimers(runner);
installEvents(runner);
installAbort();
installPerformance();
installStreams();
installTickets(runner);
installFetch(runner);
installClone(runner);

// Much of the language is made when it is first looked at. What most handlers use is
// looked at now, so that it is there in every request.
const look = (at: object): void => {
  for (const key of Reflect.ownKeys(at)) Object.getOwnPropertyDescriptor(at, key);
};
for (const made of [Object, Array, String, Number, Promise, Map, Set, RegExp, Date, Error, Symbol, Uint8Array]) {
  look(made);
  look(made.prototype);
}
look(Function.prototype);
look(JSON);
look(Math);
for (const made of [async () => {}, [][Symbol.iterator](), new Map().entries(), "".matchAll(/a/g), new Uint8Array(0)]) {
  const above = Object.getPrototypeOf(made);
  look(above);
  look(Object.getPrototypeOf(above));
}
