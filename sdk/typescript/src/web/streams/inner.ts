// The internal state of stream objects. It is in a private field that all classes share: one field with its
// accessors for each class would take several times the memory in every module.

const same = function (object: object) {
  return object;
} as unknown as new (object: object) => object;

let stateOf: (object: object) => unknown;

class Stamp extends same {
  #state: unknown;

  static {
    stateOf = (object) => (#state in object ? (object as Stamp).#state : undefined);
  }

  constructor(object: object, state: unknown) {
    super(object);
    this.#state = state;
  }
}

/** Sets the state of a new object of an interface. */
export function stamp(object: object, state: unknown): void {
  new Stamp(object, state);
}

/** Whether the value has a state of that class. */
export const has = (value: unknown, kind: Function): boolean => typeof value === "object" && value !== null && stateOf(value) instanceof kind;

/** The state of an object; throws for another one. */
export function inner<T>(value: unknown, kind: abstract new (...args: any) => T, name = "n object of this class"): T {
  if (!has(value, kind)) throw new TypeError(`this is not a${name}`);
  return stateOf(value as object) as T;
}

/** Checks the argument of a constructor that scripts cannot call, and returns it. */
export function made<T>(given: unknown, kind: abstract new (...args: any) => T): T {
  if (!(given instanceof kind)) throw new TypeError("Illegal constructor: a stream makes this object");
  return given;
}

/** Copies members of a class to another one (mixins of Web IDL). */
export function share(from: Function, to: Function, ...keys: string[]): void {
  for (const key of keys) Object.defineProperty(to.prototype, key, Object.getOwnPropertyDescriptor(from.prototype, key)!);
}
