// Intl.PluralRules, ListFormat and RelativeTimeFormat for English (ECMA-402, 13, 16 and 17).

import { decimalOf, type Digits, NumberFormat, readDigits, shown } from "./intlnumber.ts";
import { type Locale, localeOf, named, Options, type Part, textOf, unsupported } from "./intloptions.ts";

class PluralRules {
  readonly #locale: Locale;
  readonly #type: string;
  readonly #digits: Digits;

  constructor(locales?: unknown, given?: unknown) {
    this.#locale = localeOf(locales);
    const options = new Options("Intl.PluralRules", given);
    this.#type = options.choice("type", ["cardinal", "ordinal"], "cardinal");
    this.#digits = readDigits(options, 0, 3, false);
  }

  select(value?: unknown): string {
    const d = decimalOf(+(value as number)); // a BigInt is a TypeError here
    if (d.special) return "other";
    const { integer, fraction } = shown({ ...d, negative: false }, this.#digits);
    if (this.#type === "cardinal") return Number(integer) === 1 && !fraction ? "one" : "other";
    if (/[1-9]/.test(fraction) || /1.$/.test(integer)) return "other";
    return { 1: "one", 2: "two", 3: "few" }[Number(integer.at(-1))] ?? "other";
  }

  selectRange(): never {
    throw unsupported("Intl.PluralRules", "selectRange");
  }

  resolvedOptions(): Record<string, unknown> {
    const { roundingMode, roundingPriority, trailingZeroDisplay, ...digits } = this.#digits;
    return { locale: this.#locale.name, type: this.#type, ...digits, pluralCategories: this.#type === "cardinal" ? ["one", "other"] : ["few", "one", "two", "other"] };
  }
}

class ListFormat {
  readonly #locale: Locale;
  readonly #type: string;
  readonly #style: string;

  constructor(locales?: unknown, given?: unknown) {
    this.#locale = localeOf(locales);
    if (given !== undefined && Object(given) !== given) throw new TypeError("Intl.ListFormat: options must be an object");
    const options = new Options("Intl.ListFormat", given);
    this.#type = options.choice("type", ["conjunction", "disjunction", "unit"], "conjunction");
    this.#style = options.choice("style", ["long", "short", "narrow"], "long");
  }

  format(list: Iterable<string>): string {
    return textOf(this.formatToParts(list));
  }

  formatToParts(list: Iterable<string> = []): Part[] {
    const elements = [...list];
    const { british } = this.#locale;
    const word = this.#type === "disjunction" ? "or" : this.#type === "unit" || this.#style === "narrow" ? "" : this.#style === "short" && !british ? "&" : "and";
    const between = this.#type === "unit" && this.#style === "narrow" ? " " : ", ";
    const last = !word ? between : british || elements.length === 2 ? ` ${word} ` : `, ${word} `;
    return elements.flatMap((value, i) => {
      if (typeof value !== "string") throw new TypeError(`Iterable yielded ${String(value)} which is not a string`);
      const element = { type: "element", value };
      return i === 0 ? [element] : [{ type: "literal", value: i === elements.length - 1 ? last : between }, element];
    });
  }

  resolvedOptions(): Record<string, unknown> {
    return { locale: this.#locale.name, type: this.#type, style: this.#style };
  }
}

// Each unit in its long, short and narrow form; short ones end with a point in American English.
const units: Record<string, [short: string, narrow: string]> = {
  second: ["sec", "s"], minute: ["min", "m"], hour: ["hr", "h"], day: ["day", "d"], week: ["wk", "w"], month: ["mo", "mo"], quarter: ["qtr", "q"], year: ["yr", "y"],
};

class RelativeTimeFormat {
  readonly #locale: Locale;
  readonly #style: string;
  readonly #numeric: string;
  readonly #number: NumberFormat;

  constructor(locales?: unknown, given?: unknown) {
    this.#locale = localeOf(locales);
    const options = new Options("Intl.RelativeTimeFormat", given);
    this.#style = options.choice("style", ["long", "short", "narrow"], "long");
    this.#numeric = options.choice("numeric", ["always", "auto"], "always");
    this.#number = new NumberFormat(locales);
  }

  format(value: unknown, unit: unknown): string {
    return textOf(this.formatToParts(value, unit));
  }

  formatToParts(given: unknown, name: unknown): (Part & { unit?: string })[] {
    const value = Number(given);
    const unit = String(name).replace(/s$/, "");
    if (!Object.hasOwn(units, unit)) throw new RangeError(`Invalid unit argument for Intl.RelativeTimeFormat.prototype.format() '${String(name)}'`);
    if (!Number.isFinite(value)) throw new RangeError("Value need to be finite number for Intl.RelativeTimeFormat.prototype.format()");
    const word = this.#numeric === "auto" ? this.#word(value, unit) : undefined;
    if (word !== undefined) return [{ type: "literal", value: word }];
    const before = value < 0 || Object.is(value, -0);
    const number = this.#number.formatToParts(Math.abs(value)).map((part) => ({ ...part, unit }));
    const after = this.#unit(unit, textOf(number) === "1") + (before ? " ago" : "");
    return [...(before ? [] : [{ type: "literal", value: "in " }]), ...number, { type: "literal", value: after }];
  }

  /** "yesterday", "this year"; undefined if English has no such word. */
  #word(value: number, unit: string): string | undefined {
    if (unit === "second") return value === 0 ? "now" : undefined;
    if (unit === "day") return { "-1": "yesterday", 0: "today", 1: "tomorrow" }[value];
    const plain = unit === "hour" || unit === "minute";
    const which = plain ? (value === 0 ? "this" : undefined) : { "-1": "last", 0: "this", 1: "next" }[value];
    if (which === undefined) return;
    if (plain || this.#style === "long") return `${which} ${unit}`;
    return `${which} ${units[unit][0]}${this.#locale.british && unit !== "quarter" ? "" : "."}`;
  }

  #unit(unit: string, one: boolean): string {
    const { british } = this.#locale;
    const [short, narrow] = units[unit];
    if (this.#style === "narrow" && !british) return narrow;
    if (this.#style === "long" || unit === "day") return ` ${unit}${one ? "" : "s"}`;
    return ` ${short}${unit === "quarter" && !one && !british ? "s" : ""}${british ? "" : "."}`;
  }

  resolvedOptions(): Record<string, unknown> {
    return { locale: this.#locale.name, style: this.#style, numeric: this.#numeric, numberingSystem: "latn" };
  }
}

export const words = {
  PluralRules: named("PluralRules", PluralRules),
  ListFormat: named("ListFormat", ListFormat),
  RelativeTimeFormat: named("RelativeTimeFormat", RelativeTimeFormat),
};
