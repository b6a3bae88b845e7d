// Writes cases.json: what Node.js gives for dates and numbers. Run it with Node.js 20 and a
// complete ICU: node develop/toolchain/typescript/testdata/intl/make.mjs > develop/toolchain/typescript/testdata/intl/cases.json
//
// A case is [kind, locale, options, value, result]. The kinds are "date" and the methods of
// Date, whose value is in milliseconds, "number", "bigint" and "string", whose value is text,
// "resolvedDate" and "resolvedNumber", and "plural", "list" and "relative". The result is that of formatToParts as a text with
// the types, what a method gives, or the options; of an error it is the name.

const { DateTimeFormat, NumberFormat } = Intl;
const cases = [];
const add = (kind, locale, options, value, run) => {
  let result;
  try {
    result = run();
  } catch (error) {
    result = { error: error.name };
  }
  cases.push([kind, locale, options, value, result]);
};
const compact = (parts) => parts.map(({ type, value }) => (type === "literal" ? value : `{${type} ${value}}`)).join("");
const dateCase = (locale, options, time) => {
  add("date", locale, options, time, () => compact(new DateTimeFormat(locale, options).formatToParts(time)));
  if (cases.length % 2 === 0) return;
  const method = ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"][cases.length % 3];
  add(method, locale, options, time, () => new Date(time)[method](locale, options));
};
const resolved = (kind, locale, options) => add(kind, locale, options, null, () => {
  const all = (kind === "resolvedDate" ? new DateTimeFormat(locale, options) : new NumberFormat(locale, options)).resolvedOptions();
  return all;
});

let seed = 20;
const random = () => (seed = (seed * 1664525 + 1013904223) >>> 0) / 2 ** 32;
const pick = (all) => all[Math.floor(random() * all.length)];
const locales = ["en-US", "en-GB", "en"];

