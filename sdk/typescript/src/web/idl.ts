// Conversions and iterators as Web IDL has them, for interfaces of the web platform.

/** A string without unpaired surrogates (USVString). */
export const usv = (value: unknown): string => `${value as string}`.toWellFormed();

/** A string whose characters are bytes (ByteString). The error names it as `what`. */
export function byteString(value: unknown, what: string): string {
  const text = `${value as string}`;
  if (/[^\0-\xff]/.test(text)) {
    const [high] = /[^\0-\xff]/u.exec(text)!;
    throw new TypeError(`${what} has the character ${JSON.stringify(high)}: a header can only have characters up to U+00FF (encode others, for example with encodeURIComponent)`);
  }
  return text;
}

export const isObject = (value: unknown): value is object => (typeof value === "object" && value !== null) || typeof value === "function";

/** An argument that is a dictionary. Undefined and null are a dictionary without members. */
export function dictionary(value: unknown, what: string): any {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw new TypeError(`${what}: the options must be an object`);
  return value;
}

/** A member of a dictionary whose value is one of the words (an enumeration); undefined stays undefined. */
export function oneOf(value: unknown, words: string, what: string): any {
  if (value === undefined) return undefined;
  const word = `${value as string}`;
  const all = words.split(" ");
  if (!all.includes(word)) throw new TypeError(`${what} must be one of ${all.map((one) => JSON.stringify(one)).join(", ")}`);
  return word;
}

/** Refuses a call with fewer arguments than required. */
export function takes(least: number, given: ArrayLike<unknown>, what: string): void {
  if (given.length < least) throw new TypeError(`${what}: ${least} argument${least > 1 ? "s are" : " is"} required, not ${given.length}`);
}

/** An iterable object (sequence), whose Symbol.iterator is read once. Undefined if it has none. */
export function sequence(value: any): Iterable<any> | undefined {
  const begin = value[Symbol.iterator];
  return begin === undefined || begin === null ? undefined : { [Symbol.iterator]: () => begin.call(value) };
}

/** Puts a pair in the place of the first one with its name, and removes the others with it; without one it is added. Returns the list. */
export function replaced<P extends readonly [string, unknown]>(list: P[], pair: P): P[] {
  const at = list.findIndex(([name]) => name === pair[0]);
  if (at < 0) {
    list.push(pair);
    return list;
  }
  const rest = list.filter(([name], i) => name !== pair[0] || i === at);
  rest[at] = pair;
  return rest;
}

type Pairs = readonly (readonly [unknown, unknown])[];

/** Makes an interface iterable (Web IDL, 3.7.9). pairs returns the current pairs, and throws for another object. */
export function iterable(name: string, { prototype }: { prototype: object }, pairs: (self: any) => Pairs): void {
  class PairIterator {
    #of: object;
    #kind: number;
    #at = 0;
    constructor(of: object, kind: number) {
      pairs(of); // a TypeError if it is another object
      this.#of = of;
      this.#kind = kind;
    }
    next(): IteratorResult<unknown> {
      const pair = pairs(this.#of)[this.#at];
      if (pair === undefined) return { value: undefined, done: true };
      this.#at++;
      return { value: this.#kind === 2 ? [...pair] : pair[this.#kind], done: false };
    }
  }
  const iterator = PairIterator.prototype as { constructor?: unknown };
  delete iterator.constructor;
  Object.setPrototypeOf(iterator, Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())));
  Object.defineProperty(iterator, "next", { enumerable: true });
  Object.defineProperty(iterator, Symbol.toStringTag, { value: `${name} Iterator`, configurable: true });
  const methods: Record<string, (...given: any[]) => unknown> = {
    entries() {
      return new PairIterator(this, 2);
    },
    keys() {
      return new PairIterator(this, 0);
    },
    values() {
      return new PairIterator(this, 1);
    },
    forEach(does: unknown, self?: unknown) {
      pairs(this);
      if (typeof does !== "function") throw new TypeError(`${name}.forEach: the callback must be a function`);
      for (let at = 0, all; at < (all = pairs(this)).length; at++) does.call(self, all[at][1], all[at][0], this);
    },
  };
  for (const key in methods) Object.defineProperty(prototype, key, { value: methods[key], writable: true, enumerable: true, configurable: true });
  Object.defineProperty(prototype, Symbol.iterator, { value: methods.entries, writable: true, configurable: true });
}
