// Headers (Fetch Standard, 5.1). As in other runtimes of servers, no name is forbidden to a request or a
// response: a handler may send Cookie and Set-Cookie. Headers of received messages cannot be changed.

import { byteString, isObject, iterable, replaced, sequence, takes } from "../idl.ts";

export type HeadersInit = Headers | Iterable<[string, string]> | Record<string, string>;

export type Pair = [name: string, value: string];

// Private members of Headers for this folder: set the guard "immutable", copy, make Headers of valid pairs with names in
// lower case, and list the pairs that the iterator returns.
export let seal: (headers: Headers) => Headers;
export let copyOf: (headers: Headers) => Headers;
export let checked: (pairs: Pair[]) => Headers;
export let pairsOf: (headers: Headers) => Pair[];

export class Headers {
  #list: Pair[] = [];
  #immutable = false;
  #sorted: Pair[] | undefined; // kept until a change

  static {
    seal = (headers) => {
      headers.#immutable = true;
      return headers;
    };
    copyOf = (headers) => checked([...headers.#list]);
    checked = (pairs) => {
      const headers = new Headers();
      headers.#list = pairs;
      return headers;
    };
    pairsOf = (headers) => (headers.#sorted ??= headers.#sort());
  }

  constructor(init?: HeadersInit) {
    if (init === undefined) return;
    if (isObject(init) && #list in init && init[Symbol.iterator] === entries) {
      this.#list = [...init.#list];
      return;
    }
    for (const [name, value] of initPairs(init)) this.#list.push([nameOf(name), valueOf(name, value)]);
  }
  append(name: string, value: string): void {
    takes(2, arguments, "Headers.append");
    const pair = this.#pair(name, value);
    this.#list.push(pair);
  }
  delete(name: string): void {
    takes(1, arguments, "Headers.delete");
    const key = nameOf(name);
    this.#change();
    this.#list = this.#list.filter(([n]) => n !== key);
  }
  get(name: string): string | null {
    takes(1, arguments, "Headers.get");
    const values = this.#values(nameOf(name));
    return values.length === 0 ? null : values.join(", ");
  }
  getSetCookie(): string[] {
    return this.#values("set-cookie");
  }
  has(name: string): boolean {
    takes(1, arguments, "Headers.has");
    const key = nameOf(name);
    return this.#list.some(([n]) => n === key);
  }
  set(name: string, value: string): void {
    takes(2, arguments, "Headers.set");
    const pair = this.#pair(name, value);
    this.#list = replaced(this.#list, pair);
  }

  #values(key: string): string[] {
    return this.#list.filter(([n]) => n === key).map(([, value]) => value);
  }
  #pair(name: string, value: string): Pair {
    const pair: Pair = [nameOf(name), valueOf(name, byteString(value, `Headers: the value of ${name}`))];
    this.#change();
    return pair;
  }
  #change(): void {
    if (this.#immutable) throw new TypeError("Headers: the headers of a received message cannot be changed: copy them, with new Headers(headers) or new Response(response.body, response)");
    this.#sorted = undefined;
  }
  /** The list by name, with one value for each; each Set-Cookie is on its own. */
  #sort(): Pair[] {
    const all = new Map<string, string[]>();
    for (const [name, value] of this.#list) {
      const values = all.get(name);
      if (values) values.push(value);
      else all.set(name, [value]);
    }
    return [...all.keys()].sort().flatMap((name): Pair[] => {
      const values = all.get(name)!;
      return name === "set-cookie" ? values.map((value) => [name, value]) : [[name, values.join(", ")]];
    });
  }
}

export interface Headers {
  forEach(does: (value: string, name: string, headers: Headers) => void, self?: unknown): void;
  entries(): IterableIterator<Pair>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<Pair>;
}

iterable("Headers", Headers, (headers: Headers) => pairsOf(headers));
const { entries } = Headers.prototype;

/** The pairs that Headers are made of: a sequence of sequences, or a record. */
function initPairs(init: unknown): Pair[] {
  if (!isObject(init)) throw new TypeError("Headers: the argument must be Headers, a list of pairs or an object");
  const pairs: Pair[] = [];
  const given = sequence(init);
  if (given !== undefined) {
    for (const pair of given) {
      const items = isObject(pair) ? Array.from(sequence(pair) ?? [], (item) => byteString(item, "Headers: a name or value")) : [];
      if (items.length !== 2) throw new TypeError("Headers: each pair must be a list of a name and a value");
      pairs.push(items as Pair);
    }
    return pairs;
  }
  for (const key of Reflect.ownKeys(init)) {
    if (!Reflect.getOwnPropertyDescriptor(init, key)?.enumerable) continue;
    const name = byteString(key, "Headers: a name");
    pairs.push([name, byteString((init as any)[key], `Headers: the value of ${name}`)]);
  }
  return pairs;
}

// Normalizes a value (Fetch Standard, 2.2.2): without blanks around it. A line break within it would end the header.
function valueOf(name: string, given: string): string {
  if (!/^[\t ]|[\t ]$|[\0\n\r]/.test(given)) return given;
  const value = given.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[\0\n\r]/.test(value)) throw new TypeError(`Headers: the value of ${name} has a line break or a NUL`);
  return value;
}

function nameOf(name: unknown): string {
  const text = `${name as string}`;
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text)) throw new TypeError(`Headers: ${JSON.stringify(text)} is not a valid header name`);
  return text.toLowerCase();
}
