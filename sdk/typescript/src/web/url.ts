// URL (URL Standard, 4 and 6.1).

import { expose } from "./define.ts";
import { parseHost } from "./hostname.ts";
import { takes } from "./idl.ts";
import { encode, inFragment, inOpaque, inPath, inQuery, inSpecialQuery, inUser } from "./percent.ts";
import { attach, exposeSearchParams, refill, URLSearchParams } from "./searchparams.ts";

/** The special schemes, with their default ports. */
const ports: Record<string, string> = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };

/** A URL in its parts, which are encoded. */
class Parts {
  scheme = "";
  user = "";
  password = "";
  host: string | null = null;
  port = "";
  path = "";
  opaque = false; // the path is not made of segments
  query: string | null = null;
  fragment: string | null = null;

  get special(): boolean {
    return this.scheme in ports;
  }
  get authority(): string {
    return this.port === "" ? (this.host ?? "") : `${this.host}:${this.port}`;
  }
  /** It may have a user, a password and a port. */
  get accounts(): boolean {
    return this.host !== null && this.host !== "" && this.scheme !== "file:";
  }
  toString(): string {
    const { user, password, host, path, query, fragment } = this;
    let text = this.scheme;
    if (host !== null) {
      const secret = password === "" ? "" : `:${password}`;
      text += `//${user === "" && secret === "" ? "" : `${user}${secret}@`}${this.authority}`;
    } else if (path.startsWith("//")) {
      text += "/.";
    }
    text += path;
    if (query !== null) text += `?${query}`;
    return fragment === null ? text : `${text}#${fragment}`;
  }
}

const blank = (text: string, at: number) => text.charCodeAt(at) <= 0x20;
const withoutBreaks = (text: string) => text.toWellFormed().replace(/[\t\n\r]/g, "");
const isDrive = (segment: string) => /^[A-Za-z][:|]$/.test(segment);
const startsWithDrive = (path: string) => /^[A-Za-z][:|]([/\\]|$)/.test(path);

/** Parses a URL (URL Standard, 4.4), or gives null if it is not valid. */
function parse(input: string, base: Parts | null): Parts | null {
  let start = 0;
  let end = input.length;
  while (start < end && blank(input, start)) start++;
  while (start < end && blank(input, end - 1)) end--;
  let text = withoutBreaks(input.slice(start, end));
  const url = new Parts();
  const hash = text.indexOf("#");
  if (hash >= 0) {
    url.fragment = encode(text.slice(hash + 1), inFragment);
    text = text.slice(0, hash);
  }
  const mark = text.indexOf("?");
  const query = mark < 0 ? null : text.slice(mark + 1);
  if (mark >= 0) text = text.slice(0, mark);

  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text);
  if (scheme) {
    url.scheme = scheme[0].toLowerCase();
    text = text.slice(scheme[0].length);
    if (!absolute(url, text, base)) return null;
  } else if (base === null || (base.opaque && (text !== "" || mark >= 0 || hash < 0))) {
    return null;
  } else {
    url.scheme = base.scheme;
    if (!relative(url, text, base)) return null;
  }
  if (query !== null) {
    url.query = encode(query, url.special ? inSpecialQuery : inQuery);
  } else if (text === "" && base !== null && (!scheme || url.special) && url.scheme === base.scheme) {
    url.query = base.query;
  }
  // A space at the end would be lost when the URL is parsed again without what follows.
  if (url.opaque && (mark >= 0 || hash >= 0)) url.path = url.path.replace(/ $/, "%20");
  return url;
}

/** Takes what follows a scheme. */
function absolute(url: Parts, text: string, base: Parts | null): boolean {
  if (url.scheme === "file:") return file(url, text, base);
  if (url.special) {
    if (base?.scheme === url.scheme && !text.startsWith("//")) return relative(url, text, base);
    return authority(url, text.replace(/^[/\\]+/, ""));
  }
  if (text.startsWith("//")) return authority(url, text.slice(2));
  url.opaque = !text.startsWith("/");
  if (url.opaque) url.path = encode(text, inOpaque);
  else append(url, text.slice(1));
  return true;
}

/** Takes what is relative to a URL of the same scheme. */
function relative(url: Parts, text: string, base: Parts): boolean {
  if (url.scheme === "file:") return file(url, text, base);
  const slashes = slashesOf(url, text);
  if (slashes === 2) return authority(url, url.special ? text.replace(/^[/\\]+/, "") : text.slice(2));
  url.user = base.user;
  url.password = base.password;
  url.host = base.host;
  url.port = base.port;
  url.opaque = base.opaque;
  if (slashes === 1) {
    append(url, text.slice(1));
  } else {
    url.path = base.path;
    if (text !== "") {
      shorten(url);
      append(url, text);
    }
  }
  return true;
}

/** How many slashes text begins with, two at most. */
function slashesOf(url: Parts, text: string): number {
  const slash = (at: number) => text[at] === "/" || (text[at] === "\\" && url.special);
  return slash(0) ? (slash(1) ? 2 : 1) : 0;
}

