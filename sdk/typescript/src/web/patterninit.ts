// The components of a URL as patterns and as values (URL Pattern Standard, 3), and how a pattern of a whole URL is cut
// into them (1.7).

import { encode, inOpaque } from "./percent.ts";
import { bad, compile, type Encode, escapePattern, type Options, type Token, tokenize } from "./patternstring.ts";

export const names = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"] as const;
export type Name = (typeof names)[number];
export type Init = Partial<Record<Name | "baseURL", string>>;

const { URL } = globalThis;

/** The special schemes, with their default ports. */
export const ports: Record<string, string> = { __proto__: null as never, http: "80", https: "443", ws: "80", wss: "443", ftp: "21", file: "" };

export const plain: Options = { delimiter: "", prefix: "" };
export const ofHostname: Options = { delimiter: ".", prefix: "" };
export const ofPathname: Options = { delimiter: "/", prefix: "/" };

/** An encoding whose empty text stays empty. */
const callback = (change: (text: string, dummy: URL) => string): Encode => (text) => (text === "" ? "" : change(text, new URL("https://dummy.invalid/")));

const withoutBreaks = (text: string): string => text.replace(/[\t\n\r]/g, "");

export const encodings: Record<Name, Encode> = {
  protocol: callback((text) => new URL(`${text}://dummy.invalid/`).protocol.slice(0, -1)),
  username: callback((text, dummy) => ((dummy.username = text), dummy.username)),
  password: callback((text, dummy) => ((dummy.password = text), dummy.password)),
  hostname: callback((text, dummy) => {
    const { hostname } = dummy;
    dummy.hostname = text;
    if (dummy.hostname === hostname && text !== hostname) throw bad(text, "it is not a host");
    return dummy.hostname;
  }),
  port: (text) => encodePort(text, ""),
  pathname: callback((text, dummy) => {
    // What does not begin with a slash is a piece of a path: neither a slash nor its dots may be changed.
    const whole = text.startsWith("/");
    dummy.pathname = whole ? text : "/-" + text;
    return dummy.pathname.slice(whole ? 0 : 2);
  }),
  search: callback((text, dummy) => ((dummy.search = "?" + text), dummy.search.slice(1))),
  hash: callback((text, dummy) => ((dummy.hash = "#" + text), dummy.hash.slice(1))),
};

