// node:async_hooks: AsyncLocalStorage and AsyncResource.
//
// The state is one Map from storages to values. It is never changed, only replaced. The engine keeps it for each
// callback of a promise, so it is also set after await: see develop/toolchain/typescript/functions/flow.c.

import { runner } from "../host.ts";
import { needFunction, needString } from "./errors.ts";

type Does = (this: any, ...values: any[]) => any;
type State = Map<object, unknown> | undefined;

/** The engine reads and writes its only member. */
const flow: { state: State } = { state: undefined };

/** Calls the function with a state. */
function within(state: State, does: Does, self: unknown, values: ArrayLike<any>): any {
  const before = flow.state;
  flow.state = state;
  try {
    return Reflect.apply(does, self, values);
  } finally {
    flow.state = before;
  }
}

/** Returns a function that runs with the current state. */
function wrap(does: Does): Does {
  const { state } = flow;
  const wrapped = function (this: unknown) {
    return within(state, does, this, arguments);
  };
  return Object.defineProperty(wrapped, "length", { value: does.length, configurable: true });
}

runner.flow = flow;

// Timers and microtasks run with the state in which they were started.
for (const name of ["setTimeout", "setInterval", "setImmediate", "queueMicrotask"] as const) {
  const original: any = globalThis[name];
  const made = {
    [name]: (does: any, ...values: unknown[]) => original(typeof does === "function" ? wrap(does) : does, ...values),
  }[name];
  Object.defineProperty(made, "length", { value: original.length, configurable: true });
  Object.defineProperty(globalThis, name, { value: made, writable: true, configurable: true, enumerable: false });
}

class AsyncLocalStorage<T = unknown> {
  readonly name: string;
  readonly #usual: T | undefined;
  constructor(options: { defaultValue?: T; name?: string } = {}) {
    this.#usual = options.defaultValue;
    this.name = options.name === undefined ? "" : String(options.name);
  }
  static bind(does: Does): Does {
    needFunction("fn", does);
    return wrap(does);
  }
  static snapshot(): (does: Does, ...values: any[]) => any {
    const { state } = flow;
    return (does, ...values) => within(state, does, undefined, values);
  }
  getStore(): T | undefined {
    const { state } = flow;
    return state?.has(this) ? (state.get(this) as T) : this.#usual;
  }
  run(value: T, does: Does, ...values: any[]): any {
    return within(new Map(flow.state).set(this, value), does, undefined, values);
  }
  exit(does: Does, ...values: any[]): any {
    return within(this.#without(), does, undefined, values);
  }
  enterWith(value: T): void {
    flow.state = new Map(flow.state).set(this, value);
  }
  disable(): void {
    flow.state = this.#without();
  }
  #without(): State {
    const rest = new Map(flow.state);
    rest.delete(this);
    return rest.size > 0 ? rest : undefined;
  }
}

class AsyncResource {
  readonly #state: State = flow.state;
  constructor(type: string) {
    needString("type", type);
  }
  static bind(does: Does, _type?: string, self?: unknown): Does {
    needFunction("fn", does);
    const bound = wrap(does);
    return self === undefined ? bound : bound.bind(self);
  }
  runInAsyncScope(does: Does, self?: unknown, ...values: any[]): any {
    return within(this.#state, does, self, values);
  }
  bind(does: Does, self?: unknown): Does {
    needFunction("fn", does);
    const resource = this;
    return function (this: unknown, ...values: any[]) {
      return resource.runInAsyncScope(does, self === undefined ? this : self, ...values);
    };
  }
  emitDestroy(): this {
    return this;
  }
  asyncId(): number {
    return 0;
  }
  triggerAsyncId(): number {
    return 0;
  }
}

const hook = { enable: () => hook, disable: () => hook };

export default {
  AsyncLocalStorage,
  AsyncResource,
  executionAsyncId: () => 0,
  triggerAsyncId: () => 0,
  executionAsyncResource: () => ({}),
  createHook: () => hook,
  asyncWrapProviders: Object.freeze(Object.create(null)),
};
