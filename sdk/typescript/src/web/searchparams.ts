// URLSearchParams (URL Standard, 5 and 6.2).

import { expose } from "./define.ts";
import { fromBinary, toBinary } from "./encoding.ts";
import { decodeAll, encode } from "./fetch/text.ts";
import { isObject, iterable, replaced, takes, usv as text } from "./idl.ts";
import { percentDecode } from "./percent.ts";

type Init = string | URLSearchParams | Iterable<[string, string]> | Record<string, string>;

/** Private members of URLSearchParams that URL uses. */
export let attach: (params: URLSearchParams, changed: (query: string) => void) => void;
export let refill: (params: URLSearchParams, query: string) => void;

let pairsOf: (params: URLSearchParams) => [string, string][];


export class URLSearchParams {
  #list: [string, string][] = [];
  #changed?: (query: string) => void;

  static {
    attach = (params, changed) => {
      params.#changed = changed;
    };
    pairsOf = (params) => params.#list;
    refill = (params, query) => {
      params.#list = parse(query);
    };
  }

  constructor(init: Init = "") {
    if (!isObject(init)) {
      this.#list = parse(text(init).replace(/^\?/, ""));
    } else if ((init as Iterable<unknown>)[Symbol.iterator] != null) {
      for (const pair of init as Iterable<[string, string]>) {
        if (!isObject(pair)) throw new TypeError("URLSearchParams: each pair must be a list of a name and a value");
        const items = [...(pair as Iterable<string>)];
        if (items.length !== 2) throw new TypeError("URLSearchParams: each pair must be a list of a name and a value");
        this.#list.push([text(items[0]), text(items[1])]);
      }
    } else {
      const pairs = new Map<string, string>();
      for (const name of Reflect.ownKeys(init)) {
        if (Object.getOwnPropertyDescriptor(init, name)?.enumerable) pairs.set(text(name), text((init as Record<string | symbol, string>)[name]));
      }
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
    takes(2, arguments, "URLSearchParams.append");
    this.#list.push([text(name), text(value)]);
    this.#update();
  }
  delete(name: string, value?: string): void {
    takes(1, arguments, "URLSearchParams.delete");
    const [key, only] = [text(name), value === undefined ? undefined : text(value)];
    this.#list = this.#list.filter(([n, v]) => n !== key || (only !== undefined && v !== only));
    this.#update();
  }
  get(name: string): string | null {
    takes(1, arguments, "URLSearchParams.get");
    const key = text(name);
    return this.#list.find(([n]) => n === key)?.[1] ?? null;
  }
  getAll(name: string): string[] {
    takes(1, arguments, "URLSearchParams.getAll");
    const key = text(name);
    return this.#list.filter(([n]) => n === key).map(([, v]) => v);
  }
  has(name: string, value?: string): boolean {
    takes(1, arguments, "URLSearchParams.has");
    const [key, only] = [text(name), value === undefined ? undefined : text(value)];
    return this.#list.some(([n, v]) => n === key && (only === undefined || v === only));
  }
  set(name: string, value: string): void {
    takes(2, arguments, "URLSearchParams.set");
    const pair: [string, string] = [text(name), text(value)];
    this.#list = replaced(this.#list, pair);
    this.#update();
  }
  sort(): void {
    this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#update();
  }
  toString(): string {
    return this.#list.map(([name, value]) => `${form(name)}=${form(value)}`).join("&");
  }
}

export function exposeSearchParams(): void {
  iterable("URLSearchParams", URLSearchParams, pairsOf);
  expose("URLSearchParams", URLSearchParams);
}

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
    return decodeAll(fromBinary(percentDecode(toBinary(encode(plain)))));
  }
}

/** application/x-www-form-urlencoded: letters, digits and *-._ stay, a space is +. */
function form(part: string): string {
  return encodeURIComponent(part)
    .replace(/[!'()~]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase())
    .replaceAll("%20", "+");
}
