// URLPattern (URL Pattern Standard, 1). This script is optional: see develop/toolchain/typescript/parts.go.

import { addressHostname, cut, encodings, type Init, type Name, names, ofHostname, ofPathname, opaquePathname, plain, ports, process } from "./patterninit.ts";
import { type Component, compile } from "./patternstring.ts";
import { expose } from "./define.ts";

const { URL } = globalThis;

type Input = string | Init;
type Components = Record<Name, Component>;

const members = ["baseURL", "hash", "hostname", "password", "pathname", "port", "protocol", "search", "username"] as const;
const usv = (text: unknown): string => `${text}`.toWellFormed();
const isObject = (value: unknown): boolean => (typeof value === "object" && value !== null) || typeof value === "function";

/** A URLPatternInput (Web IDL, 3.2.24): an object has the components. */
function input(value: any): Input {
  if (value !== undefined && value !== null && !isObject(value)) return usv(value);
  const init: Init = {};
  for (const name of members) {
    const text = value?.[name];
    if (text !== undefined) init[name] = usv(text);
  }
  return init;
}

/** Creates a URL pattern (1.4). */
function create(from: Input, baseURL: string | undefined, ignoreCase: boolean): Components {
  let init = from as Init;
  if (typeof from === "string") {
    init = cut(from);
    if (baseURL !== undefined) init.baseURL = baseURL;
    else if (init.protocol === undefined) throw new TypeError(`URLPattern: ${JSON.stringify(from)} has no protocol: add one, or a base URL as the second argument`);
  } else if (baseURL !== undefined) {
    throw new TypeError("URLPattern: with an object, the base URL must be its member baseURL, not an argument");
  }
  const all = process(init, true, {});
  for (const name of names) all[name] ??= "*";
  const patterns = all as Record<Name, string>;
  if (patterns.port !== "" && ports[patterns.protocol] === patterns.port) patterns.port = "";
  const protocol = compile(patterns.protocol, encodings.protocol, plain);
  const special = Object.keys(ports).some((scheme) => protocol.regexp.test(scheme));
  const address = /^[{\\]?\[/.test(patterns.hostname) && patterns.hostname.length > 1;
  return {
    protocol,
    username: compile(patterns.username, encodings.username, plain),
    password: compile(patterns.password, encodings.password, plain),
    hostname: compile(patterns.hostname, address ? addressHostname : encodings.hostname, ofHostname),
    port: compile(patterns.port, encodings.port, plain),
    pathname: compile(patterns.pathname, special ? encodings.pathname : opaquePathname, { ...(special ? ofPathname : plain), ignoreCase }),
    search: compile(patterns.search, encodings.search, { ...plain, ignoreCase }),
    hash: compile(patterns.hash, encodings.hash, { ...plain, ignoreCase }),
  };
}

/** The components of a URL as a match has them, or null if it is not valid. */
function valuesOf(from: Input, baseURL: string | undefined): Record<Name, string> | null {
  if (typeof from !== "string") {
    if (baseURL !== undefined) throw new TypeError("URLPattern: with an object, the base URL must be its member baseURL, not an argument");
    const empty = Object.fromEntries(names.map((name) => [name, ""]));
    try {
      return process(from, false, empty) as Record<Name, string>;
    } catch (error) {
      if (error instanceof TypeError) return null;
      throw error;
    }
  }
  const url = baseURL === undefined ? URL.parse(from) : URL.parse(from, baseURL);
  return url && {
    protocol: url.protocol.slice(0, -1), username: url.username, password: url.password, hostname: url.hostname, port: url.port,
    pathname: url.pathname, search: url.search.slice(1), hash: url.hash.slice(1),
  };
}

class URLPattern {
  #of: Components;

  constructor(...given: unknown[]) {
    const [from, second, third] = given;
    const based = given.length > 2 || (second !== undefined && second !== null && !isObject(second));
    const options = (based ? third : second) as { ignoreCase?: boolean } | null | undefined;
    if (options !== undefined && options !== null && !isObject(options)) throw new TypeError("URLPattern: the options must be an object");
    this.#of = create(input(from), based ? usv(second) : undefined, !!options?.ignoreCase);
  }
  test(from: unknown = undefined, baseURL: unknown = undefined): boolean {
    const of = this.#of;
    const values = valuesOf(input(from), baseURL === undefined ? undefined : usv(baseURL));
    return values !== null && names.every((name) => of[name].regexp.test(values[name]));
  }
  exec(from: unknown = undefined, baseURL: unknown = undefined): object | null {
    const of = this.#of;
    const inputs: Input[] = [input(from)];
    const base = baseURL === undefined ? undefined : usv(baseURL);
    const values = valuesOf(inputs[0], base);
    if (values === null) return null;
    if (base !== undefined) inputs.push(base);
    const result: Record<string, unknown> = { inputs };
    for (const name of names) {
      const found = of[name].regexp.exec(values[name]);
      if (found === null) return null;
      result[name] = { input: values[name], groups: Object.fromEntries(of[name].names.map((group, i) => [group, found[i + 1]])) };
    }
    return result;
  }
  get protocol(): string {
    return this.#of.protocol.pattern;
  }
  get username(): string {
    return this.#of.username.pattern;
  }
  get password(): string {
    return this.#of.password.pattern;
  }
  get hostname(): string {
    return this.#of.hostname.pattern;
  }
  get port(): string {
    return this.#of.port.pattern;
  }
  get pathname(): string {
    return this.#of.pathname.pattern;
  }
  get search(): string {
    return this.#of.search.pattern;
  }
  get hash(): string {
    return this.#of.hash.pattern;
  }
  get hasRegExpGroups(): boolean {
    const of = this.#of;
    return names.some((name) => of[name].custom);
  }
}

expose("URLPattern", URLPattern);
