// Intl.DateTimeFormat for English (ECMA-402, 11), with the patterns of CLDR.

import { callable, type Locale, localeOf, named, Options, type Part, textOf, unsupported } from "./intloptions.ts";
import { type Period, periodAt, zoneNamed } from "./timezone.ts";

const of = "Intl.DateTimeFormat";

/** A field with its width, or literal text. */
type Item = [field: string, width: string] | string;

/** The fields that a format has, with their widths. */
type Fields = Partial<Record<"weekday" | "era" | "year" | "month" | "day" | "hour" | "minute" | "second" | "timeZoneName", string>> & { fraction?: number };

const months = "January February March April May June July August September October November December".split(" ");
const weekdays = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

const texts = ["narrow", "short", "long"];
const numbers = ["2-digit", "numeric"];
const widths: Record<string, string[]> = {
  weekday: texts, era: texts, year: numbers, month: [...numbers, ...texts], day: numbers, hour: numbers, minute: numbers, second: numbers,
  timeZoneName: ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"],
};
const styles = ["full", "long", "medium", "short"];

const dateStyles: Record<string, Fields> = {
  full: { weekday: "long", year: "numeric", month: "long", day: "numeric" },
  long: { year: "numeric", month: "long", day: "numeric" },
  medium: { year: "numeric", month: "short", day: "numeric" },
  short: { year: "2-digit", month: "numeric", day: "numeric" },
};
const timeStyles: Record<string, Fields> = {
  full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "long" },
  long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
  medium: { hour: "numeric", minute: "2-digit", second: "2-digit" },
  short: { hour: "numeric", minute: "2-digit" },
};

const isText = (month: string | undefined): boolean => texts.includes(month!);

/** The pattern of the date, without the era. */
function dateItems(fields: Fields, british: boolean): Item[] {
  const { weekday: w, year: y, month: m } = fields;
  let { month, day: d } = fields;
  if (british && month && !isText(month)) {
    if (d && (w || (month === "numeric" && d === "numeric"))) month = d = "2-digit";
    else if (y && !d && !fields.era) month = "2-digit";
  }
  const [W, Y, M, D]: Item[] = [["weekday", w!], ["year", y!], ["month", month!], ["day", d!]];
  if (m && d) {
    let core: Item[];
    if (british) core = isText(m) ? [D, " ", M, ...(y ? [" ", Y] : [])] : [D, "/", M, ...(y ? ["/", Y] : [])];
    else core = isText(m) ? [M, " ", D, ...(y ? [", ", Y] : [])] : [M, "/", D, ...(y ? ["/", Y] : [])];
    return w ? [W, british && !y ? " " : ", ", ...core] : core;
  }
  if ((w && (m || y)) || (d && y)) throw unsupported(of, "a date of these fields");
  if (m) return y ? [M, isText(m) ? " " : "/", Y] : [M];
  if (d) return w ? (british ? [W, " ", D] : [D, " ", W]) : [D];
  return y ? [Y] : w ? [W] : [];
}

/** Whether British English has a numeric hour of 24 in one digit, which depends on the other fields. */
function hasOneDigit({ weekday, year, month, day, minute, second, fraction, timeZoneName: zone }: Fields): boolean {
  const twos = (minute === "2-digit" ? 1 : 0) + (second === "2-digit" ? 1 : 0);
  if (zone) return second !== undefined && twos >= (zone === "longOffset" ? 2 : zone === "shortOffset" ? 1 : 0);
  const alone = weekday && !(year || month || day) && !fraction;
  return minute === "2-digit" && second !== "numeric" && !alone && !(fraction && !second);
}

/** The pattern of the time. */
function timeItems(fields: Fields, halves: boolean, oneDigit: boolean, dated: boolean): Item[] {
  const { hour, minute, fraction, timeZoneName: zone } = fields;
  const second = fields.second ?? (minute && fraction ? "2-digit" : undefined);
  if (!minute && ((hour && (second || fraction)) || (fraction && dated))) throw unsupported(of, "a second without a minute, beside an hour or a date,");
  const items: Item[] = [];
  if (hour) items.push(["hour", halves || oneDigit ? hour : "2-digit"]);
  if (minute) items.push(...(hour ? [":"] : []), ["minute", hour || second ? "2-digit" : "numeric"]);
  if (second) items.push(...(minute ? [":"] : []), ["second", minute ? "2-digit" : "numeric"]);
  if (fraction) items.push(...(second ? ["."] : []), ["fractionalSecond", String(fraction)]);
  if (hour && halves) items.push("\u202f", ["dayPeriod", ""]);
  if (hour && !halves && !minute && zone) items.push("h");
  if (zone) items.push(...(items.length > 0 ? [" "] : []), ["timeZoneName", zone]);
  return items;
}

