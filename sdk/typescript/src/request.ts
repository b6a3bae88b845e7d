// The request at hand. What it is made of is fetched from the host when it is
// asked for, and kept.

import { form, type UploadedForm } from "./files.ts";
import { toBase64 } from "./web/encoding.ts";
import { errno, refusal, runner } from "./host.ts";
import { badRequest } from "./response.ts";

/** A body that is not JSON; it answers 400 invalid_json. */
export class BodyError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "BodyError";
  }
}

const { host } = runner;
const malformed = SyntaxError;

// How deep a body may nest, as rows may. The shortest that nests deeper has a bracket
// at each end of each level.
const maxDepth = 64;
const shortest = 2 * (maxDepth + 1);

// JSON.stringify escapes of these only those that are not in a pair.
const escapedHalf = /\\ud[89a-f]/i;
const halves = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

type Values = Record<string, string>;

/** The error of a body that cannot be read as a whole. */
const notWhole = (n: number): Error =>
  errno(n) === "invalid" ? new TypeError("the body is read as it comes: it cannot be read as a whole, too") : refusal(n);

const text = (given: string | number): string => {
  if (typeof given === "number") throw refusal(given);
  return given;
};

// Bytes that are text where text is asked for, as Node's Buffer: a template, JSON.parse. What is made of them is a plain Uint8Array.
const textual = Object.create(Uint8Array.prototype, {
  toString: {
    value: function (this: Uint8Array, encoding = "utf8", start = 0, end = this.length) {
      const bytes = start === 0 && end === this.length ? this : this.subarray(Math.max(start, 0), Math.max(end, 0));
      switch (String(encoding).toLowerCase()) {
        case "utf8":
        case "utf-8":
          return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
        case "hex":
          return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
        case "base64":
          return toBase64(bytes);
        case "base64url":
          return toBase64(bytes).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");
        case "latin1":
        case "binary":
          return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
        case "ascii":
          return Array.from(bytes, (byte) => String.fromCharCode(byte & 0x7f)).join("");
      }
      throw new TypeError(`rawBody.toString: ${encoding} is not known: use utf8, hex, base64, base64url, latin1 or ascii`);
    },
    writable: true,
    configurable: true,
  },
});

export class RouteRequest {
  // Names are the caller's: an object without a prototype has no member but theirs.
  readonly #empty: Values[] = [0, 1, 2].map(() => Object.create(null));
  #method?: string;
  #path?: string;
  #params?: Values;
  #query?: Values;
  #rawQuery?: string;
  #queryAll?: Record<string, string[]>;
  #headers?: Values;
  #text?: string;
  #raw?: Uint8Array;
  #form?: UploadedForm;