function file(url: Parts, text: string, base: Parts | null): boolean {
  const from = base?.scheme === "file:" ? base : null;
  const slashes = slashesOf(url, text);
  if (slashes === 2) {
    const [name, path] = cut(text.slice(2), /[/\\]/);
    if (isDrive(name)) {
      url.host = "";
      append(url, name + path);
      return true;
    }
    if (!setFileHost(url, name)) return false;
    setPath(url, path);
    return true;
  }
  url.host = from?.host ?? "";
  const rest = text.slice(slashes);
  if (slashes === 1) {
    if (from && !startsWithDrive(rest)) url.path = /^\/[A-Za-z]:(?=\/|$)/.exec(from.path)?.[0] ?? "";
    append(url, rest);
  } else if (!from) {
    append(url, rest);
  } else if (rest === "") {
    url.path = from.path;
  } else {
    if (!startsWithDrive(rest)) {
      url.path = from.path;
      shorten(url);
    }
    append(url, rest);
  }
  return true;
}

function setFileHost(url: Parts, name: string): boolean {
  const host = name === "" ? "" : parseHost(name, true);
  if (host === null) return false;
  url.host = host === "localhost" ? "" : host;
  return true;
}

/** Cuts text before what the pattern finds. */
function cut(text: string, pattern: RegExp): [string, string] {
  const at = text.search(pattern);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at)];
}

