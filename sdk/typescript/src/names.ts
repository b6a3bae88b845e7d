// The names and lengths of global functions, as the standards define them. They differ here, because the
// build shortens the names in this script, and optional parameters of TypeScript count.

// The lengths that differ from the number of parameters here.
const lengths: Record<string, number> = {
  "String.prototype.localeCompare": 1,
  "console.dir": 0,
  "console.table": 0,
  "console.assert": 0,
  structuredClone: 1,
  URL: 1,
  "URL.canParse": 1,
  "URL.parse": 1,
  "URLSearchParams.prototype.delete": 1,
  "URLSearchParams.prototype.has": 1,
  "URLSearchParams.prototype.forEach": 1,
  "TextDecoder.prototype.decode": 0,
  CryptoKey: 0,
  setTimeout: 1,
  setInterval: 1,
  clearTimeout: 0,
  clearInterval: 0,
  "MessagePort.prototype.postMessage": 1,
  "FormData.prototype.append": 2,
  "FormData.prototype.set": 2,
  "Blob.prototype.slice": 0,
  "AbortController.prototype.abort": 0,
  AbortSignal: 0,
  "AbortSignal.abort": 0,
  "Intl.Collator": 0,
  "Intl.DateTimeFormat": 0,
  "Intl.DateTimeFormat.prototype.formatRange": 2,
  "Intl.DateTimeFormat.prototype.formatRangeToParts": 2,
  "Intl.NumberFormat": 0,
  "Intl.NumberFormat.prototype.formatRange": 2,
  "Intl.NumberFormat.prototype.formatRangeToParts": 2,
  "Intl.PluralRules": 0,
  "Intl.PluralRules.prototype.selectRange": 2,
  "Intl.ListFormat": 0,
  "Intl.ListFormat.prototype.formatToParts": 1,
  "Intl.RelativeTimeFormat": 0,
};

const { defineProperty, getOwnPropertyDescriptor } = Object;

/** Names a function, and the methods of a class or an object with functions. */
export function standardize(path: string, value: unknown): void {
  if (typeof value === "function") {
    const name = path.slice(path.lastIndexOf(".") + 1);
    if (value.name !== name) defineProperty(value, "name", { value: name, configurable: true });
    const length = lengths[path];
    if (length !== undefined) defineProperty(value, "length", { value: length, configurable: true });
    if (value.prototype !== undefined) standardize(`${path}.prototype`, value.prototype);
  }
  if ((typeof value !== "function" && typeof value !== "object") || value === null) return;
  for (const key of Object.getOwnPropertyNames(value)) {
    const member = getOwnPropertyDescriptor(value, key)?.value;
    if (key !== "constructor" && key !== "prototype" && (typeof member === "function" || path === "crypto")) standardize(`${path}.${key}`, member);
  }
}