export const opaquePathname: Encode = callback((text) => {
  const [path] = withoutBreaks(text).split(/[?#]/, 1);
  return encode(path.length < text.length ? path.replace(/ $/, "%20") : path, inOpaque);
});

export const addressHostname: Encode = (text) => {
  if (/[^\da-f[\]:]/i.test(text)) throw bad(text, "it is not an IPv6 address");
  return text.toLowerCase();
};

function encodePort(text: string, scheme: string): string {
  if (text === "") return "";
  const digits = /^\d+/.exec(withoutBreaks(text))?.[0];
  if (digits === undefined || Number(digits) > 65535) throw bad(text, "a port is a number up to 65535");
  const port = String(Number(digits));
  return port === ports[scheme] ? "" : port;
}

/** Completes and canonicalizes the components that a pattern or a match is given (3.2). */
export function process(init: Init, isPattern: boolean, result: Init): Init {
  const given = (...names: (keyof Init)[]): boolean => names.some((name) => init[name] !== undefined);
  const inherited: Encode = (text) => (isPattern ? escapePattern(text) : text);
  let base: URL | null = null;
  if (init.baseURL !== undefined) {
    base = new URL(init.baseURL);
    if (!given("protocol")) result.protocol = inherited(base.protocol.slice(0, -1));
    if (!isPattern && !given("protocol", "hostname", "port", "username")) {
      result.username = base.username;
      if (!given("password")) result.password = base.password;
    }
    if (!given("protocol", "hostname")) result.hostname = inherited(base.hostname);
    if (!given("protocol", "hostname", "port")) {
      result.port = base.port;
      if (!given("pathname")) {
        result.pathname = inherited(base.pathname);
        if (!given("search")) {
          result.search = inherited(base.search.slice(1));
          if (!given("hash")) result.hash = inherited(base.hash.slice(1));
        }
      }
    }
  }
  const take = (name: Name, encode: Encode, strip = /$^/): void => {
    const text = init[name]?.replace(strip, "");
    if (text !== undefined) result[name] = isPattern ? text : encode(text);
  };
  take("protocol", encodings.protocol, /:$/);
  take("username", encodings.username);
  take("password", encodings.password);
  take("hostname", encodings.hostname);
  const scheme = result.protocol ?? "";
  take("port", (text) => encodePort(text, scheme));
  if (init.pathname !== undefined) {
    let path = init.pathname;
    if (base && !isOpaque(base) && !isAbsolute(path, isPattern)) {
      const above = inherited(base.pathname);
      path = above.slice(0, above.lastIndexOf("/") + 1) + path;
    }
    result.pathname = isPattern ? path : (scheme === "" || scheme in ports ? encodings.pathname : opaquePathname)(path);
  }
  take("search", encodings.search, /^\?/);
  take("hash", encodings.hash, /^#/);
  return result;
}

const isOpaque = (url: URL): boolean => !url.pathname.startsWith("/") && url.pathname !== "";
const isAbsolute = (path: string, isPattern: boolean): boolean => (isPattern ? /^[\\{]?\// : /^\//).test(path);

type State = Name | "init" | "authority" | "done";

/** Cuts the pattern of a URL into those of its components (1.7). */
export function cut(input: string): Init {
  const points = [...input];
  const tokens = tokenize(input, true);
  const result: Init = {};
  let state: State = "init";
  let start = 0; // where the component begins
  let at = 0;
  let special = false;
  let depth = 0; // how many groups are open
  let brackets = 0;

  const token = (index: number): Token => tokens[Math.min(index, tokens.length - 1)];
  const is = (value: string, index = at): boolean => {
    const { type, value: found } = token(index);
    return found === value && (type === "char" || type === "escaped" || type === "invalid");
  };
  const isSearch = (): boolean => is("?") || (tokens[at].value === "?" && (at === 0 || !["name", "regexp", "close", "asterisk"].includes(token(at - 1).type)));
  const component = (): string => points.slice(token(start).index, tokens[at].index).join("");
  /** Ends the component. Those between it and the next one are empty, if they were not given. */
  const change = (to: State, skip: number): void => {
    if (state !== "init" && state !== "authority" && state !== "done") result[state] = component();
    if (state !== "init" && to !== "done") {
      const order: State[] = ["protocol", "authority", "username", "password", "hostname", "port", "pathname", "search", "hash"];
      const between = (name: State): boolean => order.indexOf(state) < order.indexOf(name) && order.indexOf(name) < order.indexOf(to);
      if (between("hostname")) result.hostname ??= "";
      if (between("pathname")) result.pathname ??= special ? "/" : "";
      if (between("search")) result.search ??= "";
    }
    state = to;
    start = at += skip;
  };
  const rewind = (to: State): void => {
    at = start;
    state = to;
  };
  /** If a component that may follow begins here, changes the state and returns true. */
  const follows = (...names: ("pathname" | "search" | "hash")[]): boolean => {
    for (const name of names) {
      if (name === "pathname" ? !is("/") : name === "search" ? !isSearch() : !is("#")) continue;
      change(name, name === "pathname" ? 0 : 1);
      return true;
    }
    return false;
  };
  /** Takes a token. Returns false if the state has changed instead. */
  const step = (): boolean => {
    switch (state) {
      case "init":
        if (!is(":")) return true;
        rewind("protocol");
        return false;
      case "protocol": {
        if (!is(":")) return true;
        const { regexp } = compile(component(), encodings.protocol, plain);
        special = Object.keys(ports).some((scheme) => regexp.test(scheme));
        const slashes = is("/", at + 1) && is("/", at + 2);
        change(slashes || special ? "authority" : "pathname", slashes ? 3 : 1);
        return false;
      }
      case "authority":
        if (is("@")) rewind("username");
        else if (is("/") || isSearch() || is("#")) rewind("hostname");
        else return true;
        return false;
      case "username":
        if (is(":")) change("password", 1);
        else if (is("@")) change("hostname", 1);
        else return true;
        return false;
      case "password":
        if (!is("@")) return true;
        change("hostname", 1);
        return false;
      case "hostname":
        if (is("[")) brackets++;
        else if (is("]")) brackets--;
        else if (is(":") && brackets === 0) return change("port", 1), false;
        else return !follows("pathname", "search", "hash");
        return true;
      case "port":
        return !follows("pathname", "search", "hash");
      case "pathname":
        return !follows("search", "hash");
      case "search":
        return !follows("hash");
    }
    return true;
  };
  while (at < tokens.length) {
    const { type } = tokens[at];
    if (type === "end") {
      if (state === "init") {
        at = start;
        if (is("#")) change("hash", 1);
        else if (isSearch()) change("search", 1);
        else change("pathname", 0);
      } else if (state === "authority") {
        rewind("hostname");
      } else {
        change("done", 0);
        break;
      }
    } else if (type === "open") {
      depth++;
      at++;
    } else if (depth > 0) {
      if (type === "close") depth--;
      // After the end of a group the state has nothing to do with its token.
      at++;
    } else if (step()) {
      at++;
    }
  }
  if (result.hostname !== undefined) result.port ??= "";
  return result;
}
