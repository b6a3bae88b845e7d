// ErrorEvent, PromiseRejectionEvent and reportError (HTML, 8.1.4). This script is optional: see
// develop/toolchain/typescript/parts.go. It tells listeners of the global about uncaught errors before they are logged.

import { define, expose } from "./define.ts";
import { dictionary, isObject, takes } from "./idl.ts";
import { runner } from "../host.ts";

class ErrorEvent extends Event {
  #message: string;
  #filename: string;
  #lineno: number;
  #colno: number;
  #error: unknown;
  constructor(type: string, init?: { message?: string; filename?: string; lineno?: number; colno?: number; error?: unknown }) {
    takes(1, arguments, "ErrorEvent");
    super(type, init as EventInit);
    const { colno, error, filename = "", lineno, message = "" } = dictionary(init, "ErrorEvent");
    this.#colno = colno >>> 0;
    this.#error = error;
    this.#filename = `${filename}`.toWellFormed();
    this.#lineno = lineno >>> 0;
    this.#message = `${message}`;
  }
  get message(): string {
    return this.#message;
  }
  get filename(): string {
    return this.#filename;
  }
  get lineno(): number {
    return this.#lineno;
  }
  get colno(): number {
    return this.#colno;
  }
  get error(): unknown {
    return this.#error;
  }
}

class PromiseRejectionEvent extends Event {
  #promise: object;
  #reason: unknown;
  constructor(type: string, init: { promise: object; reason?: unknown; cancelable?: boolean }) {
    takes(2, arguments, "PromiseRejectionEvent");
    super(type, init);
    const { promise, reason } = dictionary(init, "PromiseRejectionEvent");
    if (!isObject(promise)) throw new TypeError("PromiseRejectionEvent: promise must be an object");
    this.#promise = promise;
    this.#reason = reason;
  }
  get promise(): object {
    return this.#promise;
  }
  get reason(): unknown {
    return this.#reason;
  }
}

let inError = false;

/** Reports an exception to listeners (HTML, 8.1.4.4), and returns whether one has handled it. */
function reported(error: unknown): boolean {
  if (inError) return false; // thrown by such a listener
  inError = true;
  try {
    const known = error instanceof Error;
    const at = known ? / \(?([^ (]+):(\d+):(\d+)\)?$/m.exec(String(error.stack)) : null;
    const message = known ? `Uncaught ${error}` : "Uncaught exception";
    return !runner.fire(globalThis, new ErrorEvent("error", { message, filename: at?.[1], lineno: Number(at?.[2] ?? 0), colno: Number(at?.[3] ?? 0), error, cancelable: true } as object));
  } finally {
    inError = false;
  }
}

const { uncaught, wake } = runner;
runner.uncaught = (error, kind) => {
  if (kind !== undefined || !reported(error)) uncaught(error, kind);
};
runner.wake = () => {
  try {
    wake();
  } catch (error) {
    if (!reported(error)) throw error;
  }
};
runner.handled = reported;

const told = new WeakSet<object>();
const { rejected } = runner;
const tell = (type: string, promise: object, reason: unknown): boolean =>
  runner.fire(globalThis, new PromiseRejectionEvent(type, { promise, reason, cancelable: type === "unhandledrejection" }));

// HTML, 8.1.4.7.
runner.rejected = (promise, reason, handled) => {
  rejected(promise, reason, handled);
  if (handled && told.delete(promise)) runner.later("rejectionhandled", () => tell("rejectionhandled", promise, reason), 0);
};
runner.notify = () => {
  let some = false;
  for (const [promise, reason] of [...runner.rejections]) {
    if (told.has(promise)) continue;
    told.add(promise);
    some = true;
    if (!tell("unhandledrejection", promise, reason)) rejected(promise, reason, 1);
  }
  return some;
};

expose("ErrorEvent", ErrorEvent);
expose("PromiseRejectionEvent", PromiseRejectionEvent);
define("reportError", (...given: [unknown]) => {
  takes(1, given, "reportError");
  runner.uncaught(given[0]);
});

let onerror: Function | null = null;
const handlers = {
  get onerror() {
    return onerror;
  },
  // It gets the parts of the event, and returns true for what it has handled (HTML, 8.1.8.1).
  set onerror(does: any) {
    onerror = typeof does === "function" ? does : null;
    runner.setHandler(globalThis, "error", onerror && function ({ message, filename, lineno, colno, error }: ErrorEvent): false | void {
      if (onerror!.call(globalThis, message, filename, lineno, colno, error) === true) return false;
    });
  },
  get onunhandledrejection() {
    return runner.handlerOf(globalThis, "unhandledrejection");
  },
  set onunhandledrejection(does: any) {
    runner.setHandler(globalThis, "unhandledrejection", does);
  },
};
Object.defineProperties(globalThis, Object.getOwnPropertyDescriptors(handlers));
