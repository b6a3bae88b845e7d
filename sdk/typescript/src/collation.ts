// This script is evaluated after runtime.ts if the handlers' sources mention localeCompare or Collator. It orders
// texts by the root collation of CLDR (UTS 10). The host has the weights of all characters. Those of Latin letters
// are in the module.

import { latin, punctuationRank, zeroRank } from "./collationlatin.ts";
import { failure, result, runner } from "./host.ts";
import { canonicalLocales, localeOf, named, Options } from "./intloptions.ts";
import { standardize } from "./web/define.ts";

/** What a character, or a contraction, adds to each level of a key. */
interface Weights {
  /** The collation elements: ranks of the primary, secondary and tertiary weight; the last with the case. */
  elements: number[];
  primary: string;
  secondary: string;
  /** Without the case. */
  tertiary: string;
  /** The contractions that begin with the character, by the rest of their text. */
  contractions?: Map<string, Weights>;
  /** The length of the longest of them. */
  longest: number;
}

/** The answer of the operation collation. */
interface Answer {
  from: number;
  to: number;
  rank?: number;
  elements?: (number | number[])[];
  contractions?: Record<string, number | number[]>;
  classes?: Record<string, number>;
}

// Weights by code point, and ranges of code points with consecutive ranks. They do not change in one version of the runner.
const known = new Map<number, Weights>();
const ranges: { from: number; to: number; rank: number }[] = [];
const classes = new Map<number, number>();

// One code unit for each rank, and two for a large one, so that keys can be compared as texts.
const unit = (n: number): string => (n < 0xd000 ? String.fromCharCode(n) : String.fromCharCode(0xe000 + (n >> 12), 1 + (n & 0xfff)));

function weightsOf(given: number | number[]): Weights {
  const elements = typeof given === "number" ? (given ? [given, 1, 2] : []) : given;
  let primary = "";
  let secondary = "";
  let tertiary = "";
  for (let i = 0; i < elements.length; i += 3) {
    if (elements[i]) primary += unit(elements[i]);
    if (elements[i + 1]) secondary += unit(elements[i + 1]);
    if (elements[i + 2]) tertiary += unit(elements[i + 2] & 63);
  }
  return { elements, primary, secondary, tertiary, longest: 0 };
}

function learn(answer: Answer): void {
  const { from, to, rank, elements, contractions } = answer;
  if (rank !== undefined) ranges.push({ from, to, rank });
  elements?.forEach((given, i) => known.set(from + i, weightsOf(given)));
  for (const text in contractions) {
    const first = text.codePointAt(0)!;
    const rest = text.slice(first > 0xffff ? 2 : 1);
    const weights = known.get(first)!;
    (weights.contractions ??= new Map()).set(rest, weightsOf(contractions[text]));
    weights.longest = Math.max(weights.longest, rest.length);
  }
  for (const c in answer.classes) classes.set(Number(c), answer.classes[c]);
}

for (const text of latin) learn(JSON.parse(text));

/** The weights of a character that is not known yet. */
function find(c: number): Weights {
  for (;;) {
    for (const { from, to, rank } of ranges) if (from <= c && c <= to) return weightsOf(rank + c - from);
    if (!runner.live) runner.demand("comparing texts beyond Latin letters");
    const op = "collation";
    const n = runner.host.call(op, JSON.stringify({ at: c }));
    if (n < 0) throw failure(n, op);
    learn(result());
    const weights = known.get(c);
    if (weights) return weights;
  }
}

const classOf = (c: number): number => {
  if (!known.has(c)) find(c);
  return classes.get(c) ?? 0;
};

/** Calls `take` with the weights of each character or contraction of a text in NFD. */
function each(text: string, take: (weights: Weights, c: number) => void): void {
  for (let i = 0; i < text.length; ) {
    const c = text.codePointAt(i)!;
    i += c > 0xffff ? 2 : 1;
    let weights = known.get(c) ?? find(c);
    if (!weights.contractions) {
      take(weights, c);
      continue;
    }
    const { contractions } = weights;
    let matched = "";
    for (let n = weights.longest; n > 0; n--) {
      const found = contractions.get(text.slice(i, i + n));
      if (found && i + n <= text.length) {
        matched = text.slice(i, i + n);
        weights = found;
        break;
      }
    }
    i += matched.length;
    const marks = marksAt(text, i);
    const others: number[] = [];
    let taken = false;
    // A mark belongs to the contraction if none of its class stands between (UTS 10, S2.1).
    for (const mark of marks) {
      const found = others.length === 0 || classOf(others[others.length - 1]) < classOf(mark) ? contractions.get(matched + String.fromCodePoint(mark)) : undefined;
      if (found === undefined) {
        others.push(mark);
        continue;
      }
      weights = found;
      matched += String.fromCodePoint(mark);
      taken = true;
    }
    take(weights, c);
    if (!taken) continue;
    for (const mark of others) take(known.get(mark) ?? find(mark), mark);
    for (const mark of marks) i += mark > 0xffff ? 2 : 1;
  }
}

