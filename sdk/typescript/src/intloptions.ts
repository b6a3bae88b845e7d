// Locales and options, as all parts of Intl read them (ECMA-402, 9).

/** A part of a text, as formatToParts gives it. */
export interface Part {
  type: string;
  value: string;
}

export const textOf = (parts: Part[]): string => parts.map((part) => part.value).join("");

/** The parts of a locale that a constructor uses. */
export interface Locale {
  /** The result of resolvedOptions. */
  name: string;
  /** It has the forms of British English; otherwise those of American English. */
  british: boolean;
  /** The hour cycle of the extension "hc". */
  hourCycle?: string;
}

const tag = /^([a-z]{2,3}|[a-z]{5,8})(-[a-z]{4})?(-([a-z]{2}|\d{3}))?(-([a-z\d]{5,8}|\d[a-z\d]{3}))*((-[a-wyz\d](-[a-z\d]{2,8})+)*(-x(-[a-z\d]{1,8})+)?)$/i;

function canonical(locale: string): string {
  const match = tag.exec(locale);
  if (!match) throw new RangeError(`Incorrect locale information provided: ${locale}`);
  const extensions = match[7].toLowerCase();
  const subtags = locale.slice(0, locale.length - extensions.length).toLowerCase().split("-");
  const cased = subtags.map((subtag, i) => {
    if (i > 0 && subtag.length === 2) return subtag.toUpperCase();
    return i > 0 && /^[a-z]{4}$/.test(subtag) ? subtag[0].toUpperCase() + subtag.slice(1) : subtag;
  });
  return cased.join("-") + extensions;
}

/** The canonical forms of a list of locales, or of one. */
export function canonicalLocales(locales: unknown): string[] {
  if (locales === undefined) return [];
  if (typeof locales === "string") return [canonical(locales)];
  if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
  const all = Array.from(Object(locales) as ArrayLike<unknown>, (locale) => {
    if (typeof locale !== "string") throw new TypeError("Language ID should be a string");
    return canonical(locale);
  });
  return [...new Set(all)];
}

/** A locale without its extensions, shortened to a supported one; undefined if there is none. */
function available(locale: string): string | undefined {
  const [language] = locale.split(/-[a-z\d](?:-|$)/);
  if (/^en-(US|GB)(-|$)/.test(language)) return language.slice(0, 5);
  return /^en(-|$)/.test(language) ? "en" : undefined;
}

/** The first supported locale of a list, or else en-US, as ECMA-402 requires. */
export function localeOf(locales: unknown): Locale {
  const all = canonicalLocales(locales);
  for (const locale of all) {
    const name = available(locale);
    if (name === undefined) continue;
    const hourCycle = /-u(?:-[a-z\d]{2,8})*?-hc-(h11|h12|h23|h24)(?:-|$)/.exec(locale)?.[1];
    return { name, british: name === "en-GB", hourCycle };
  }
  return { name: "en-US", british: false };
}

export const supportedLocalesOf = (locales: unknown): string[] => canonicalLocales(locales).filter((locale) => available(locale) !== undefined);

/** Reads the options of one object. */
export class Options {
  constructor(
    private readonly of: string,
    private readonly from: any,
  ) {
    if (from === null) throw new TypeError("Cannot convert undefined or null to object");
    this.from = from === undefined ? {} : Object(from);
  }

  raw(name: string): unknown {
    return this.from[name];
  }

  /** One of these values. */
  choice<T extends string | undefined>(name: string, values: readonly string[], otherwise: T): string | T {
    const given = this.from[name];
    if (given === undefined) return otherwise;
    const value = String(given);
    if (!values.includes(value)) throw new RangeError(`Value ${value} out of range for ${this.of} options property ${name}`);
    return value;
  }

  /** A whole number of a range. */
  whole<T extends number | undefined>(name: string, least: number, most: number, otherwise: T): number | T {
    return whole(this.from[name], name, least, most, otherwise);
  }

  flag(name: string): boolean | undefined {
    const given = this.from[name];
    return given === undefined ? undefined : Boolean(given);
  }

  /** Rejects options that this Intl does not support: if they were ignored, the result would be wrong. */
  refuse(...names: string[]): void {
    for (const name of names) if (this.from[name] !== undefined) throw unsupported(this.of, `option ${name}`);
  }
}

export function whole<T extends number | undefined>(given: unknown, name: string, least: number, most: number, otherwise: T): number | T {
  if (given === undefined) return otherwise;
  const value = Number(given);
  if (!(value >= least && value <= most)) throw new RangeError(`${name} value is out of range.`);
  return Math.floor(value);
}

/** The error for a part of ECMA-402 that this Intl does not support. */
export const unsupported = (of: string, what: string): TypeError => new TypeError(`${of}: ${what} is not supported; docs/typescript/globals.md lists what is`);

/** Allows calling a class without new, as ECMA-402 requires for some classes; the class takes two arguments. */
export function callable<T extends new (...args: any[]) => object>(made: T): T {
  const both = new Proxy(made, {
    apply: (target, _this, args) => new target(...args.slice(0, 2)),
    construct: (target, args, newTarget) => Reflect.construct(target, args.slice(0, 2), newTarget),
  });
  Object.defineProperty(made.prototype, "constructor", { value: both, writable: true, configurable: true });
  return both;
}

/** Sets the display name of a class, and its list of locales. */
export function named(name: string, made: any): any {
  Object.defineProperty(made.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
  Object.defineProperty(made, "supportedLocalesOf", { value: supportedLocalesOf, writable: true, configurable: true });
  return made;
}