  get method(): string {
    return (this.#method ??= text(host.request_method()));
  }
  get path(): string {
    return (this.#path ??= text(host.request_path()));
  }
  get params(): Values {
    return (this.#params ??= collect(0, this.#empty[0]));
  }
  get query(): Values {
    return (this.#query ??= collect(1, this.#empty[1]));
  }
  get queryAll(): Record<string, string[]> {
    if (this.#queryAll === undefined) {
      const all: Record<string, string[]> = Object.create(null);
      const pairs = host.request_pairs(1);
      if (typeof pairs === "number") throw refusal(pairs);
      for (let i = 0; i < pairs.length; i += 2) (all[pairs[i]] ??= []).push(pairs[i + 1]);
      this.#queryAll = all;
    }
    return this.#queryAll;
  }
  /** The query as it was sent, without its "?". */
  get rawQuery(): string {
    return (this.#rawQuery ??= rawQuery() ?? "");
  }
  get headers(): Values {
    return (this.#headers ??= collect(2, this.#empty[2]));
  }
  get rawBody(): Uint8Array {
    if (this.#raw === undefined) {
      const bytes = host.request_body_bytes(0);
      if (typeof bytes === "number") throw notWhole(bytes);
      this.#raw = Object.setPrototypeOf(bytes, textual) as Uint8Array;
    }
    return this.#raw;
  }
  text(): string {
    if (this.#text === undefined) {
      const read = host.request_body(0);
      if (typeof read === "number") throw notWhole(read);
      // The engine puts U+FFFD in place of bytes that are not UTF-8, and reads surrogates.
      if ((read.includes("\ufffd") || !read.isWellFormed()) && !isUTF8(this.rawBody)) throw new BodyError("read the body as text: it must be valid UTF-8");
      this.#text = read;
    }
    return this.#text;
  }
  /** The body as it comes. */
  stream(): ReadableStream<Uint8Array> {
    return runner.incoming();
  }
  /** What the client has uploaded, on a route with upload. */
  form(): UploadedForm {
    return (this.#form ??= form());
  }
  /** The first file of a field; without a name, the body that is one file. */
  file(name?: string) {
    return this.form().file(name);
  }
  /** The body as a form (multipart or urlencoded); one that is not answers 400. */
  async formData(): Promise<FormData> {
    let form: FormData;
    try {
      const body = new Response(this.rawBody, { headers: { "content-type": this.headers["content-type"] ?? "" } });
      form = await body.formData();
    } catch (error) {
      throw badRequest((error as Error).message.replace("formData: ", ""));
    }
    // FormData has U+FFFD in place of what is not UTF-8: there is more of it than was sent.
    let texts = "";
    for (const [name, value] of form) texts += typeof value === "string" ? name + value : name + value.name;
    const found = texts.split("\ufffd").length - 1;
    if (found === 0) return form;
    let sent = replacements(this.rawBody, /^multipart/i.test(this.headers["content-type"] ?? "") ? /\xef\xbf\xbd/ : /\xef\xbf\xbd|%ef%bf%bd/i);
    for (const [, value] of form) if (typeof value !== "string") sent -= replacements(await value.bytes(), /\xef\xbf\xbd/);
    if (found > sent) throw badRequest("the form has text that is not UTF-8");
    return form;
  }
  body(): any {
    if (this.#text === undefined) {
      const value = host.request_body_value(0);
      // A number below 0 may be an errno, which the text then is, too.
      if (value !== undefined && !(typeof value === "number" && value < 0)) return value ?? {};
    }
    const text = this.text();
    if (text.length >= shortest && host.nesting(text) > maxDepth) {
      throw new BodyError(`read the JSON body: it must not be nested more than ${maxDepth} levels deep`);
    }
    try {
      const value = JSON.parse(text);
      if (escapedHalf.test(text) && halves.test(JSON.stringify(value))) throw new BodyError("read the JSON body: it must not have half of a surrogate pair");
      return value ?? {};
    } catch (error) {
      if (!(error instanceof malformed)) throw error; // without memory, its message cannot be read
      if (/^[ \t\r\n]*$/.test(text)) return {};
      throw new BodyError(`read the JSON body: ${(error as Error).message}`);
    }
  }
}

/** The query as it was sent; undefined of a target without "?". */
export function rawQuery(): string | undefined {
  const pairs = host.request_pairs(3);
  if (typeof pairs === "number") throw refusal(pairs);
  return pairs[1];
}

/** How often U+FFFD is there. */
const replacements = (bytes: Uint8Array, form: RegExp) => new TextDecoder("windows-1252").decode(bytes).split(form).length - 1;

function isUTF8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Of a name that comes again, the first value counts, and of a header all. */
function collect(kind: number, values: Values): Values {
  // With var, as each use of let and const is checked.
  var pairs = host.request_pairs(kind) as string[];
  if (pairs.length === undefined) throw refusal(pairs as unknown as number);
  for (var i = 0; i < pairs.length; i += 2) {
    var name = pairs[i];
    if (values[name] === undefined) values[name] = pairs[i + 1];
    else if (kind === 2) values[name] += (name === "cookie" ? "; " : ", ") + pairs[i + 1];
  }
  return values;
}
