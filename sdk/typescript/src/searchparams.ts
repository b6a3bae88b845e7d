// URLSearchParams (URL Standard, 5 and 6.2).

type Init = string | URLSearchParams | Iterable<[string, string]> | Record<string, string>;

/** What only a URL does with its parameters. */
export let attach: (params: URLSearchParams, changed: (query: string) => void) => void;
export let refill: (params: URLSearchParams, query: string) => void;

const text = (value: unknown) => String(value).toWellFormed();

export class URLSearchParams {
  #list: [string, string][] = [];
  #changed?: (query: string) => void;

  static {
    attach = (params, changed) => {
      params.#changed = changed;
    };
    refill = (params, query) => {
      params.#list = parse(query);
    };
  }

  constructor(init: Init = "") {
    if ((typeof init !== "object" && typeof init !== "function") || init === null) {
      this.#list = parse(text(init).replace(/^\?/, ""));
    } else if ((init as Iterable<unknown>)[Symbol.iterator] != null) {
      for (const pair of init as Iterable<[string, string]>) {
        const items = typeof pair === "object" ? [...pair] : [];
        if (items.length !== 2) throw new TypeError("URLSearchParams: a pair is a name and a value");
        this.#list.push([text(items[0]), text(items[1])]);
      }
    } else {
      const pairs = new Map<string, string>();
      for (const [name, value] of Object.entries(init)) pairs.set(text(name), text(value));
      this.#list = [...pairs];
    }
  }

  #update(): void {
    this.#changed?.(this.toString());
  }

  get size(): number {
    return this.#list.length;
  }
  append(name: string, value: string): void {
    this.#list.push([text(name), text(value)]);
    this.#update();
  }
  delete(name: string, value?: string): void {
    const [key, only] = [text(name), value === undefined ? undefined : text(value)];
    this.#list = this.#list.filter(([n, v]) => n !== key || (only !== undefined && v !== only));
    this.#update();
  }
  get(name: string): string | null {
    const key = text(name);
    return this.#list.find(([n]) => n === key)?.[1] ?? null;
  }
  getAll(name: string): string[] {
    const key = text(name);
    return this.#list.filter(([n]) => n === key).map(([, v]) => v);
  }
  has(name: string, value?: string): boolean {
    const [key, only] = [text(name), value === undefined ? undefined : text(value)];
    return this.#list.some(([n, v]) => n === key && (only === undefined || v === only));
  }
  set(name: string, value: string): void {
    const pair: [string, string] = [text(name), text(value)];
    const at = this.#list.findIndex(([n]) => n === pair[0]);
    if (at < 0) {
      this.#list.push(pair);
    } else {
      this.#list = this.#list.filter(([n], i) => n !== pair[0] || i === at);
      this.#list[at] = pair;
    }
    this.#update();
  }
  sort(): void {
    this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#update();
  }
  // The list may change while it is walked.
  forEach(does: (value: string, name: string, params: URLSearchParams) => void, self?: unknown): void {
    for (let i = 0; i < this.#list.length; i++) does.call(self, this.#list[i][1], this.#list[i][0], this);
  }
  *entries(): IterableIterator<[string, string]> {
    for (let i = 0; i < this.#list.length; i++) yield [...this.#list[i]];
  }
  *keys(): IterableIterator<string> {
    for (let i = 0; i < this.#list.length; i++) yield this.#list[i][0];
  }
  *values(): IterableIterator<string> {
    for (let i = 0; i < this.#list.length; i++) yield this.#list[i][1];
  }
  toString(): string {
    return this.#list.map(([name, value]) => `${form(name)}=${form(value)}`).join("&");
  }
  declare [Symbol.iterator]: () => IterableIterator<[string, string]>;
  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}
Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: URLSearchParams.prototype.entries, writable: true, configurable: true });

/** The pairs of application/x-www-form-urlencoded. */
function parse(query: string): [string, string][] {
  const pairs: [string, string][] = [];
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    pairs.push(at < 0 ? [decode(pair), ""] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]);
  }
  return pairs;
}

function decode(part: string): string {
  const plain = part.replaceAll("+", " ");
  if (!plain.includes("%")) return plain;
  try {
    return decodeURIComponent(plain);
  } catch {
    // Bytes that are not UTF-8, or a % without two digits.
    const bytes: number[] = [];
    const encoded = new TextEncoder().encode(plain);
    for (let i = 0; i < encoded.length; i++) {
      const code = encoded[i] === 0x25 ? /^[0-9A-Fa-f]{2}$/.exec(String.fromCharCode(encoded[i + 1], encoded[i + 2])) : null;
      bytes.push(code ? parseInt(code[0], 16) : encoded[i]);
      if (code) i += 2;
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }
}

/** application/x-www-form-urlencoded: letters, digits and *-._ stay, a space is +. */
function form(part: string): string {
  return encodeURIComponent(part)
    .replace(/[!'()~]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase())
    .replaceAll("%20", "+");
}