// Around the changes of offset: gaps, folds, half hours, a day that was left out.
const changes = {
  "Europe/Berlin": ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "1980-04-06T01:00:00Z", "2100-03-28T01:00:00Z"],
  "Europe/London": ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"],
  "America/New_York": ["2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z", "1974-01-06T07:00:00Z"],
  "America/Los_Angeles": ["2026-03-08T10:00:00Z", "2026-11-01T09:00:00Z", "2060-11-07T09:00:00Z"],
  "America/St_Johns": ["2026-03-08T05:30:00Z", "2006-10-29T02:31:00Z"],
  "America/Sao_Paulo": ["2018-11-04T03:00:00Z", "2019-02-17T02:00:00Z"],
  "Australia/Lord_Howe": ["2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"],
  "Australia/Sydney": ["2026-04-04T16:00:00Z", "2026-10-03T16:00:00Z"],
  "Pacific/Apia": ["2011-12-30T10:00:00Z"],
  "Africa/Cairo": ["2026-04-23T22:00:00Z", "2026-10-29T21:00:00Z"],
  "Africa/Casablanca": ["2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z"],
  "Asia/Kathmandu": ["1985-12-31T18:30:00Z"],
  "Asia/Tehran": ["2022-09-21T19:30:00Z"],
  "Asia/Tokyo": ["2026-01-01T00:00:00Z"],
  "Europe/Dublin": ["2026-03-29T01:00:00Z"],
  "Pacific/Chatham": ["2026-04-04T14:00:00Z"],
  "UTC": ["2026-01-01T00:00:00Z", "2000-02-29T23:59:59Z"],
};
const offsets = { hour: "numeric", minute: "2-digit", second: "2-digit", year: "numeric", month: "2-digit", day: "2-digit", hourCycle: "h23", timeZoneName: "longOffset" };
for (const [timeZone, instants] of Object.entries(changes)) {
  for (const instant of instants) for (const late of [-1, 0, 1_800_000]) dateCase("en-US", { ...offsets, timeZone }, Date.parse(instant) + late);
}
// Every style, cycle and name.
const styles = ["full", "long", "medium", "short", undefined];
for (const locale of ["en-US", "en-GB"]) {
  for (const dateStyle of styles) for (const timeStyle of styles) {
    if (dateStyle || timeStyle) dateCase(locale, { dateStyle, timeStyle, timeZone: pick(["America/New_York", "Europe/Berlin", "UTC", "Asia/Kolkata"]) }, 1_770_131_045_678);
  }
  for (const hourCycle of ["h11", "h12", "h23"]) for (const time of [0, 43_200_000, 47_100_000]) dateCase(locale, { hour: "numeric", minute: "2-digit", hourCycle }, time);
  for (const hour12 of [true, false]) for (const time of [0, 43_200_000]) dateCase(locale, { hour: "numeric", minute: "numeric", hour12 }, time);
  for (const timeZoneName of ["short", "long", "shortOffset", "longOffset"]) {
    for (const timeZone of ["UTC", "GMT", "Europe/London", "Europe/Berlin", "Europe/Athens", "Europe/Lisbon", "Europe/Dublin", "America/Chicago", "America/Denver", "America/Phoenix",
      "America/Anchorage", "Pacific/Honolulu", "America/Adak", "America/Halifax", "America/Havana", "America/Toronto", "Asia/Kolkata", "Asia/Shanghai", "Asia/Manila", "Asia/Jerusalem",
      "Asia/Tokyo", "Asia/Dubai", "Australia/Perth", "Etc/GMT+5", "Asia/Singapore"]) {
      for (const time of [Date.UTC(2026, 0, 15), Date.UTC(2026, 6, 15)]) {
        if (timeZoneName === "long" && timeZone === "Asia/Singapore") continue; // not supported
        dateCase(locale, { year: "numeric", timeZoneName, timeZone }, time);
      }
    }
  }
}
// The ends of time, and years before the first.
for (const time of [-8.64e15, 8.64e15, -62_135_596_800_000, -62_135_596_800_001, -6e13, -1e14, 4e12, 12e12, -3e12, -1, 0]) {
  for (const timeZone of ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]) {
    dateCase(pick(locales), { dateStyle: "medium", timeStyle: "medium", timeZone }, time);
    dateCase(pick(locales), { year: pick(["numeric", "2-digit"]), month: "long", day: "numeric", era: pick(["short", "long", "narrow"]), timeZone }, time);
  }
}
// Fields in many combinations.
const widths = { month: ["numeric", "2-digit", "short", "long", "narrow"], weekday: ["short", "long", "narrow"] };
while (cases.length < 1500) {
  const options = {};
  for (const field of ["year", "month", "day", "weekday", "hour", "minute", "second"]) {
    if (random() < 0.6) options[field] = pick(widths[field] ?? ["numeric", "2-digit"]);
  }
  if (random() < 0.2) options.timeZoneName = pick(["short", "shortOffset", "longOffset"]);
  if (random() < 0.2 && options.minute && options.second) options.fractionalSecondDigits = pick([1, 2, 3]);
  if (random() < 0.2) options.hourCycle = pick(["h11", "h12", "h23"]);
  const { year, month, day, weekday, hour, minute, second } = options;
  if ((weekday && (month || year) && !(month && day)) || (year && day && !month)) continue; // not supported
  if (second && !minute && (hour || year || month || day || weekday)) continue; // not supported
  options.timeZone = pick(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]);
  dateCase(pick(locales), options, Math.floor(random() * 4e12));
  if (random() < 0.2) resolved("resolvedDate", pick(locales), { ...options, timeZone: "Europe/Berlin" });
}
for (const [locale, options, time] of [["en", {}, NaN], ["en", { timeZone: "Nowhere/At_All" }, 0], ["en", { timeZone: "" }, 0], ["en", { hourCycle: "h13" }, 0], ["x", {}, 0], ["en", { dateStyle: "full", year: "numeric" }, 0], ["en", { fractionalSecondDigits: 4 }, 0]]) {
  dateCase(locale, options, time);
}
dateCase("en", { timeZone: "eUROPE/bERLIN", timeZoneName: "short" }, 0);

// Numbers: each option with the values at which it matters.
const numberCase = (locale, options, value) => {
  const kind = typeof value;
  add(kind, locale, options, Object.is(value, -0) ? "-0" : String(value), () => compact(new NumberFormat(locale, options).formatToParts(value)));
};
const values = [0, -0, 1, -1, 0.5, -0.5, 1.5, 2.5, 0.05, 1.005, 1.255, 999.995, 999_999.5, 1234.5678, -1234.5678, 1e21, 1e-7, 123_456_789, 0.1, 5e-324, 1.7976931348623157e308, NaN, Infinity, -Infinity,
  9_007_199_254_740_993n, -12_345n, "12345678901234567890.123456789", "0.000000000000000000005", "-1e3", "0x1F", ""];
