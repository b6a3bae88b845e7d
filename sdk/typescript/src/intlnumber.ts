// Intl.NumberFormat for English (ECMA-402, 15). Numbers are decimal digits, so that no
// rounding but the asked one takes place.

import { readNumberingSystem } from "./intldate.ts";
import { callable, type Locale, localeOf, named, Options, type Part, textOf, unsupported, whole } from "./intloptions.ts";

const of = "Intl.NumberFormat";

/** A number: 0.digits times ten to the power of exponent; 0 has no digits. */
export interface Decimal {
  negative: boolean;
  digits: string;
  exponent: number;
  special?: "nan" | "infinity";
}

/** The number that a text or a number in its shortest form stands for. */
export function decimalOf(value: unknown): Decimal {
  if (typeof value === "object" && value !== null) value = primitive(value);
  if (typeof value !== "string" && typeof value !== "bigint") value = Number(value);
  if (Object.is(value, -0)) return { negative: true, digits: "", exponent: 0 };
  const text = String(value).trim();
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(text);
  if (!match || (!match[2] && !match[3])) {
    const number = Number(text); // 0x10, Infinity, nothing
    if (Number.isFinite(number)) return decimalOf(/^0[xob]/i.test(text) ? BigInt(text) : number);
    return { negative: number < 0, digits: "", exponent: 0, special: Number.isNaN(number) ? "nan" : "infinity" };
  }
  const [, sign, before, after = "", power = "0"] = match;
  const all = before + after;
  const digits = all.replace(/^0+/, "");
  const exponent = before.length - (all.length - digits.length) + Number(power);
  if (!(Math.abs(exponent) < 1e6)) return exponent > 0 && digits ? { negative: sign === "-", digits: "", exponent: 0, special: "infinity" } : { negative: sign === "-", digits: "", exponent: 0 };
  return trimmed({ negative: sign === "-", digits, exponent });
}

/** An object converted to a number; a BigInt object becomes a BigInt. */
function primitive(value: any): unknown {
  const convert = value[Symbol.toPrimitive];
  if (convert !== undefined && convert !== null) return convert.call(value, "number");
  const plain = value.valueOf();
  return Object(plain) === plain ? value.toString() : plain;
}

/** Without zeros at the end; 0 has one form. */
function trimmed(d: Decimal): Decimal {
  const digits = d.digits.replace(/0+$/, "");
  return { ...d, digits, exponent: digits ? d.exponent : 0 };
}

const roundingModes = ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"];

/** Rounds to a multiple of ten to the power of place. */
export function roundedTo(d: Decimal, place: number, mode: string): Decimal {
  const keep = d.exponent - place; // so many digits
  if (!d.digits || keep >= d.digits.length) return d;
  const kept = keep > 0 ? d.digits.slice(0, keep) : "";
  const next = keep >= 0 ? d.digits[keep] : "0";
  const rest = keep >= 0 ? d.digits.slice(keep + 1) : d.digits;
  const half = next === "5" && /^0*$/.test(rest) ? 0 : next >= "5" ? 1 : -1; // against half a unit
  if (!away(mode, d.negative, half, (kept.at(-1) ?? "0") > "0" && Number(kept.at(-1)) % 2 === 1)) return trimmed({ ...d, digits: kept });
  const nines = /9*$/.exec(kept)![0].length;
  const head = kept.slice(0, kept.length - nines);
  if (!head) return { ...d, digits: "1", exponent: Math.max(d.exponent, place) + 1 };
  return { ...d, digits: head.slice(0, -1) + (Number(head.at(-1)) + 1) };
}

/** Whether what is not exact goes away from zero. */
function away(mode: string, negative: boolean, half: number, odd: boolean): boolean {
  switch (mode) {
    case "ceil":
      return !negative;
    case "floor":
      return negative;
    case "expand":
      return true;
    case "trunc":
      return false;
  }
  if (half !== 0) return half > 0;
  switch (mode) {
    case "halfCeil":
      return !negative;
    case "halfFloor":
      return negative;
    case "halfTrunc":
      return false;
    case "halfEven":
      return odd;
  }
  return true;
}

