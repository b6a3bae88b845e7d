// FormData (XMLHttpRequest Standard, 4).

import { iterable, replaced, takes, usv } from "../idl.ts";
import { Blob, File } from "./blob.ts";

type Entry = string | File;

// A private member of FormData for this folder: its entries.
export let entriesOf: (form: FormData) => [name: string, value: Entry][];

export class FormData {
  #list: [name: string, value: Entry][] = [];

  static {
    entriesOf = (form) => form.#list;
  }

  constructor(form?: undefined) {
    if (form !== undefined) throw new TypeError("FormData: the constructor takes no argument, because handlers have no HTML forms");
  }
  append(name: string, value: string | Blob, filename?: string): void {
    takes(2, arguments, "FormData.append");
    this.#list.push(entry("append", arguments));
  }
  delete(name: string): void {
    takes(1, arguments, "FormData.delete");
    const key = usv(name);
    this.#list = this.#list.filter(([n]) => n !== key);
  }
  get(name: string): Entry | null {
    takes(1, arguments, "FormData.get");
    const key = usv(name);
    return this.#list.find(([n]) => n === key)?.[1] ?? null;
  }
  getAll(name: string): Entry[] {
    takes(1, arguments, "FormData.getAll");
    const key = usv(name);
    return this.#list.filter(([n]) => n === key).map(([, value]) => value);
  }
  has(name: string): boolean {
    takes(1, arguments, "FormData.has");
    const key = usv(name);
    return this.#list.some(([n]) => n === key);
  }
  set(name: string, value: string | Blob, filename?: string): void {
    takes(2, arguments, "FormData.set");
    const pair = entry("set", arguments);
    this.#list = replaced(this.#list, pair);
  }
}

export interface FormData {
  forEach(does: (value: Entry, name: string, form: FormData) => void, self?: unknown): void;
  entries(): IterableIterator<[string, Entry]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<Entry>;
  [Symbol.iterator](): IterableIterator<[string, Entry]>;
}

iterable("FormData", FormData, (form: FormData) => entriesOf(form));

/** The entry of a name, a value and perhaps a filename, which only a Blob can have. */
function entry(method: string, given: ArrayLike<unknown>): [string, Entry] {
  const [name, value, filename] = Array.from(given);
  if (!(value instanceof Blob)) {
    if (given.length > 2) throw new TypeError(`FormData.${method}: only a Blob or a File has a filename`);
    return [usv(name), usv(value)];
  }
  if (value instanceof File && filename === undefined) return [usv(name), value];
  const { type } = value;
  const lastModified = value instanceof File ? value.lastModified : undefined;
  return [usv(name), new File([value], filename === undefined ? "blob" : usv(filename), { type, lastModified })];
}
