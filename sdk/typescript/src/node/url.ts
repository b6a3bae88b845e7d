// node:url: the classes of the URL Standard, and the older functions parse, format and resolve.

import { coded, needString, wrongType } from "./errors.ts";
import querystring from "./querystring.ts";

const { URL, URLSearchParams } = globalThis as any;

const slashed = new Set(["http:", "https:", "ftp:", "gopher:", "file:", "ws:", "wss:"]);

/** What url.parse returns. */
function Url(this: any): void {
  for (const name of ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"]) this[name] = null;
}

const invalid = (text: string): Error => Object.assign(coded(TypeError, "ERR_INVALID_URL", "Invalid URL"), { input: text });

/** Takes the user, the host and the port from the beginning, and returns what follows. */
function takeHost(url: any, rest: string, text: string): string {
  const end = rest.search(/[/?#]/);
  let host = end < 0 ? rest : rest.slice(0, end);
  const at = host.lastIndexOf("@");
  if (at >= 0) {
    url.auth = decodeURIComponent(host.slice(0, at));
    host = host.slice(at + 1);
  }
  const begin = at + 1;
  const strange = host.search(/[\t\n\r "%';<>\\^`{|}]/);
  if (strange >= 0) host = host.slice(0, strange);
  rest = rest.slice(begin + host.length);
  const port = /:(\d*)$/.exec(host);
  if (port) {
    if (port[1] !== "") url.port = port[1];
    host = host.slice(0, -port[0].length);
  }
  const six = /^\[.*\]$/.test(host);
  if (!six && host.includes(":")) {
    rest = `/${host.slice(host.indexOf(":"))}${rest}`;
    host = host.slice(0, host.indexOf(":"));
  }
  host = host.length > 255 ? "" : host.toLowerCase();
  if (/[^\x00-\x7f]/.test(host)) host = domain(host) || "?";
  if ((six ? /[\0\t\n\r #%/<>?@\\^|]/ : /[\0\t\n\r #%/:<>?@[\\\]^|]/).test(host)) throw invalid(text);
  url.host = host + (url.port ? `:${url.port}` : "");
  url.hostname = six ? host.slice(1, -1) : host;
  return six && rest[0] !== "/" ? `/${rest}` : rest;
}

function parse(text: any, withQuery = false, slashesDenoteHost = false): any {
  if (text instanceof (Url as any)) return text;
  needString("url", text);
  const url = new (Url as any)();
  let rest = text.trim();
  const split = /^([^?#]*)(.*)$/s.exec(rest)!;
  rest = split[1].replaceAll("\\", "/") + split[2];
  const protocol = /^[a-z0-9.+-]+:/i.exec(rest)?.[0];
  if (protocol) {
    url.protocol = protocol.toLowerCase();
    rest = rest.slice(protocol.length);
  }
  const script = url.protocol === "javascript:";
  if ((slashesDenoteHost || protocol || /^\/\/[^@/]+@[^@/]+/.test(rest)) && rest.startsWith("//") && !script) {
    rest = rest.slice(2);
    url.slashes = true;
  }
  if (url.slashes || (protocol && !script && !slashed.has(url.protocol))) {
    rest = takeHost(url, rest, text);
  }
  if (!script) rest = rest.replace(/[\t\n\r "'<>\\^`{|}]/g, (c: string) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  const hash = rest.indexOf("#");
  if (hash >= 0) {
    url.hash = rest.slice(hash);
    rest = rest.slice(0, hash);
  }
  const question = rest.indexOf("?");
  if (question >= 0) {
    url.search = rest.slice(question);
    url.query = withQuery ? querystring.parse(url.search.slice(1)) : url.search.slice(1);
    rest = rest.slice(0, question);
  } else if (withQuery) {
    url.search = null;
    url.query = querystring.parse("");
  }
  if (rest) url.pathname = rest;
  if (slashed.has(url.protocol) && url.hostname && !url.pathname) url.pathname = "/";
  if (url.pathname || url.search) url.path = (url.pathname ?? "") + (url.search ?? "");
  url.href = url.format();
  return url;
}

function format(given: any, options: { auth?: boolean; fragment?: boolean; search?: boolean; unicode?: boolean } = {}): string {
  if (typeof given === "string") given = parse(given);
  else if (typeof given !== "object" || given === null) throw wrongType("urlObject", "one of type object or string", given);
  else if (given instanceof URL) {
    const copy = new URL(given.href);
    if (options.auth === false) copy.username = copy.password = "";
    if (options.fragment === false) copy.hash = "";
    if (options.search === false) copy.search = "";
    return copy.href;
  }
  let { protocol = "", pathname = "", hash = "", search = "" } = given;
  protocol ??= "";
  pathname ??= "";
  hash ??= "";
  search ??= "";
  const auth = given.auth ? `${encodeURIComponent(given.auth).replace(/%3A/gi, ":")}@` : "";
  let host = "";
  if (given.host) host = auth + given.host;
  else if (given.hostname) host = auth + (given.hostname.includes(":") && !given.hostname.startsWith("[") ? `[${given.hostname}]` : given.hostname) + (given.port ? `:${given.port}` : "");
  if (!search && given.query && typeof given.query === "object") {
    const query = querystring.stringify(given.query);
    if (query) search = `?${query}`;
  }
  if (protocol && !protocol.endsWith(":")) protocol += ":";
  if (given.slashes || (slashed.has(protocol) && (host || protocol === "file:"))) {
    host = `//${host}`;
    if (pathname && pathname[0] !== "/") pathname = `/${pathname}`;
  }
  if (hash && hash[0] !== "#") hash = `#${hash}`;
  if (search && search[0] !== "?") search = `?${search}`;
  return protocol + host + pathname.replace(/[?#]/g, encodeURIComponent) + search.replaceAll("#", "%23") + hash;
}

/** Resolves as the URL Standard does, also a base that is relative or has only a host. */
function resolve(from: string, to: string): string {
  needString("url", from);
  needString("url", to);
  const none = "resolve://none.invalid";
  const url = new URL(to, new URL(from, none));
  if (url.protocol !== "resolve:") return url.href;
  if (!url.href.startsWith(none)) return url.href.slice("resolve:".length);
  const path = url.pathname + url.search + url.hash;
  return from[0] === "/" || to[0] === "/" ? path : path.slice(1);
}

Object.assign(Url.prototype, {
  parse(this: any, text: string, withQuery?: boolean, slashesDenoteHost?: boolean) {
    return Object.assign(this, parse(text, withQuery, slashesDenoteHost));
  },
  format(this: any) {
    return format(this);
  },
  resolve(this: any, to: string) {
    return resolve(this.href, to);
  },
  resolveObject(this: any, to: string) {
    return parse(resolve(this.href, to));
  },
});

function fileURLToPath(given: any): string {
  const url = typeof given === "string" ? new URL(given) : given;
  if (typeof url?.protocol !== "string") throw wrongType("path", "of type string or an instance of URL", given);
  if (url.protocol !== "file:") throw coded(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
  if (url.hostname !== "") throw coded(TypeError, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
  if (/%2f/i.test(url.pathname)) throw coded(TypeError, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
  return decodeURIComponent(url.pathname);
}

function pathToFileURL(path: string): any {
  needString("path", path);
  const url = new URL("file:///");
  const encoded = path.replace(/[%\\\n\r\t?#]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  url.pathname = encoded.startsWith("/") ? encoded : `/${encoded}`;
  return url;
}

const domain = (name: string): string => {
  try {
    return new URL(`http://${name}`).hostname;
  } catch {
    return "";
  }
};

export default {
  URL,
  URLSearchParams,
  Url,
  parse,
  format,
  resolve,
  resolveObject: (from: string, to: string) => parse(resolve(from, to)),
  fileURLToPath,
  pathToFileURL,
  domainToASCII: domain,
  domainToUnicode: domain,
  urlToHttpOptions(url: any) {
    const { protocol, hostname, hash, search, pathname, href, port, username, password } = url;
    const made: Record<string, unknown> = { protocol, hostname: hostname.replace(/^\[(.*)\]$/, "$1"), hash, search, pathname, path: pathname + search, href };
    if (port !== "") made.port = Number(port);
    if (username || password) made.auth = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return made;
  },
};
