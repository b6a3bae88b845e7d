// The script that is evaluated after runtime.ts if the handlers' sources mention Intl or
// toLocaleString. It is a script of its own, so that other modules do not have it.

import { define } from "./web/define.ts";
import { runner } from "./host.ts";
import { installDates } from "./intldate.ts";
import { installNumbers } from "./intlnumber.ts";
import { callable, canonicalLocales } from "./intloptions.ts";
import { words } from "./intlwords.ts";

const Intl = {};
for (const [name, value] of Object.entries({
  ...(runner.Collator === undefined ? {} : { Collator: callable(runner.Collator as new () => object) }),
  DateTimeFormat: installDates(),
  NumberFormat: installNumbers(),
  ...words,
  getCanonicalLocales: (locales?: unknown): string[] => canonicalLocales(locales),
})) {
  Object.defineProperty(Intl, name, { value, writable: true, configurable: true, enumerable: false });
}
Object.defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });
define("Intl", Intl);

// A list has its elements in the language that it is given.
for (const prototype of [Array.prototype, Object.getPrototypeOf(Uint8Array.prototype)]) {
  const value = {
    toLocaleString(this: ArrayLike<any>, locales?: unknown, options?: unknown): string {
      return Array.prototype.map.call(this, (element: any) => element?.toLocaleString(locales, options) ?? "").join(",");
    },
  }.toLocaleString;
  Object.defineProperty(value, "length", { value: 0, configurable: true });
  Object.defineProperty(prototype, "toLocaleString", { value, writable: true, configurable: true, enumerable: false });
}
