// Forms as bodies: multipart/form-data (RFC 7578, and Fetch Standard, 5.4) and urlencoded.

import { bytesOfBlob, File } from "./blob.ts";
import { entriesOf, FormData } from "./formdata.ts";
import { contentType, writeMIME } from "./mime.ts";
import { decodeAll, encode } from "./text.ts";
import { join } from "../streams/body.ts";

const escapes: Record<string, string> = { "\r": "%0D", "\n": "%0A", '"': "%22" };
/** Text whose lines end with CR LF. */
const lines = (text: string): string => text.replace(/\r\n?|\n/g, "\r\n");
const escaped = (name: string): string => name.replace(/[\r\n"]/g, (c) => escapes[c]);

/** A form as the body of a request or a response. */
export function multipart(form: FormData): { bytes: Uint8Array; type: string } {
  const boundary = `----runner-${crypto.randomUUID()}`;
  const parts: Uint8Array[] = [];
  for (const [given, value] of entriesOf(form)) {
    const name = lines(given);
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"`;
    if (typeof value === "string") {
      parts.push(encode(`${head}\r\n\r\n${lines(value)}\r\n`));
    } else {
      const type = value.type || "application/octet-stream";
      parts.push(encode(`${head}; filename="${escaped(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`), bytesOfBlob(value), encode("\r\n"));
    }
  }
  parts.push(encode(`--${boundary}--\r\n`));
  return { bytes: join(parts), type: `multipart/form-data; boundary=${boundary}` };
}

/** Reads a body of that content type as a form. */
export function readForm(bytes: Uint8Array, header: string | null): FormData {
  const form = new FormData();
  const type = contentType(header);
  switch (type?.essence) {
    case "application/x-www-form-urlencoded":
      for (const [name, value] of new URLSearchParams(`&${decodeAll(bytes)}`)) form.append(name, value); // "?" at the beginning stays
      return form;
    case "multipart/form-data": {
      const boundary = type.parameters.get("boundary");
      if (!boundary) throw new TypeError("formData: the content type multipart/form-data has no boundary");
      readParts(form, bytes, boundary);
      return form;
    }
  }
  throw new TypeError(`formData: the content type is ${header ? JSON.stringify(header.split(";", 1)[0]) : "missing"}, and a form is multipart/form-data or application/x-www-form-urlencoded`);
}

/**
 * A parameter of a Content-Disposition: name=token or name="text". In a text, a backslash is one: only where the text
 * would end within the parameter, the backslash before a quote belongs to it.
 */
function parameter(header: string, name: string): string | undefined {
  for (const [, key, text, quoted, plain] of header.matchAll(/;\s*([^\s;=]+)\s*=\s*(?:"([^"]*)"(?=\s*(?:;|$))|"((?:[^"\\]|\\.)*)"|([^;]*))/g)) {
    if (key.toLowerCase() === name) return unescaped(text ?? quoted?.replace(/\\(["\\])/g, "$1") ?? plain.trim());
  }
  return undefined;
}

const malformed = (): TypeError => new TypeError("formData: the body is not a form with the boundary of its content type");

function readParts(form: FormData, bytes: Uint8Array, boundary: string): void {
  const delimiter = encode(`\r\n--${boundary}`);
  const blankLine = encode("\r\n\r\n");
  // The first delimiter may be without a line before it.
  let at = starts(bytes, 0, delimiter.subarray(2)) ? delimiter.length - 2 : after(bytes, 0, delimiter);
  for (;;) {
    if (bytes[at] === 0x2d && bytes[at + 1] === 0x2d) return; // the last one ends with --
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at++;
    if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) throw malformed();
    const body = after(bytes, at, blankLine);
    const next = after(bytes, body - 2, delimiter); // an empty part shares the end of its head
    const head = fields(decodeAll(bytes.subarray(at + 2, body - 4)));
    const content = bytes.subarray(body, Math.max(body, next - delimiter.length));
    const disposition = head.get("content-disposition") ?? "";
    const name = parameter(disposition, "name");
    if (name === undefined) throw malformed();
    const filename = parameter(disposition, "filename");
    if (filename === undefined) form.append(name, decodeAll(content));
    else form.append(name, new File([content], filename, { type: typeOf(head.get("content-type")) }));
    at = next;
  }
}

/** The header of a part, by names in lower case. */
function fields(head: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of head.split("\r\n")) {
    const [, name, value] = /^[\t ]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[\t ]*:([^\0\r\n]*)$/.exec(line) ?? [];
    if (name === undefined) throw malformed();
    found.set(name.toLowerCase(), value.trim());
  }
  return found;
}

function typeOf(header: string | undefined): string {
  if (header === undefined) return "text/plain";
  const type = contentType(header);
  return type ? writeMIME(type) : "";
}

const unescaped = (name: string): string => name.replace(/%0D|%0A|%22/gi, (escape) => String.fromCharCode(parseInt(escape.slice(1), 16)));

/** Where the bytes go on behind the next occurrence of a pattern that begins with a CR. A client may send nothing but these. */
function after(bytes: Uint8Array, from: number, pattern: Uint8Array): number {
  // With var, as each use of let and const is checked.
  for (var at = bytes.indexOf(0x0d, from), n = pattern.length; at >= 0; at = bytes.indexOf(0x0d, at + 1)) {
    while (bytes[at + 1] === 0x0d) at++;
    for (var i = 1; i < n && bytes[at + i] === pattern[i]; ) i++;
    if (i === n) return at + n;
  }
  throw malformed();
}

function starts(bytes: Uint8Array, at: number, pattern: Uint8Array): boolean {
  for (let i = 0; i < pattern.length; i++) if (bytes[at + i] !== pattern[i]) return false;
  return true;
}