function pattern(fields: Fields, british: boolean, halves: boolean): Item[] {
  const date = dateItems(fields, british);
  const { era, weekday, year, month, hour, minute, fraction, timeZoneName } = fields;
  if (era) {
    if (!year || weekday) throw unsupported(of, "era with these fields");
    date.push(" ", ["era", era]);
  }
  const time = timeItems(fields, halves, british && hasOneDigit(fields), date.length > 0);
  if (date.length === 0 || time.length === 0) return [...date, ...time];
  const alone = date.length === 1 && weekday && hour && (halves || minute) && !timeZoneName && !fraction;
  return [...date, alone ? " " : month === "long" ? " at " : ", ", ...time];
}

/** Reads the options; needed and given say which fields there are by default. */
function read(locale: Locale, options: Options, needed: string, given: string): { fields: Fields; dateStyle?: string; timeStyle?: string } {
  const fields: Fields = {};
  for (const name of ["weekday", "era", "year", "month", "day", "hour", "minute", "second"] as const) {
    const width = options.choice(name, widths[name], undefined);
    if (width !== undefined) fields[name] = width;
  }
  const fraction = options.whole("fractionalSecondDigits", 1, 3, undefined);
  if (fraction !== undefined) fields.fraction = fraction;
  const zone = options.choice("timeZoneName", widths.timeZoneName, undefined);
  if (zone === "shortGeneric" || zone === "longGeneric") throw unsupported(of, `timeZoneName "${zone}"`);
  if (zone !== undefined) fields.timeZoneName = zone;
  options.refuse("dayPeriod");
  const dateStyle = options.choice("dateStyle", styles, undefined);
  const timeStyle = options.choice("timeStyle", styles, undefined);
  if (dateStyle || timeStyle) {
    for (const name in fields) throw new TypeError(`Can't set option ${name === "fraction" ? "fractionalSecondDigits" : name} when ${dateStyle ? "dateStyle" : "timeStyle"} is used`);
    if (needed === "date" && timeStyle) throw new TypeError("Invalid option : timeStyle");
    if (needed === "time" && dateStyle) throw new TypeError("Invalid option : dateStyle");
    Object.assign(fields, dateStyle && dateStyles[dateStyle], timeStyle && timeStyles[timeStyle]);
    if (locale.british && dateStyle === "short") fields.year = "numeric";
    return { fields, dateStyle, timeStyle };
  }
  const { weekday, year, month, day, hour, minute, second } = fields;
  const hasDate = weekday || year || month || day;
  const hasTime = hour || minute || second || fraction;
  if (!(needed !== "time" && hasDate) && !(needed !== "date" && hasTime)) {
    if (given !== "time") fields.year = fields.month = fields.day = "numeric";
    if (given !== "date") fields.hour = fields.minute = fields.second = "numeric";
  }
  return { fields };
}

function hourCycleOf(locale: Locale, options: Options): string {
  const hour12 = options.flag("hour12");
  const hourCycle = options.choice("hourCycle", ["h11", "h12", "h23", "h24"], undefined);
  // The cycles of hour12 are those of V8 in Node.js 20.
  if (hour12 !== undefined) return locale.british ? (hour12 ? "h11" : "h23") : hour12 ? "h12" : "h24";
  return hourCycle ?? locale.hourCycle ?? (locale.british ? "h23" : "h12");
}

export class DateTimeFormat {
  readonly #locale: Locale;
  readonly #zone: string;
  readonly #fields: Fields;
  readonly #hourCycle: string;
  readonly #items: Item[];
  readonly #styles: { dateStyle?: string; timeStyle?: string };
  #format: ((date?: unknown) => string) | undefined;