/** The combining marks of a text from a place on. */
function marksAt(text: string, at: number): number[] {
  const marks = [];
  while (at < text.length) {
    const c = text.codePointAt(at)!;
    if (classOf(c) === 0) break;
    marks.push(c);
    at += c > 0xffff ? 2 : 1;
  }
  return marks;
}

/** How texts are compared. */
interface Rules {
  sensitivity: string;
  numeric: boolean;
  caseFirst: string;
  ignorePunctuation: boolean;
}

const usual: Rules = { sensitivity: "variant", numeric: false, caseFirst: "false", ignorePunctuation: false };

const isDigit = /^\p{Nd}$/u;

/** How many keys a collator keeps, to compare the texts of a long list again and again. */
const maxKept = 20_000;

/** The first level of a text, which must be in NFD. This takes most of the time, so it is written for speed. */
function primaryOf(text: string): string {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const weights = known.get(text.charCodeAt(i));
    if (weights === undefined || weights.contractions !== undefined) {
      out = "";
      each(text, ({ primary }) => {
        out += primary;
      });
      return out;
    }
    out += weights.primary;
  }
  return out;
}

const beyondASCII = /[^\0-\x7f]/;
const normal = (text: string): string => (beyondASCII.test(text) ? normalInPieces(text) : text);

/** No character before this one is a combining mark, or is the second of a pair. */
const firstMark = 0x300;
const pieceLength = 128;

/** The engine's normalization takes quadratic time in a run of combining marks, so long texts are normalized in pieces. A
 *  piece ends before a character that is no mark; a longer run of other characters is cut. */
function normalInPieces(text: string): string {
  let out = "";
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + pieceLength, text.length);
    const most = Math.min(to + pieceLength, text.length);
    while (to < most && text.charCodeAt(to) >= firstMark) to++;
    if ((text.charCodeAt(to) & 0xfc00) === 0xdc00) to--; // between the halves of a surrogate pair
    out += text.slice(from, to).normalize("NFD");
    from = to;
  }
  return out;
}

/** Makes and keeps keys. */
class Keys {
  /** The first levels of texts, and the others as far as they were needed. */
  primaries = new Map<string, string>();
  rests = new Map<string, string>();
  private readonly rules: Rules;
  private readonly simple: boolean;

  constructor(rules: Rules) {
    this.rules = rules;
    this.simple = !rules.numeric && !rules.ignorePunctuation;
  }

  /** The first level of a text that is not kept. */
  make(text: string): string {
    let primary = "";
    if (this.simple) primary = primaryOf(normal(text));
    else
      this.elements(normal(text), (unit) => {
        primary += unit;
      });
    return keep(this.primaries, text, primary);
  }

  /** The levels after the first one. */
  rest(text: string): string {
    const kept = this.rests.get(text);
    if (kept !== undefined) return kept;
    const { sensitivity, caseFirst } = this.rules;
    let second = "";
    let third = "";
    if (sensitivity === "case") {
      this.elements(normal(text), (primary, _secondary, tertiary) => {
        if (primary) third += unit(1 + (caseFirst === "upper" ? 2 - (tertiary >> 6) : tertiary >> 6));
      });
    } else if (sensitivity !== "base") {
      const all = sensitivity === "variant";
      if (this.simple && caseFirst === "false") {
        each(normal(text), (weights) => {
          second += weights.secondary;
          if (all) third += weights.tertiary;
        });
      } else {
        this.elements(normal(text), (_primary, secondary, tertiary) => {
          if (secondary) second += unit(secondary);
          if (!all || !tertiary) return;
          const upper = secondary ? 2 - (tertiary >> 6) : 3; // a mark has no case, and comes after letters
          const cased = caseFirst === "upper" ? upper : caseFirst === "lower" ? tertiary >> 6 : 0;
          third += unit((cased << 6) | (tertiary & 63));
        });
      }
    }
    return keep(this.rests, text, `${second}\0${third}`);
  }

  /** Calls `take` with each collation element. With the option numeric, a number is one element. */
  private elements(text: string, take: (primary: string, secondary: number, tertiary: number) => void): void {
    const { numeric, ignorePunctuation } = this.rules;
    let digits = "";
    let ignored = false; // the last character was punctuation
    const number = (): void => {
      if (digits === "") return;
      const value = digits.replace(/^0+(?=.)/, "");
      take(unit(zeroRank) + unit(1 + value.length) + value, 1, 2);
      digits = "";
    };
    each(text, ({ elements }, c) => {
      const [first] = elements;
      if (numeric && elements.length === 3 && first >= zeroRank && first < zeroRank + 10 && isDigit.test(String.fromCodePoint(c))) {
        digits += first - zeroRank;
        ignored = false;
        return;
      }
      number();
      for (let i = 0; i < elements.length; i += 3) {
        const primary = elements[i];
        if (ignorePunctuation) {
          if (primary > 0 && primary <= punctuationRank) ignored = true;
          else if (primary > 0) ignored = false;
          if (ignored) continue;
        }
        take(primary ? unit(primary) : "", elements[i + 1], elements[i + 2]);
      }
    });
    number();
  }
}

