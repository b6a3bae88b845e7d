// DOMException and QuotaExceededError (Web IDL, 2.8): errors of the platform, which differ by their names.

import { define, expose } from "./define.ts";

const { defineProperty, fromEntries, entries, setPrototypeOf } = Object;

// The engine's own class. Its instances are not errors (they lack [[ErrorData]]), and their stacks have places
// in the bundled script. The legacy numbers are taken from it.
const Native = (globalThis as unknown as { DOMException: new (message: string, name: string) => { message: string; name: string; code: number } }).DOMException;

// The state of an exception. DOMException itself cannot extend Error, as its prototype is Function.prototype.
let nameOf: (error: object) => string;
let messageOf: (error: object) => string;
let isException: (value: object) => boolean;
class State extends Error {
  #name: string;
  #message: string;
  constructor(message: string, name: string) {
    super();
    this.#message = message;
    this.#name = name;
  }
  static {
    nameOf = (error) => (error as State).#name;
    messageOf = (error) => (error as State).#message;
    isException = (value) => #name in value;
  }
}

class Exception {
  constructor(message: unknown = "", name: unknown = "Error") {
    return setPrototypeOf(new State(`${message}`, `${name}`), new.target.prototype);
  }
  get name(): string {
    return nameOf(this);
  }
  get message(): string {
    return messageOf(this);
  }
  /** The legacy number of the name; 0 if it has none. */
  get code(): number {
    return new Native("", nameOf(this)).code;
  }
}
setPrototypeOf(Exception.prototype, Error.prototype);

export type DOMException = Error & { readonly code: number };
export const DOMException = Exception as unknown as { new (message?: string, name?: string): DOMException; readonly prototype: DOMException };

/** An optional number of QuotaExceededErrorOptions. */
function amount(options: Record<string, unknown> | null, name: string): number | null {
  const value = options?.[name];
  if (value === undefined) return null;
  const n = Number(value);
  if (!Number.isFinite(n)) throw new TypeError(`QuotaExceededError: ${name} is not a finite number`);
  if (n < 0) throw new RangeError(`QuotaExceededError: ${name} is negative`);
  return n;
}

export class QuotaExceededError extends DOMException {
  #quota: number | null;
  #requested: number | null;
  constructor(message: string = "", options: { quota?: number; requested?: number } | null = null) {
    super(message, "QuotaExceededError");
    if (typeof options !== "object" && typeof options !== "function") throw new TypeError("QuotaExceededError: the options must be an object");
    this.#quota = amount(options, "quota");
    this.#requested = amount(options, "requested");
    if (this.#quota !== null && this.#requested !== null && this.#requested < this.#quota) {
      throw new RangeError("QuotaExceededError: requested is less than quota");
    }
  }
  get quota(): number | null {
    return this.#quota;
  }
  get requested(): number | null {
    return this.#requested;
  }
}

/** Serializes and deserializes an exception (Web IDL, 2.8.1); undefined for other objects. */
export function cloneException(value: object): object | undefined {
  if (!isException(value)) return undefined;
  const name = nameOf(value);
  const message = messageOf(value);
  const { quota, requested } = value as QuotaExceededError;
  const copy = value instanceof QuotaExceededError
    ? new QuotaExceededError(message, { quota: quota ?? undefined, requested: requested ?? undefined })
    : new DOMException(message, name);
  defineProperty(copy, "stack", { value: (value as Error).stack, writable: true, configurable: true });
  return copy;
}

export function installException(): void {
  expose("DOMException", DOMException, fromEntries(entries(Native)));
  expose("QuotaExceededError", QuotaExceededError);
  // The engine's functions throw its own class.
  const base64 = globalThis as unknown as Record<"atob" | "btoa", (text: string) => string>;
  for (const name of ["atob", "btoa"] as const) {
    const native = base64[name];
    define(name, {
      base64(text: string): string {
        if (arguments.length === 0) throw new TypeError(`${name}: 1 argument is required, not 0`);
        try {
          return native(text);
        } catch (error) {
          throw error instanceof Native ? new DOMException(`${name}: ${error.message}`, error.name) : error;
        }
      },
    }.base64);
  }
}
