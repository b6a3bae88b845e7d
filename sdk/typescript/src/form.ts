// Blob and File (File API), FormData (XMLHttpRequest Standard, 4), and the form of their body
// (RFC 7578, and urlencoded).

import { bytesOf } from "./encoding.ts";

type Part = string | ArrayBuffer | ArrayBufferView | Blob;

// What only this runtime does: the bytes of a Blob, which must not be changed.
export let bytesOfBlob: (blob: Blob) => Uint8Array;

const typeOf = (given: unknown): string => (/^[\x20-\x7e]*$/.test(String(given)) ? String(given).toLowerCase() : "");

function join(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

// With getters: a Blob has no form in JSON, and an object without fields is refused there.
export class Blob {
  #bytes: Uint8Array;
  #type: string;

  static {
    bytesOfBlob = (blob) => blob.#bytes;
  }

  constructor(parts: Iterable<Part> = [], options: { type?: string } = {}) {
    this.#bytes = join(
      Array.from(parts, (part) => {
        if (part instanceof Blob) return part.#bytes;
        return part instanceof ArrayBuffer || ArrayBuffer.isView(part) ? bytesOf(part) : encode(String(part));
      }),
    );
    this.#type = typeOf(options.type ?? "");
  }
  get type(): string {
    return this.#type;
  }
  get [Symbol.toStringTag](): string {
    return "Blob";
  }
  get size(): number {
    return this.#bytes.length;
  }
  slice(start?: number, end?: number, type?: string): Blob {
    return new Blob([this.#bytes.subarray(start, end)], { type });
  }
  async text(): Promise<string> {
    return new TextDecoder().decode(this.#bytes);
  }
  async bytes(): Promise<Uint8Array> {
    return this.#bytes.slice();
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#bytes.slice().buffer as ArrayBuffer;
  }
  stream(): Stream {
    return new Stream(this.#bytes);
  }
}

export class File extends Blob {
  #name: string;
  #lastModified: number;

  constructor(parts: Iterable<Part>, name: string, options: { type?: string; lastModified?: number } = {}) {
    super(parts, options);
    this.#name = String(name);
    this.#lastModified = options.lastModified ?? Date.now();
  }
  get name(): string {
    return this.#name;
  }
  get lastModified(): number {
    return this.#lastModified;
  }
  get [Symbol.toStringTag](): string {
    return "File";
  }
}

/** A stream whose bytes are all there: it has one piece. */
export class Stream {
  #bytes: Uint8Array;
  #taken: boolean;
  #locked = false;
  #used: (() => void) | undefined;

  /** used is called when the bytes are taken. */
  constructor(bytes: Uint8Array, used?: () => void) {
    this.#bytes = bytes;
    this.#taken = bytes.length === 0;
    this.#used = used;
  }
  get [Symbol.toStringTag](): string {
    return "ReadableStream";
  }
  get locked(): boolean {
    return this.#locked;
  }
  /** The bytes, once. */
  take(): Uint8Array | undefined {
    this.#used?.();
    this.#used = undefined;
    if (this.#taken) return undefined;
    this.#taken = true;
    return this.#bytes;
  }
  getReader() {
    if (this.#locked) throw new TypeError("ReadableStream: it has a reader");
    this.#locked = true;
    return {
      closed: Promise.resolve(),
      read: async (): Promise<{ done: boolean; value: Uint8Array | undefined }> => {
        const value = this.take();
        return { done: value === undefined, value };
      },
      releaseLock: (): void => {
        this.#locked = false;
      },
      cancel: () => this.cancel(),
    };
  }
  async cancel(): Promise<void> {
    this.take();
  }
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const bytes = this.take();
    if (bytes) yield bytes;
  }
}

type Entry = string | File;

export class FormData {
  #list: [name: string, value: Entry][] = [];

  get [Symbol.toStringTag](): string {
    return "FormData";
  }
  append(name: string, value: string | Blob, filename?: string): void {
    this.#list.push([String(name).toWellFormed(), entry(value, filename)]);
  }
  set(name: string, value: string | Blob, filename?: string): void {
    const at = this.#list.findIndex(([n]) => n === name);
    this.delete(name);
    if (at < 0) this.append(name, value, filename);
    else this.#list.splice(at, 0, [String(name).toWellFormed(), entry(value, filename)]);
  }
  delete(name: string): void {
    this.#list = this.#list.filter(([n]) => n !== name);
  }
  get(name: string): Entry | null {
    return this.#list.find(([n]) => n === name)?.[1] ?? null;
  }
  getAll(name: string): Entry[] {
    return this.#list.filter(([n]) => n === name).map(([, value]) => value);
  }
  has(name: string): boolean {
    return this.#list.some(([n]) => n === name);
  }
  forEach(does: (value: Entry, name: string, form: FormData) => void): void {
    for (const [name, value] of this) does(value, name, this);
  }
  *entries(): IterableIterator<[string, Entry]> {
    yield* this.#list;
  }
  *keys(): IterableIterator<string> {
    for (const [name] of this.#list) yield name;
  }
  *values(): IterableIterator<Entry> {
    for (const [, value] of this.#list) yield value;
  }
  declare [Symbol.iterator]: () => IterableIterator<[string, Entry]>;
}

Object.defineProperty(FormData.prototype, Symbol.iterator, { value: FormData.prototype.entries, writable: true, configurable: true });

function entry(value: string | Blob, filename: string | undefined): Entry {
  if (!(value instanceof Blob)) return String(value).toWellFormed();
  if (value instanceof File && filename === undefined) return value;
  return new File([value], filename ?? "blob", { type: value.type });
}

const escapes: Record<string, string> = { "\r": "%0D", "\n": "%0A", '"': "%22" };
const escaped = (name: string): string => name.replace(/[\r\n"]/g, (c) => escapes[c]);

/** A form as the body of a request or a response. */
export function multipart(form: FormData): { bytes: Uint8Array; type: string } {
  const boundary = `----runner-${crypto.randomUUID()}`;
  const parts: Uint8Array[] = [];
  for (const [name, value] of form) {
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(name)}"`;
    if (typeof value === "string") {
      parts.push(encode(`${head}\r\n\r\n${value.replace(/\r\n?|\n/g, "\r\n")}\r\n`));
    } else {
      const type = value.type || "application/octet-stream";
      parts.push(encode(`${head}; filename="${escaped(value.name)}"\r\ncontent-type: ${type}\r\n\r\n`), bytesOfBlob(value), encode("\r\n"));
    }
  }
  parts.push(encode(`--${boundary}--\r\n`));
  return { bytes: join(parts), type: `multipart/form-data; boundary=${boundary}` };
}

/** Reads a body of that content type as a form. */
export function readForm(bytes: Uint8Array, type: string): FormData {
  const form = new FormData();
  const [essence] = type.split(";", 1);
  switch (essence.trim().toLowerCase()) {
    case "application/x-www-form-urlencoded":
      for (const [name, value] of new URLSearchParams(new TextDecoder().decode(bytes))) form.append(name, value);
      return form;
    case "multipart/form-data": {
      const boundary = parameter(type, "boundary");
      if (!boundary) throw new TypeError("formData: the content type multipart/form-data has no boundary");
      readParts(form, bytes, boundary);
      return form;
    }
  }
  throw new TypeError(`formData: the content type is ${essence ? JSON.stringify(essence) : "missing"}, and a form is multipart/form-data or application/x-www-form-urlencoded`);
}

/** A parameter of a header's value: name=token or name="text". */
function parameter(header: string, name: string): string | undefined {
  for (const at of header.matchAll(/;\s*([^\s;=]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))/g)) {
    if (at[1].toLowerCase() === name) return at[2] === undefined ? at[3].trim() : at[2].replace(/\\(["\\])/g, "$1");
  }
  return undefined;
}

const malformed = (): TypeError => new TypeError("formData: the body is not a form with the boundary of its content type");

function readParts(form: FormData, bytes: Uint8Array, boundary: string): void {
  const delimiter = encode(`\r\n--${boundary}`);
  // The first delimiter may be without a line before it.
  let at = starts(bytes, 0, delimiter.subarray(2)) ? delimiter.length - 2 : after(bytes, 0, delimiter);
  const decoder = new TextDecoder();
  for (;;) {
    if (bytes[at] === 0x2d && bytes[at + 1] === 0x2d) return; // the last one ends with --
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at++;
    if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) throw malformed();
    const body = after(bytes, at, encode("\r\n\r\n"));
    const next = after(bytes, body - 2, delimiter); // an empty part shares the end of its head
    const head = decoder.decode(bytes.subarray(at, body));
    const content = bytes.subarray(body, Math.max(body, next - delimiter.length));
    const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? "";
    const name = parameter(disposition, "name");
    if (name === undefined) throw malformed();
    const filename = parameter(disposition, "filename");
    if (filename === undefined) form.append(unescaped(name), decoder.decode(content));
    else form.append(unescaped(name), new File([content], unescaped(filename), { type: /^content-type:(.*)$/im.exec(head)?.[1].trim() ?? "text/plain" }));
    at = next;
  }
}

const unescaped = (name: string): string => name.replace(/%0D|%0A|%22/gi, (escape) => String.fromCharCode(parseInt(escape.slice(1), 16)));

/** Where the bytes go on behind the next occurrence of a pattern that begins with a CR. */
function after(bytes: Uint8Array, from: number, pattern: Uint8Array): number {
  for (let at = bytes.indexOf(0x0d, from); at >= 0; at = bytes.indexOf(0x0d, at + 1)) {
    if (starts(bytes, at, pattern)) return at + pattern.length;
  }
  throw malformed();
}

function starts(bytes: Uint8Array, at: number, pattern: Uint8Array): boolean {
  for (let i = 0; i < pattern.length; i++) if (bytes[at + i] !== pattern[i]) return false;
  return true;
}