const sets = [{}, { maximumFractionDigits: 0 }, { maximumFractionDigits: 2 }, { minimumFractionDigits: 2 }, { minimumFractionDigits: 1, maximumFractionDigits: 20 }, { minimumIntegerDigits: 4 },
  { maximumSignificantDigits: 3 }, { minimumSignificantDigits: 5 }, { minimumSignificantDigits: 2, maximumSignificantDigits: 4 }, { useGrouping: false }, { useGrouping: "min2" }, { useGrouping: "always" },
  { style: "percent" }, { style: "percent", maximumFractionDigits: 1 }, { style: "currency", currency: "USD" }, { style: "currency", currency: "eur", currencyDisplay: "code" }, { style: "currency", currency: "JPY" },
  { style: "currency", currency: "CHF" }, { style: "currency", currency: "KWD", currencySign: "accounting" }, { style: "currency", currency: "CAD", currencyDisplay: "narrowSymbol" }, { style: "currency", currency: "XOF", maximumFractionDigits: 2 },
  { style: "currency", currency: "USD", currencySign: "accounting", signDisplay: "always" }, { notation: "compact" }, { notation: "compact", compactDisplay: "long" }, { notation: "compact", maximumFractionDigits: 1 },
  { notation: "compact", style: "currency", currency: "GBP" }, { notation: "scientific" }, { notation: "engineering", maximumFractionDigits: 1 }, { signDisplay: "always" }, { signDisplay: "never" }, { signDisplay: "exceptZero" },
  { signDisplay: "negative" }, { trailingZeroDisplay: "stripIfInteger", minimumFractionDigits: 2 }, { roundingPriority: "morePrecision", maximumFractionDigits: 1, maximumSignificantDigits: 3 },
  { roundingPriority: "lessPrecision", maximumFractionDigits: 1, maximumSignificantDigits: 3 },
  ...["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"].map((roundingMode) => ({ roundingMode, maximumFractionDigits: 1 }))];
for (const options of sets) {
  for (const value of values) numberCase(pick(locales), options, value);
  if (!options.trailingZeroDisplay && !options.roundingPriority) resolved("resolvedNumber", pick(locales), options);
}
for (const currency of ["USD", "EUR", "GBP", "JPY", "INR", "CNY", "AUD", "CAD", "BRL", "MXN", "KRW", "VND", "ILS", "TWD", "XAF", "XPF", "PLN", "CZK", "SEK", "NOK", "TRY", "UAH", "ZAR", "BHD", "CLP", "HUF", "ISK", "ZZZ"]) {
  for (const locale of ["en-US", "en-GB"]) for (const currencyDisplay of ["symbol", "narrowSymbol"]) numberCase(locale, { style: "currency", currency, currencyDisplay }, -1234.5);
}
for (const options of [{ style: "currency" }, { style: "currency", currency: "x" }, { maximumFractionDigits: -1 }, { minimumFractionDigits: 3, maximumFractionDigits: 1 }, { style: "none" }, { notation: "x" }]) numberCase("en", options, 1);
// Words: plural rules, lists and relative times.
for (const options of [{}, { type: "ordinal" }, { minimumFractionDigits: 1 }, { maximumFractionDigits: 0 }, { maximumSignificantDigits: 1 }]) {
  for (const value of [0, 1, 2, 3, 4, 11, 12, 13, 21, 101, 111, -1, 1.4, 1.5, 0.9]) add("plural", "en", options, value, () => new Intl.PluralRules("en", options).select(value));
}
for (const locale of ["en", "en-GB"]) for (const style of ["long", "short", "narrow"]) {
  for (const type of ["conjunction", "disjunction", "unit"]) {
    for (const list of [[], ["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]]) add("list", locale, { type, style }, list, () => compact(new Intl.ListFormat(locale, { type, style }).formatToParts(list)));
  }
  for (const numeric of ["always", "auto"]) for (const unit of ["second", "minutes", "hour", "days", "week", "month", "quarter", "years"]) {
    for (const value of [-1234.5, -1, 0, 1, 2]) add("relative", locale, { style, numeric }, [value, unit], () => new Intl.RelativeTimeFormat(locale, { style, numeric }).formatToParts(value, unit));
  }
}
process.stdout.write(`[\n${cases.map((one) => JSON.stringify(one)).join(",\n")}\n]\n`);