/** Which digits are shown (ECMA-402, SetNumberFormatDigitOptions). */
export interface Digits {
  minimumIntegerDigits: number;
  minimumFractionDigits?: number;
  maximumFractionDigits?: number;
  minimumSignificantDigits?: number;
  maximumSignificantDigits?: number;
  roundingMode: string;
  roundingPriority: string;
  trailingZeroDisplay: string;
}

export function readDigits(options: Options, least: number, most: number, compact: boolean): Digits {
  const mostFraction = 100;
  const minimumIntegerDigits = options.whole("minimumIntegerDigits", 1, 21, 1);
  const [minFraction, maxFraction, minSignificant, maxSignificant] = ["minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits"].map((name) => options.raw(name));
  const increment = options.whole("roundingIncrement", 1, 5000, 1);
  if (increment !== 1) throw unsupported("Intl", `roundingIncrement ${increment}`);
  const roundingMode = options.choice("roundingMode", roundingModes, "halfExpand");
  const roundingPriority = options.choice("roundingPriority", ["auto", "morePrecision", "lessPrecision"], "auto");
  const trailingZeroDisplay = options.choice("trailingZeroDisplay", ["auto", "stripIfInteger"], "auto");
  const digits: Digits = { minimumIntegerDigits, roundingMode, roundingPriority, trailingZeroDisplay };
  const hasSignificant = minSignificant !== undefined || maxSignificant !== undefined;
  const hasFraction = minFraction !== undefined || maxFraction !== undefined;
  const auto = roundingPriority === "auto";
  if (hasSignificant || !auto) {
    digits.minimumSignificantDigits = whole(minSignificant, "minimumSignificantDigits", 1, 21, 1);
    digits.maximumSignificantDigits = whole(maxSignificant, "maximumSignificantDigits", digits.minimumSignificantDigits, 21, 21);
  }
  if (!auto || (!hasSignificant && (hasFraction || !compact))) {
    let min = whole(minFraction, "minimumFractionDigits", 0, mostFraction, undefined);
    let max = whole(maxFraction, "maximumFractionDigits", 0, mostFraction, undefined);
    if (min === undefined) min = max === undefined ? least : Math.min(least, max);
    else if (max === undefined) max = Math.max(most, min);
    else if (min > max) throw new RangeError("maximumFractionDigits value is out of range.");
    digits.minimumFractionDigits = min;
    digits.maximumFractionDigits = max ?? most;
  }
  if (digits.minimumFractionDigits === undefined && digits.minimumSignificantDigits === undefined) {
    Object.assign(digits, { minimumFractionDigits: 0, maximumFractionDigits: 0, minimumSignificantDigits: 1, maximumSignificantDigits: 2, roundingPriority: "morePrecision" });
  }
  return digits;
}

/** Rounds a number, and returns its digits before and after the point. */
export function shown(d: Decimal, digits: Digits): { value: Decimal; integer: string; fraction: string } {
  const { maximumSignificantDigits: maxS, maximumFractionDigits: maxF, roundingPriority } = digits;
  const byS = maxS === undefined ? undefined : roundedTo(d, d.digits ? d.exponent - maxS : -Infinity, digits.roundingMode);
  const byF = maxF === undefined ? undefined : roundedTo(d, -maxF, digits.roundingMode);
  const placeS = d.exponent - (maxS ?? 0) + (d.digits ? 0 : 1);
  const significant = byF === undefined || (byS !== undefined && placeS <= -maxF! === (roundingPriority === "morePrecision"));
  const value = significant ? byS! : byF;
  const { exponent } = value;
  let integer = exponent > 0 ? value.digits.slice(0, exponent).padEnd(exponent, "0") : "0";
  let fraction = exponent > 0 ? value.digits.slice(exponent) : "0".repeat(-exponent) + value.digits;
  const least = significant ? digits.minimumSignificantDigits! - (value.digits ? exponent : 1) : digits.minimumFractionDigits!;
  fraction = fraction.padEnd(least, "0");
  if (digits.trailingZeroDisplay === "stripIfInteger" && /^0*$/.test(fraction)) fraction = "";
  integer = integer.padStart(digits.minimumIntegerDigits, "0");
  return { value, integer, fraction };
}

