// Headers (Fetch Standard, 5.1).

export type HeadersInit = Headers | Iterable<[string, string]> | Record<string, string>;

export class Headers {
  #list: [name: string, value: string][] = [];

  constructor(init: HeadersInit = {}) {
    const pairs = Symbol.iterator in init ? (init as Iterable<[string, string]>) : Object.entries(init);
    for (const [name, value] of pairs) this.append(name, value);
  }
  append(name: string, value: string): void {
    this.#list.push([check(name), normalized(name, value)]);
  }
  delete(name: string): void {
    this.#list = this.#list.filter(([n]) => n !== check(name));
  }
  get(name: string): string | null {
    const values = this.#list.filter(([n]) => n === check(name)).map(([, value]) => value);
    return values.length === 0 ? null : values.join(", ");
  }
  getSetCookie(): string[] {
    return this.#list.filter(([n]) => n === "set-cookie").map(([, value]) => value);
  }
  has(name: string): boolean {
    return this.get(name) !== null;
  }
  set(name: string, value: string): void {
    this.delete(name);
    this.append(name, value);
  }
  get [Symbol.toStringTag](): string {
    return "Headers";
  }
  forEach(does: (value: string, name: string, headers: Headers) => void): void {
    for (const [name, value] of this) does(value, name, this);
  }
  *entries(): IterableIterator<[string, string]> {
    const names = [...new Set(this.#list.map(([name]) => name))].sort();
    for (const name of names) {
      if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
      else yield [name, this.get(name)!];
    }
  }
  *keys(): IterableIterator<string> {
    for (const [name] of this) yield name;
  }
  *values(): IterableIterator<string> {
    for (const [, value] of this) yield value;
  }
  declare [Symbol.iterator]: () => IterableIterator<[string, string]>;
}

Object.defineProperty(Headers.prototype, Symbol.iterator, { value: Headers.prototype.entries, writable: true, configurable: true });

// A value without blanks around it; a line break within would end the header (Fetch Standard, 2.2.2).
// Each character is a byte.
function normalized(name: string, value: string): string {
  const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[\0\n\r]/.test(text)) throw new TypeError(`Headers: the value of ${name} has a line break or a NUL`);
  const high = /[^\0-\xff]/u.exec(text);
  if (high) throw new TypeError(`Headers: the value of ${name} has the character ${JSON.stringify(high[0])}: a header has bytes, so characters up to U+00FF (encode others, for example with encodeURIComponent)`);
  return text;
}

function check(name: string): string {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(String(name))) throw new TypeError(`Headers: ${JSON.stringify(String(name))} is not a valid header name`);
  return String(name).toLowerCase();
}
