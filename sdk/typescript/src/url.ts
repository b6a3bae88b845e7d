// URL and URLSearchParams (URL Standard), for what handlers meet: http, https and
// other hierarchical URLs.

import { define } from "./console.ts";

const ports: Record<string, string> = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21" };

/** Percent-encodes what is not ASCII and what the pattern finds. */
function encode(text: string, unsafe: RegExp): string {
  return text.toWellFormed().replace(unsafe, (c) => (c === "'" ? "%27" : encodeURIComponent(c)));
}

const unsafeInPath = /[\u0000- "#<>?^`{}\u007f-\u{10ffff}]/gu;
const unsafeInQuery = /[\u0000- "#<>'\u007f-\u{10ffff}]/gu;
const unsafeInFragment = /[\u0000- "<>`\u007f-\u{10ffff}]/gu;
const unsafeInUser = /[\u0000- "#<>?^`{}/:;=@[\\\]|\u007f-\u{10ffff}]/gu;

class URL {
  #scheme = "";
  #user = "";
  #password = "";
  #host = "";
  #port = "";
  #path = "";
  #query = "";
  #fragment = "";
  #hierarchical = true;
  readonly searchParams: URLSearchParams;

  constructor(input: string | URL, base?: string | URL) {
    const text = String(input).replace(/^[\u0000- ]+|[\u0000- ]+$|[\t\n\r]/g, "");
    const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text);
    if (scheme) {
      this.#absolute(scheme[1].toLowerCase() + ":", text.slice(scheme[0].length));
    } else if (base !== undefined) {
      this.#relative(text, base instanceof URL ? base : new URL(base));
    } else {
      throw new TypeError(`URL: "${text}" is not absolute, and no base is given`);
    }
    this.searchParams = new URLSearchParams(this.#query);
    attach(this.searchParams, (query) => {
      this.#query = query;
    });
  }

  static canParse(input: string | URL, base?: string | URL): boolean {
    return URL.parse(input, base) !== null;
  }

  static parse(input: string | URL, base?: string | URL): URL | null {
    try {
      return new URL(input, base);
    } catch {
      return null;
    }
  }

  #absolute(scheme: string, rest: string): void {
    this.#scheme = scheme;
    const special = scheme in ports;
    if (special) rest = "//" + rest.replace(/^[/\\]*/, "");
    if (!rest.startsWith("//")) {
      this.#hierarchical = rest.startsWith("/");
      this.#rest(rest);
      return;
    }
    const end = rest.slice(2).search(special ? /[/\\?#]/ : /[/?#]/);
    const authority = end < 0 ? rest.slice(2) : rest.slice(2, 2 + end);
    this.#authority(authority, special);
    this.#rest(end < 0 ? "" : rest.slice(2 + end));
  }

  #authority(text: string, special: boolean): void {
    const at = text.lastIndexOf("@");
    if (at >= 0) {
      const colon = text.slice(0, at).indexOf(":");
      this.#user = encode(text.slice(0, colon < 0 ? at : colon), unsafeInUser);
      this.#password = colon < 0 ? "" : encode(text.slice(colon + 1, at), unsafeInUser);
    }
    const host = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]]*)(?::(\d*))?$/.exec(text.slice(at + 1));
    if (!host || (special && host[1] === "")) throw new TypeError(`URL: "${text}" names no host`);
    let name = host[1];
    if (special) {
      try {
        name = ascii(decodeURIComponent(name));
      } catch {
        throw new TypeError(`URL: "${text}" names no host`);
      }
    }
    if (/[^\u0021-\u007e]|[ #%/:<>?@[\\\]^|]/.test(name.replace(/^\[.*\]$/, ""))) {
      throw new TypeError(`URL: "${name}" is not a valid host`);
    }
    this.#host = name;
    this.#setPort(host[2] ?? "");
  }

  #setPort(port: string): void {
    if (port !== "" && Number(port) > 65535) throw new TypeError(`URL: ${port} is not a valid port`);
    this.#port = port === "" || String(Number(port)) === ports[this.#scheme] ? "" : String(Number(port));
  }

  /** Takes path, query and fragment. */
  #rest(text: string): void {
    const parts = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(text)!;
    this.pathname = parts[1];
    this.search = parts[2] ?? "";
    this.hash = parts[3] ?? "";
  }

  #relative(text: string, base: URL): void {
    if (!base.#hierarchical) throw new TypeError(`URL: "${text}" cannot be taken relative to "${base.href}"`);
    this.#scheme = base.#scheme;
    const special = this.#scheme in ports;
    if (special) text = text.replace(/^[^?#]*/, (path) => path.replaceAll("\\", "/"));
    if (text.startsWith("//")) {
      this.#absolute(base.#scheme, text);
      return;
    }
    this.#user = base.#user;
    this.#password = base.#password;
    this.#host = base.#host;
    this.#port = base.#port;
    if (text === "" || text.startsWith("#")) {
      this.#path = base.#path;
      this.#query = base.#query;
      this.hash = text;
    } else if (text.startsWith("?")) {
      this.#path = base.#path;
      const [query] = text.split("#", 1);
      this.search = query;
      this.hash = text.slice(query.length);
    } else {
      this.#rest(text.startsWith("/") ? text : base.#path.replace(/[^/]*$/, "") + text);
    }
  }

  get href(): string {
    return `${this.#scheme}${this.#slashes()}${this.#credentials()}${this.host}${this.#path}${this.search}${this.hash}`;
  }
  set href(text: string) {
    const other = new URL(text);
    this.#user = this.#password = "";
    this.#hierarchical = true;
    this.#absolute(other.#scheme, other.href.slice(other.#scheme.length));
  }
  #slashes(): string {
    return this.#host !== "" || this.#scheme in ports || this.#scheme === "file:" ? "//" : "";
  }
  #credentials(): string {
    if (this.#user === "" && this.#password === "") return "";
    return `${this.#user}${this.#password === "" ? "" : ":" + this.#password}@`;
  }
  get origin(): string {
    return this.#scheme in ports ? `${this.#scheme}//${this.host}` : "null";
  }
  get protocol(): string {
    return this.#scheme;
  }
  set protocol(text: string) {
    const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):?/.exec(text);
    const name = scheme ? scheme[1].toLowerCase() + ":" : "";
    if (name === "" || name in ports !== this.#scheme in ports) return;
    this.#scheme = name;
    this.#setPort(this.#port);
  }
  get username(): string {
    return this.#user;
  }
  set username(text: string) {
    this.#user = encode(text, unsafeInUser);
  }
  get password(): string {
    return this.#password;
  }
  set password(text: string) {
    this.#password = encode(text, unsafeInUser);
  }
  get host(): string {
    return this.#port === "" ? this.#host : `${this.#host}:${this.#port}`;
  }
  set host(text: string) {
    this.#authority(text, this.#scheme in ports);
  }
  get hostname(): string {
    return this.#host;
  }
  set hostname(text: string) {
    const port = this.#port;
    this.#authority(text, this.#scheme in ports);
    this.#port = port;
  }
  get port(): string {
    return this.#port;
  }
  set port(text: string) {
    if (/^\d*$/.test(String(text))) this.#setPort(String(text));
  }
  get pathname(): string {
    return this.#path;
  }
  set pathname(text: string) {
    if (!this.#hierarchical) {
      this.#path = encode(text, /[\u0000-\u001f\u007f-\u{10ffff}]/gu);
      return;
    }
    if (this.#scheme in ports) text = text.replaceAll("\\", "/");
    const segments: string[] = [];
    const all = text.replace(/^\//, "").split("/");
    all.forEach((segment, i) => {
      const dots = segment.replace(/%2e/gi, ".");
      const last = i === all.length - 1;
      if (dots === "..") segments.pop();
      else if (dots !== ".") segments.push(encode(segment, unsafeInPath));
      if (last && (dots === ".." || dots === ".")) segments.push("");
    });
    const path = "/" + segments.join("/");
    this.#path = path === "/" && text === "" && !(this.#scheme in ports) ? "" : path;
  }
  get search(): string {
    return this.#query === "" ? "" : `?${this.#query}`;
  }
  set search(text: string) {
    this.#query = encode(text.replace(/^\?/, ""), unsafeInQuery);
    if (this.searchParams) refill(this.searchParams, this.#query);
  }
  get hash(): string {
    return this.#fragment === "" ? "" : `#${this.#fragment}`;
  }
  set hash(text: string) {
    this.#fragment = encode(text.replace(/^#/, ""), unsafeInFragment);
  }
  toString(): string {
    return this.href;
  }
  toJSON(): string {
    return this.href;
  }
}

/** A host's name in ASCII (RFC 5891), with no more of its mappings than case and Unicode's composition. */
function ascii(name: string): string {
  const labels = name.normalize("NFKC").toLowerCase().normalize("NFC").split(/[.\u3002]/);
  return labels.map((label) => (/[^\0-\x7f]/.test(label) ? "xn--" + punycode(label) : label)).join(".");
}

/** Punycode (RFC 3492, 6.3). */
function punycode(label: string): string {
  const points = Array.from(label, (c) => c.codePointAt(0)!);
  const basic = points.filter((c) => c < 128);
  let out = String.fromCharCode(...basic) + (basic.length > 0 ? "-" : "");
  let least = 128;
  let delta = 0;
  let bias = 72;
  for (let handled = basic.length; handled < points.length; delta++, least++) {
    const next = Math.min(...points.filter((c) => c >= least));
    delta += (next - least) * (handled + 1);
    least = next;
    for (const point of points) {
      if (point < least) delta++;
      if (point !== least) continue;
      let q = delta;
      for (let k = 36; ; k += 36) {
        const t = Math.min(Math.max(k - bias, 1), 26);
        if (q < t) break;
        out += digit(t + ((q - t) % (36 - t)));
        q = Math.floor((q - t) / (36 - t));
      }
      out += digit(q);
      delta = Math.floor(delta / (handled === basic.length ? 700 : 2));
      delta += Math.floor(delta / ++handled);
      let k = 0;
      for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
      bias = k + Math.floor((36 * delta) / (delta + 38));
      delta = 0;
    }
  }
  return out;
}

const digit = (n: number) => "abcdefghijklmnopqrstuvwxyz0123456789"[n];

/** What only a URL does with its parameters. */
let attach: (params: URLSearchParams, changed: (query: string) => void) => void;
let refill: (params: URLSearchParams, query: string) => void;

type Init = string | URLSearchParams | Iterable<[string, string]> | Record<string, string>;

class URLSearchParams {
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
    if (typeof init === "string") {
      this.#list = parse(init.replace(/^\?/, ""));
    } else if (Symbol.iterator in init) {
      for (const pair of init as Iterable<[string, string]>) {
        const [name, value, ...more] = pair;
        if (value === undefined || more.length > 0) throw new TypeError("URLSearchParams: a pair is a name and a value");
        this.#list.push([String(name), String(value)]);
      }
    } else {
      for (const [name, value] of Object.entries(init)) this.#list.push([name, String(value)]);
    }
  }

  #update(): void {
    this.#changed?.(this.toString());
  }

  get size(): number {
    return this.#list.length;
  }
  append(name: string, value: string): void {
    this.#list.push([String(name), String(value)]);
    this.#update();
  }
  delete(name: string, value?: string): void {
    this.#list = this.#list.filter(([n, v]) => n !== String(name) || (value !== undefined && v !== String(value)));
    this.#update();
  }
  get(name: string): string | null {
    return this.#list.find(([n]) => n === String(name))?.[1] ?? null;
  }
  getAll(name: string): string[] {
    return this.#list.filter(([n]) => n === String(name)).map(([, v]) => v);
  }
  has(name: string, value?: string): boolean {
    return this.#list.some(([n, v]) => n === String(name) && (value === undefined || v === String(value)));
  }
  set(name: string, value: string): void {
    const at = this.#list.findIndex(([n]) => n === String(name));
    if (at < 0) {
      this.#list.push([String(name), String(value)]);
    } else {
      this.#list = this.#list.filter(([n], i) => n !== String(name) || i === at);
      this.#list[at] = [String(name), String(value)];
    }
    this.#update();
  }
  sort(): void {
    this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#update();
  }
  forEach(does: (value: string, name: string, params: URLSearchParams) => void): void {
    for (const [name, value] of this.#list) does(value, name, this);
  }
  *entries(): IterableIterator<[string, string]> {
    for (const [name, value] of this.#list) yield [name, value];
  }
  *keys(): IterableIterator<string> {
    for (const [name] of this.#list) yield name;
  }
  *values(): IterableIterator<string> {
    for (const [, value] of this.#list) yield value;
  }
  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.entries();
  }
  toString(): string {
    return this.#list.map(([name, value]) => `${form(name)}=${form(value)}`).join("&");
  }
}

function parse(query: string): [string, string][] {
  const read = (text: string) => {
    const plain = text.replaceAll("+", " ");
    if (!plain.includes("%")) return plain;
    const bytes: number[] = [];
    const encoded = new TextEncoder().encode(plain);
    for (let i = 0; i < encoded.length; i++) {
      const code = encoded[i] === 0x25 ? /^[0-9A-Fa-f]{2}$/.exec(String.fromCharCode(encoded[i + 1], encoded[i + 2])) : null;
      bytes.push(code ? parseInt(code[0], 16) : encoded[i]);
      if (code) i += 2;
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  };
  return query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const at = pair.indexOf("=");
      return at < 0 ? [read(pair), ""] : [read(pair.slice(0, at)), read(pair.slice(at + 1))];
    });
}

/** application/x-www-form-urlencoded: letters, digits and *-._ stay, a blank is +. */
function form(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replace(/[!'()~]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase())
    .replaceAll("%20", "+");
}

export function installURL(): void {
  define("URL", URL);
  define("URLSearchParams", URLSearchParams);
}