// How many digits after the point a currency has, if not two.
const currencyDigits: [digits: number, currencies: string][] = [
  [0, "AFN ALL BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KMF KPW KRW LAK LBP MGA MMK PKR PYG RWF SLL SOS SYP UGX VND VUV XAF XOF XPF YER"],
  [3, "BHD JOD KWD LYD OMR TND"],
];
const symbols = "USD$ EUR€ GBP£ JPY¥ AUDA$ BRLR$ CADCA$ CNYCN¥ HKDHK$ ILS₪ INR₹ KRW₩ MXNMX$ NZDNZ$ PHP₱ TWDNT$ VND₫ XAFFCFA XCDEC$ XCGCg. XOFF\u202fCFA XPFCFPF";
const britishSymbols = "JPYJP¥ USDUS$";
const narrowSymbols = "AFN؋ AMD֏ AOAKz ARS$ AUD$ AZN₼ BAMKM BBD$ BDT৳ BMD$ BND$ BOBBs BSD$ BWPP BZD$ CAD$ CLP$ CNY¥ COP$ CRC₡ CUC$ CUP$ CZKKč DKKkr DOP$ " +
  "EGPE£ FJD$ FKP£ GEL₾ GHSGH₵ GIP£ GNFFG GTQQ GYD$ HKD$ HNLL HRKkn HUFFt IDRRp ISKkr JMD$ JPY¥ KGS⃀ KHR៛ KMFCF KPW₩ KYD$ KZT₸ LAK₭ LBPL£ " +
  "LKRRs LRD$ MGAAr MMKK MNT₮ MURRs MXN$ MYRRM NAD$ NGN₦ NIOC$ NOKkr NPRRs NZD$ PKRRs PLNzł PYG₲ RONlei RUB₽ RWFRF SBD$ SEKkr SGD$ SHP£ SRD$ SSP£ " +
  "STNDb SYP£ THB฿ TOPT$ TRY₺ TTD$ TWD$ UAH₴ USD$ UYU$ XCD$ ZARR ZMWZK";

const symbolIn = (list: string, currency: string): string | undefined => list.split(" ").find((entry) => entry.startsWith(currency))?.slice(3);

function currencySymbol(currency: string, display: string, british: boolean): string {
  if (display === "code") return currency;
  const narrow = display === "narrowSymbol" ? symbolIn(narrowSymbols, currency) : undefined;
  return narrow ?? (british ? symbolIn(britishSymbols, currency) : undefined) ?? symbolIn(symbols, currency) ?? currency;
}

const compactNames: Record<string, string[]> = {
  short: ["K", "M", "B", "T"],
  british: ["k", "m", "bn", "tn"],
  long: ["thousand", "million", "billion", "trillion"],
};

interface Resolved {
  style: string;
  currency?: string;
  currencyDisplay?: string;
  currencySign?: string;
  notation: string;
  compactDisplay?: string;
  useGrouping: string | false;
  signDisplay: string;
}

function grouping(given: unknown, compact: boolean): string | false {
  const byDefault = compact ? "min2" : "auto";
  if (given === undefined || given === "true" || given === "false") return byDefault;
  if (given === true) return "always";
  if (!given) return false;
  const text = String(given);
  if (!["min2", "auto", "always"].includes(text)) throw new RangeError(`Value ${text} out of range for ${of} options property useGrouping`);
  return text;
}