  constructor(locales?: unknown, given?: unknown, needed = "any", byDefault = "date") {
    const locale = localeOf(locales);
    const options = new Options(of, given);
    const calendar = options.raw("calendar");
    if (calendar !== undefined && calendar !== "gregory") throw unsupported(of, `calendar "${String(calendar)}"`);
    readNumberingSystem(of, options);
    const cycle = hourCycleOf(locale, options);
    const zone = options.raw("timeZone");
    const { fields, ...styles } = read(locale, options, needed, byDefault);
    const halves = cycle === "h11" || cycle === "h12";
    if (locale.british && styles.timeStyle) fields.hour = "2-digit";
    this.#locale = locale;
    this.#hourCycle = cycle;
    this.#fields = fields;
    this.#styles = styles;
    this.#items = pattern(fields, locale.british, halves);
    this.#zone = zone === undefined ? "UTC" : zoneNamed(String(zone));
  }

  get format(): (date?: unknown) => string {
    // In a text, engines write a plain space before AM and PM, which much code expects.
    return (this.#format ??= (date) => textOf(this.#parts(date)).replace("\u202f", " "));
  }

  formatToParts(date?: unknown): Part[] {
    return this.#parts(date);
  }

  formatRange(): never {
    throw unsupported(of, "formatRange");
  }

  formatRangeToParts(): never {
    throw unsupported(of, "formatRangeToParts");
  }

  resolvedOptions(): Record<string, unknown> {
    const { name, hourCycle } = this.#locale;
    const cycle = this.#hourCycle;
    const all: Record<string, unknown> = {
      locale: hourCycle && hourCycle === cycle ? `${name}-u-hc-${hourCycle}` : name, calendar: "gregory", numberingSystem: "latn", timeZone: this.#zone,
    };
    if (this.#fields.hour) Object.assign(all, { hourCycle: cycle, hour12: cycle === "h11" || cycle === "h12" });
    if (this.#styles.dateStyle || this.#styles.timeStyle) {
      for (const style of ["dateStyle", "timeStyle"] as const) if (this.#styles[style]) all[style] = this.#styles[style];
      return all;
    }
    const used = new Map(this.#items.filter((item) => typeof item !== "string") as [string, string][]);
    for (const field of ["weekday", "era", "year", "month", "day", "hour", "minute", "second"]) if (used.has(field)) all[field] = used.get(field);
    if (this.#fields.fraction) all.fractionalSecondDigits = this.#fields.fraction;
    if (this.#fields.timeZoneName) all.timeZoneName = this.#fields.timeZoneName;
    return all;
  }

  #parts(date: unknown): Part[] {
    const time = date === undefined ? Date.now() : Number(date);
    if (!(Math.abs(time) <= 8.64e15)) throw new RangeError("Invalid time value");
    const period = periodAt(this.#zone, Math.trunc(time));
    const local = fieldsOf(Math.trunc(time), period.offset);
    const parts: Part[] = [];
    for (const item of this.#items) {
      if (typeof item !== "string") parts.push({ type: item[0], value: this.#value(item[0], item[1], local, period) });
      else if (parts.at(-1)?.type === "literal") parts.at(-1)!.value += item;
      else parts.push({ type: "literal", value: item });
    }
    return parts;
  }

  #value(field: string, width: string, local: Local, period: Period): string {
    const { british } = this.#locale;
    switch (field) {
      case "weekday":
        return shortened(weekdays[local.weekday], width, 3);
      case "month":
        if (!isText(width)) return padded(local.month + 1, width);
        return shortened(months[local.month], width, british && local.month === 8 ? 4 : 3);
      case "era":
        return (width === "long" ? ["Before Christ", "Anno Domini"] : width === "short" ? ["BC", "AD"] : ["B", "A"])[local.year > 0 ? 1 : 0];
      case "year": {
        const year = local.year > 0 ? local.year : 1 - local.year;
        return width === "2-digit" ? padded(year % 100, width) : String(year);
      }
      case "hour":
        return padded(hourIn(this.#hourCycle, local.hour), width);
      case "dayPeriod":
        return british ? (local.hour < 12 ? "am" : "pm") : local.hour < 12 ? "AM" : "PM";
      case "fractionalSecond":
        return String(local.millisecond).padStart(3, "0").slice(0, Number(width));
      case "timeZoneName":
        return zoneText(width, period, british, local.time);
      default:
        return padded(local[field as "day" | "minute" | "second"], width);
    }
  }
}

const padded = (n: number, width: string): string => (width === "2-digit" ? String(n).padStart(2, "0") : String(n));
const shortened = (name: string, width: string, letters: number): string => (width === "long" ? name : name.slice(0, width === "narrow" ? 1 : letters));

function hourIn(cycle: string, hour: number): number {
  switch (cycle) {
    case "h11":
      return hour % 12;
    case "h12":
      return hour % 12 || 12;
    case "h24":
      return hour || 24;
  }
  return hour;
}

/** The fields of a local time, and the instant in milliseconds. */
type Local = Record<"time" | "year" | "month" | "day" | "weekday" | "hour" | "minute" | "second" | "millisecond", number>;

/** The local time at an instant, which may be beyond the range of Date. */
function fieldsOf(instant: number, offset: number): Local {
  const time = instant + offset * 1000;
  const days = Math.floor(time / 864e5);
  const rest = time - days * 864e5;
  const cycles = Math.floor(days / 146_097); // of 400 years, after which the calendar repeats itself
  const date = new Date((days - cycles * 146_097) * 864e5);
  return {
    time: instant, year: date.getUTCFullYear() + cycles * 400, month: date.getUTCMonth(), day: date.getUTCDate(), weekday: date.getUTCDay(),
    hour: Math.floor(rest / 36e5), minute: Math.floor(rest / 6e4) % 60, second: Math.floor(rest / 1000) % 60, millisecond: rest % 1000,
  };
}

/** "GMT+5:30", or "GMT+05:30" in the long form. */
function offsetText(offset: number, long: boolean): string {
  const all = Math.abs(offset);
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60].map((n) => String(n).padStart(2, "0"));
  const text = `${long ? hours : Number(hours)}${long || minutes !== "00" || seconds !== "00" ? `:${minutes}` : ""}${seconds !== "00" ? `:${seconds}` : ""}`;
  return `GMT${offset < 0 ? "-" : "+"}${text}`;
}

// The names of zones, by the abbreviation of the IANA time zone database. Some abbreviations
// have a meaning of their own in some zones, which come first.
const longNames: [zones: RegExp | null, names: string][] = [
  [/^(America\/Havana|Cuba)$/, "CST Cuba Standard,CDT Cuba Daylight"],
  [/^(America\/(Hermosillo|Mazatlan)|Mexico\/BajaSur)$/, "MST Mexican Pacific Standard,MDT Mexican Pacific Daylight"],
  [/^(America\/(Dawson|Whitehorse)|Canada\/Yukon)$/, "MST Yukon"],
  [/^(Asia\/(Shanghai|Chongqing|Chungking|Harbin|Macao|Macau)|PRC)$/, "CST China Standard,CDT China Daylight"],
  [/^(Asia\/Taipei|ROC)$/, "CST Taiwan Standard,CDT Taiwan Daylight"],
  [/^Asia\/Manila$/, "PST Philippine Standard"],
  [/^(Asia\/(Jerusalem|Tel_Aviv)|Israel)$/, "IST Israel Standard,IDT Israel Daylight"],
  [/^(Europe\/Dublin|Eire)$/, "IST Irish Standard,GMT Greenwich Mean"],
  [/^Asia\/(Kolkata|Calcutta)$/, "IST India Standard"],
  [/^(Europe\/(London|Belfast)|GB|GB-Eire)$/, "BST British Summer,GMT Greenwich Mean"],
  [/^(Europe\/(Guernsey|Isle_of_Man|Jersey)|Africa\/(Casablanca|El_Aaiun))$/, "GMT Greenwich Mean"],
  [/^(America|US|Canada|Mexico|CST6CDT$|EST|MST|PST|Navajo$|Jamaica$)/, "EST Eastern Standard,EDT Eastern Daylight,CST Central Standard,CDT Central Daylight," +
    "MST Mountain Standard,MDT Mountain Daylight,PST Pacific Standard,PDT Pacific Daylight,AKST Alaska Standard,AKDT Alaska Daylight"],
  [/^Asia\/(Dubai|Muscat)$/, "+04 Gulf Standard"],
  [null, "GMT Greenwich Mean,AST Atlantic Standard,ADT Atlantic Daylight,NST Newfoundland Standard,NDT Newfoundland Daylight," +
    "HST Hawaii-Aleutian Standard,HDT Hawaii-Aleutian Daylight,WET Western European Standard,WEST Western European Summer,CET Central European Standard," +
    "CEST Central European Summer,EET Eastern European Standard,EEST Eastern European Summer,MSK Moscow Standard,SAST South Africa Standard," +
    "EAT East Africa,CAT Central Africa,WAT West Africa,PKT Pakistan Standard,WIB Western Indonesia,WITA Central Indonesia,WIT Eastern Indonesia," +
    "HKT Hong Kong Standard,JST Japan Standard,KST Korean Standard,AWST Australian Western Standard,ACST Australian Central Standard," +
    "ACDT Australian Central Daylight,AEST Australian Eastern Standard,AEDT Australian Eastern Daylight,NZST New Zealand Standard,NZDT New Zealand Daylight"],
];

/** Before 1970 CLDR has no names, and none for the winters until 1971 in which London had its summer time. */
const nameless = ({ abbreviation }: Period, time: number): boolean => time < 0 || (abbreviation === "BST" && time < Date.UTC(1971, 9, 31));

function longName({ zone, abbreviation }: Period): string | undefined {
  for (const [zones, names] of longNames) {
    if (zones !== null && !zones.test(zone)) continue;
    const name = names.split(",").find((name) => name.startsWith(`${abbreviation} `));
    if (name !== undefined) return `${name.slice(abbreviation.length + 1)} Time`;
  }
}

// The long names that have a short form: in American English those of the United States, in
// British English those of Europe.
const american = /^(Eastern|Central|Mountain|Pacific|Atlantic|Alaska|Hawaii-Aleutian) (Standard|Daylight) Time$/;
const european = /^((Western|Central|Eastern) European (Standard|Summer)|British Summer|Gulf Standard) Time$/;

function zoneText(width: string, period: Period, british: boolean, time: number): string {
  const { zone, offset, abbreviation } = period;
  if (width === "shortOffset" || width === "longOffset") return offsetText(offset, width === "longOffset");
  if (zone === "UTC") return width === "short" ? zone : "Coordinated Universal Time";
  const name = nameless(period, time) ? undefined : longName(period);
  if (width === "short") {
    if (name === "Greenwich Mean Time") return "GMT";
    if (name === undefined || !(british ? european : american).test(name)) return offsetText(offset, false);
    if (name === "Gulf Standard Time") return "GST";
    return /^(America|US)\/A/.test(zone) ? abbreviation.replace(/^H(.)T$/, "HA$1T") : abbreviation;
  }
  if (name !== undefined) return name;
  if (nameless(period, time) || /^Etc\//.test(zone)) return offsetText(offset, true);
  throw unsupported(of, `the long name of the time zone ${zone}`);
}

/** Only the digits of Latin script exist. */
export function readNumberingSystem(of: string, options: Options): void {
  const system = options.raw("numberingSystem");
  if (system !== undefined && system !== "latn") throw unsupported(of, `numberingSystem "${String(system)}"`);
}

export function installDates(): object {
  for (const [name, needed, byDefault] of [["toLocaleString", "any", "all"], ["toLocaleDateString", "date", "date"], ["toLocaleTimeString", "time", "time"]]) {
    const { [name]: value } = {
      [name](this: Date, locales?: unknown, options?: unknown): string {
        const time = Date.prototype.getTime.call(this);
        const format = new DateTimeFormat(locales, options, needed, byDefault);
        return Number.isNaN(time) ? "Invalid Date" : format.format(time);
      },
    };
    Object.defineProperty(value, "length", { value: 0, configurable: true });
    Object.defineProperty(Date.prototype, name, { value, writable: true, configurable: true, enumerable: false });
  }
  return named("DateTimeFormat", callable(DateTimeFormat as any));
}