/** Takes the user, the host and the port, and the path that follows. */
function authority(url: Parts, text: string): boolean {
  const [account, path] = cut(text, url.special ? /[/\\]/ : /\//);
  const at = account.lastIndexOf("@");
  if (at >= 0) {
    const colon = account.indexOf(":");
    const named = colon >= 0 && colon < at;
    url.user = encode(account.slice(0, named ? colon : at), inUser);
    if (named) url.password = encode(account.slice(colon + 1, at), inUser);
  }
  const [name, port] = splitPort(account.slice(at + 1));
  if (name === "" && (url.special || at >= 0 || port !== null)) return false;
  url.host = parseHost(name, url.special);
  if (url.host === null || /\D/.test(port ?? "") || !setPort(url, port ?? "")) return false;
  setPath(url, path);
  return true;
}

/** Splits a host from its port, which is null without a colon. */
function splitPort(text: string): [string, string | null] {
  const bracket = text.startsWith("[") ? text.indexOf("]") : 0;
  const colon = bracket < 0 ? -1 : text.indexOf(":", bracket);
  return colon < 0 ? [text, null] : [text.slice(0, colon), text.slice(colon + 1)];
}

function setPort(url: Parts, digits: string): boolean {
  const port = digits === "" ? "" : String(Number(digits));
  if (Number(port) > 65535) return false;
  url.port = port === ports[url.scheme] ? "" : port;
  return true;
}

/** Takes the path from its first slash on. */
function setPath(url: Parts, text: string): void {
  url.path = "";
  const slashes = Math.min(slashesOf(url, text), 1);
  if (url.special || text !== "") append(url, text.slice(slashes));
}

/** Removes the last segment, but not the drive of a file. */
function shorten(url: Parts): void {
  if (url.scheme === "file:" && /^\/[A-Za-z]:$/.test(url.path)) return;
  url.path = url.path.slice(0, Math.max(url.path.lastIndexOf("/"), 0));
}

/** Appends segments to the path. */
function append(url: Parts, text: string): void {
  if (url.special) text = text.replaceAll("\\", "/");
  const isFile = url.scheme === "file:";
  if (!isFile && !/(^|\/)(\.|%2e)/i.test(text)) {
    url.path += "/" + encode(text, inPath);
    return;
  }
  const segments = url.path.split("/").slice(1);
  const added = text.split("/");
  for (const [i, segment] of added.entries()) {
    const dots = /^(\.|%2e){1,2}$/i.test(segment) ? segment.replace(/%2e/gi, ".") : "";
    if (dots === "") {
      segments.push(isFile && segments.length === 0 && isDrive(segment) ? segment[0] + ":" : encode(segment, inPath));
      continue;
    }
    const kept = isFile && segments.length === 1 && /^[A-Za-z]:$/.test(segments[0]);
    if (dots === ".." && !kept) segments.pop();
    if (i === added.length - 1) segments.push("");
  }
  url.path = segments.length === 0 ? "" : "/" + segments.join("/");
}

/** Parses what new URL gets. */
function resolve(input: unknown, base: unknown): Parts | null {
  const text = `${input as string}`;
  const above = base === undefined ? null : parse(`${base as string}`, null);
  return base !== undefined && above === null ? null : parse(text, above);
}

class URL {
  #url: Parts;
  #params?: URLSearchParams;

  constructor(input: string | URL, base?: string | URL) {
    takes(1, arguments, "URL");
    const url = input instanceof Parts ? input : resolve(input, base);
    if (url === null) throw new TypeError(`URL: "${input}" is not a valid URL` + (base === undefined ? "" : ` relative to "${base}"`));
    this.#url = url;
  }

  static canParse(input: string | URL, base?: string | URL): boolean {
    takes(1, arguments, "URL.canParse");
    return resolve(input, base) !== null;
  }
  static parse(input: string | URL, base?: string | URL): URL | null {
    takes(1, arguments, "URL.parse");
    const url = resolve(input, base);
    return url && new URL(url as unknown as URL);
  }

  get href(): string {
    return this.#url.toString();
  }
  set href(text: string) {
    const url = parse(`${text}`, null);
    if (url === null) throw new TypeError(`URL: "${text}" is not a valid URL`);
    this.#url = url;
    this.#refill();
  }
  #refill(): void {
    if (this.#params) refill(this.#params, this.#url.query ?? "");
  }
  get origin(): string {
    const { scheme, path } = this.#url;
    if (scheme === "blob:") {
      const inner = parse(path, null);
      return inner && /^https?:$/.test(inner.scheme) ? new URL(inner as unknown as URL).origin : "null";
    }
    return this.#url.special && scheme !== "file:" ? `${scheme}//${this.#url.authority}` : "null";
  }
  get protocol(): string {
    return this.#url.scheme;
  }
  set protocol(text: string) {
    const url = this.#url;
    const name = /^([A-Za-z][A-Za-z0-9+.-]*)(:|$)/.exec(withoutBreaks(`${text}`));
    const scheme = name ? name[1].toLowerCase() + ":" : "";
    if (!name || scheme in ports !== url.special) return;
    if (scheme === "file:" && (url.user !== "" || url.password !== "" || url.port !== "")) return;
    if (url.scheme === "file:" && url.host === "") return;
    url.scheme = scheme;
    setPort(url, url.port);
  }
  get username(): string {
    return this.#url.user;
  }
  set username(text: string) {
    if (this.#url.accounts) this.#url.user = encode(`${text}`.toWellFormed(), inUser);
  }
  get password(): string {
    return this.#url.password;
  }
  set password(text: string) {
    if (this.#url.accounts) this.#url.password = encode(`${text}`.toWellFormed(), inUser);
  }
  get host(): string {
    return this.#url.authority;
  }
  set host(text: string) {
    this.#setHost(`${text}`, true);
  }
  get hostname(): string {
    return this.#url.host ?? "";
  }
  set hostname(text: string) {
    this.#setHost(`${text}`, false);
  }
  #setHost(text: string, withPort: boolean): void {
    const url = this.#url;
    if (url.opaque) return;
    const [given] = cut(withoutBreaks(text), url.special ? /[/\\?#]/ : /[/?#]/);
    if (url.scheme === "file:") {
      setFileHost(url, given);
      return;
    }
    const [name, port] = splitPort(given);
    if (port !== null && (name === "" || !withPort)) return;
    if (name === "" && (url.special || url.user !== "" || url.password !== "" || url.port !== "")) return;
    const host = parseHost(name, url.special);
    if (host === null) return;
    url.host = host;
    this.#setPort(port ?? "");
  }
  /** Takes the digits at the beginning, if there are some. */
  #setPort(text: string): void {
    const [digits] = /^\d*/.exec(text)!;
    if (digits !== "") setPort(this.#url, digits);
  }
  get port(): string {
    return this.#url.port;
  }
  set port(value: string) {
    const text = withoutBreaks(`${value}`);
    if (!this.#url.accounts) return;
    if (`${value}` === "") this.#url.port = "";
    else this.#setPort(text);
  }
  get pathname(): string {
    return this.#url.path;
  }
  set pathname(value: string) {
    const text = withoutBreaks(`${value}`);
    if (this.#url.opaque) return;
    setPath(this.#url, text);
    if (text === "" && this.#url.host === null) this.#url.path = "/";
  }
  get search(): string {
    return this.#url.query ? `?${this.#url.query}` : "";
  }
  set search(value: string) {
    const text = withoutBreaks(`${value}`).replace(/^\?/, "");
    this.#url.query = `${value}` === "" ? null : encode(text, this.#url.special ? inSpecialQuery : inQuery);
    this.#refill();
  }
  get searchParams(): URLSearchParams {
    if (!this.#params) {
      this.#params = new URLSearchParams();
      attach(this.#params, (query) => {
        this.#url.query = query === "" ? null : query;
      });
      this.#refill();
    }
    return this.#params;
  }
  get hash(): string {
    return this.#url.fragment ? `#${this.#url.fragment}` : "";
  }
  set hash(value: string) {
    const text = withoutBreaks(`${value}`).replace(/^#/, "");
    this.#url.fragment = `${value}` === "" ? null : encode(text, inFragment);
  }
  toString(): string {
    return this.#url.toString();
  }
  toJSON(): string {
    return this.#url.toString();
  }
}

export function installURL(): void {
  expose("URL", URL);
  exposeSearchParams();
}