export class NumberFormat {
  readonly #locale: Locale;
  readonly #resolved: Resolved;
  readonly #digits: Digits;
  #format: ((value?: unknown) => string) | undefined;

  constructor(locales?: unknown, given?: unknown) {
    const locale = localeOf(locales);
    const options = new Options(of, given);
    readNumberingSystem(of, options);
    const style = options.choice("style", ["decimal", "percent", "currency", "unit"], "decimal");
    if (style === "unit") throw unsupported(of, 'style "unit"');
    const code = options.raw("currency");
    if (code !== undefined && !/^[a-z]{3}$/i.test(String(code))) throw new RangeError(`Invalid currency code : ${String(code)}`);
    if (style === "currency" && code === undefined) throw new TypeError("Currency code is required with currency style.");
    const currencyDisplay = options.choice("currencyDisplay", ["code", "symbol", "narrowSymbol", "name"], "symbol");
    const currencySign = options.choice("currencySign", ["standard", "accounting"], "standard");
    const currency = style === "currency" ? String(code).toUpperCase() : undefined;
    if (currency && currencyDisplay === "name") throw unsupported(of, 'currencyDisplay "name"');
    const notation = options.choice("notation", ["standard", "scientific", "engineering", "compact"], "standard");
    const compact = notation === "compact";
    const places = currency ? (currencyDigits.find(([, all]) => all.includes(currency))?.[0] ?? 2) : 0;
    this.#digits = readDigits(options, places, currency ? places : style === "percent" ? 0 : 3, compact);
    const compactDisplay = options.choice("compactDisplay", ["short", "long"], "short");
    this.#locale = locale;
    this.#resolved = {
      style, ...(currency && { currency, currencyDisplay, currencySign }), notation, ...(compact && { compactDisplay }),
      useGrouping: grouping(options.raw("useGrouping"), compact),
      signDisplay: options.choice("signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto"),
    };
  }

  get format(): (value?: unknown) => string {
    return (this.#format ??= (value) => textOf(this.#parts(value)));
  }

  formatToParts(value?: unknown): Part[] {
    return this.#parts(value);
  }

  formatRange(): never {
    throw unsupported(of, "formatRange");
  }

  formatRangeToParts(): never {
    throw unsupported(of, "formatRangeToParts");
  }

  resolvedOptions(): Record<string, unknown> {
    const { style, currency, currencyDisplay, currencySign, notation, compactDisplay, useGrouping, signDisplay } = this.#resolved;
    const { roundingMode, roundingPriority, trailingZeroDisplay, ...digits } = this.#digits;
    const all: Record<string, unknown> = {
      locale: this.#locale.name, numberingSystem: "latn", style, ...(currency && { currency, currencyDisplay, currencySign }),
      minimumIntegerDigits: digits.minimumIntegerDigits,
    };
    for (const name of ["minimumSignificantDigits", "maximumSignificantDigits", "minimumFractionDigits", "maximumFractionDigits"] as const) {
      if (digits[name] !== undefined) all[name] = digits[name];
    }
    return Object.assign(all, { useGrouping, notation }, compactDisplay && { compactDisplay }, { signDisplay, roundingMode, roundingIncrement: 1, trailingZeroDisplay, roundingPriority });
  }

  #parts(given: unknown): Part[] {
    const { style, currency, currencyDisplay, currencySign, notation } = this.#resolved;
    const d = decimalOf(given);
    if (style === "percent" && d.digits) d.exponent += 2;
    const { power, value, integer, fraction } = this.#scaled(d);
    const number: Part[] = [];
    if (d.special === "nan") number.push({ type: "nan", value: "NaN" });
    else if (d.special) number.push({ type: "infinity", value: "∞" });
    else {
      this.#group(integer).forEach((digits, i) => {
        if (i > 0) number.push({ type: "group", value: "," });
        number.push({ type: "integer", value: digits });
      });
      if (fraction) number.push({ type: "decimal", value: "." }, { type: "fraction", value: fraction });
      if (notation === "compact") number.push(...this.#compact(power));
      else if (notation !== "standard") {
        number.push({ type: "exponentSeparator", value: "E" });
        if (power < 0) number.push({ type: "exponentMinusSign", value: "-" });
        number.push({ type: "exponentInteger", value: String(Math.abs(power)) });
      }
    }
    if (style === "percent") number.push({ type: notation === "compact" ? "unit" : "percentSign", value: "%" });
    if (currency) {
      const symbol = currencySymbol(currency, currencyDisplay!, this.#locale.british);
      if (/\p{L}$/u.test(symbol) && !d.special) number.unshift({ type: "literal", value: "\u00a0" });
      number.unshift({ type: "currency", value: symbol });
    }
    const sign = this.#sign(d, value);
    if (sign === "-" && currency && currencySign === "accounting" && notation !== "compact") return [{ type: "literal", value: "(" }, ...number, { type: "literal", value: ")" }];
    if (sign) number.unshift({ type: sign === "-" ? "minusSign" : "plusSign", value: sign });
    return number;
  }

  #sign(d: Decimal, value: Decimal): string {
    const zero = !value.digits && d.special !== "infinity";
    switch (this.#resolved.signDisplay) {
      case "always":
        return d.negative ? "-" : "+";
      case "exceptZero":
        return zero ? "" : d.negative ? "-" : "+";
      case "negative":
        return d.negative && !zero ? "-" : "";
      case "never":
        return "";
    }
    return d.negative ? "-" : "";
  }

  /** The number divided by a power of ten, as the notation has it, and rounded. */
  #scaled(d: Decimal): { power: number; value: Decimal; integer: string; fraction: string } {
    let power = this.#power(d);
    for (;;) {
      const result = shown(d.digits ? { ...d, exponent: d.exponent - power } : d, this.#digits);
      const { value } = result;
      const again = value.digits ? this.#power({ ...value, exponent: value.exponent + power }) : power;
      if (again <= power) return { power, ...result };
      power = again; // rounding has made one digit more
    }
  }

  #power(d: Decimal): number {
    const first = d.digits ? d.exponent - 1 : 0;
    switch (this.#resolved.notation) {
      case "scientific":
        return first;
      case "engineering":
        return Math.floor(first / 3) * 3;
      case "compact":
        return Math.max(0, Math.min(12, Math.floor(first / 3) * 3));
    }
    return 0;
  }

  #compact(power: number): Part[] {
    if (power === 0) return [];
    const { compactDisplay, currency } = this.#resolved;
    const long = compactDisplay === "long" && !currency;
    const names = compactNames[long ? "long" : this.#locale.british ? "british" : "short"];
    return [...(long ? [{ type: "literal", value: " " }] : []), { type: "compact", value: names[power / 3 - 1] }];
  }

  #group(integer: string): string[] {
    const { useGrouping } = this.#resolved;
    if (!useGrouping || integer.length < (useGrouping === "min2" ? 5 : 4)) return [integer];
    const first = integer.length % 3 || 3;
    return [integer.slice(0, first), ...integer.slice(first).match(/.../g)!];
  }
}

export function installNumbers(): object {
  for (const [prototype, take] of [[Number.prototype, Number.prototype.valueOf], [BigInt.prototype, BigInt.prototype.valueOf]] as [object, () => unknown][]) {
    const value = {
      toLocaleString(this: unknown, locales?: unknown, options?: unknown): string {
        const value = take.call(this);
        return new NumberFormat(locales, options).format(value);
      },
    }.toLocaleString;
    Object.defineProperty(value, "length", { value: 0, configurable: true });
    Object.defineProperty(prototype, "toLocaleString", { value, writable: true, configurable: true, enumerable: false });
  }
  return named("NumberFormat", callable(NumberFormat as any));
}