/** Keeps a key for the rest of the request. Outside of requests it keeps none. */
function keep(in_: Map<string, string>, text: string, key: string): string {
  if (!runner.live) return key;
  if (in_.size >= maxKept) in_.clear();
  in_.set(text, key);
  return key;
}

function compareKeys(keys: Keys, x: string, y: string): number {
  if (x === y) return 0;
  const { primaries } = keys;
  const a = primaries.get(x) ?? keys.make(x);
  const b = primaries.get(y) ?? keys.make(y);
  if (a !== b) return a < b ? -1 : 1;
  const first = keys.rest(x);
  const second = keys.rest(y);
  return first === second ? 0 : first < second ? -1 : 1;
}

/** The value of a key of the extension u of a locale: "" if it has none. */
function extension(locale: string, key: string): string | undefined {
  const found = new RegExp(`-u(?:-[a-z\\d]{2,8})*?-${key}((?:-[a-z\\d]{3,8})*)(?:-[a-z\\d]{2}-|-[a-z\\d]-|-[a-z\\d]{2}$|$)`).exec(locale);
  return found?.[1].slice(1);
}

const caseOrders = ["upper", "lower", "false"];

class Collator {
  readonly #rules: Rules;
  readonly #keys: Keys;
  readonly #locale: string;
  readonly #usage: string;
  #compare?: (x: string, y: string) => number;

  constructor(locales?: unknown, given?: unknown) {
    const { name } = localeOf(locales);
    const asked = canonicalLocales(locales).find((locale) => locale === name || locale.startsWith(`${name}-`)) ?? "";
    const options = new Options("Intl.Collator", given);
    this.#usage = options.choice("usage", ["sort", "search"], "sort");
    options.choice("localeMatcher", ["lookup", "best fit"], "best fit");
    const numeric = options.flag("numeric");
    const caseFirst = options.choice("caseFirst", caseOrders, undefined);
    const sensitivity = options.choice("sensitivity", ["base", "accent", "case", "variant"], "variant");
    const ignorePunctuation = options.flag("ignorePunctuation") ?? false;
    // Options have priority over extensions of the locale.
    const wantedNumeric = extension(asked, "kn");
    const wantedCase = extension(asked, "kf");
    const localeNumeric = wantedNumeric === undefined ? undefined : wantedNumeric === "" || wantedNumeric === "true" ? true : wantedNumeric === "false" ? false : undefined;
    const localeCase = wantedCase !== undefined && caseOrders.includes(wantedCase) ? wantedCase : undefined;
    this.#rules = { sensitivity, ignorePunctuation, numeric: numeric ?? localeNumeric ?? false, caseFirst: caseFirst ?? localeCase ?? "false" };
    let kept = "";
    if (localeCase !== undefined && this.#rules.caseFirst === localeCase) kept += `-kf-${localeCase}`;
    if (localeNumeric !== undefined && this.#rules.numeric === localeNumeric) kept += localeNumeric ? "-kn" : "-kn-false";
    this.#locale = kept ? `${name}-u${kept}` : name;
    this.#keys = new Keys(this.#rules);
  }

  get compare(): (x: string, y: string) => number {
    const keys = this.#keys;
    return (this.#compare ??= Object.defineProperty((x: string, y: string): number => compareKeys(keys, String(x), String(y)), "name", { value: "" }));
  }

  resolvedOptions(): Record<string, unknown> {
    const { sensitivity, ignorePunctuation, numeric, caseFirst } = this.#rules;
    return { locale: this.#locale, usage: this.#usage, sensitivity, ignorePunctuation, collation: "default", numeric, caseFirst };
  }
}

named("Collator", Collator);

// The collators of localeCompare: the usual one, and the last one with a locale or options.
const plain = new Keys(usual);
let lastGiven = "";
let last: Collator | undefined;

function compareAs(locales: unknown, options: any, text: string, that: string): number {
  const { usage, localeMatcher, numeric, caseFirst, sensitivity, ignorePunctuation } = options ?? {};
  const given = JSON.stringify([locales, options === null, usage, localeMatcher, numeric, caseFirst, sensitivity, ignorePunctuation]);
  if (last === undefined || lastGiven !== given) {
    last = new Collator(locales, options);
    lastGiven = given;
  }
  return last.compare(text, that);
}

runner.Collator = Collator;

const value = {
  localeCompare(this: unknown, that: unknown, locales?: unknown, options?: unknown): number {
    "use strict";
    if (this === undefined || this === null) throw new TypeError("String.prototype.localeCompare called on null or undefined");
    const text = typeof this === "string" ? this : String(this);
    const other = typeof that === "string" ? that : String(that);
    return locales === undefined && options === undefined ? compareKeys(plain, text, other) : compareAs(locales, options, text, other);
  },
}.localeCompare;
standardize("String.prototype.localeCompare", value);
Object.defineProperty(String.prototype, "localeCompare", { value, writable: true, configurable: true, enumerable: false });
