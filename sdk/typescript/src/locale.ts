// What takes a language or options and would need Intl for them. The build adds Intl to a
// module whose sources mention it or toLocaleString; here is what others can reach.

import { standardize } from "./web/define.ts";

export function installLocale(): void {
  for (const prototype of [Number.prototype, BigInt.prototype, Date.prototype]) {
    for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) {
      if (name in prototype) refuse(prototype, name, -1, `${name} needs Intl, which this module has not: call it by its name, so that the build adds Intl`);
    }
  }
  refuse(String.prototype, "localeCompare", 1, "localeCompare has no locale and options in this module: call it by its name, so that the build adds them");
  for (const name of ["toLocaleLowerCase", "toLocaleUpperCase"]) refuse(String.prototype, name, 0, `${name} does not support a locale: use a package`);
}

/** Limits the arguments of a built-in method to the first ones; -1: the method cannot be called. */
function refuse(prototype: any, name: string, arity: number, reason: string): void {
  const method = prototype[name];
  const { [name]: refusing } = {
    [name](this: unknown, ...args: unknown[]): unknown {
      if (arity < 0 || args.slice(arity).some((arg) => arg !== undefined)) throw new TypeError(reason);
      return Reflect.apply(method, this, args);
    },
  };
  if (name === "localeCompare") standardize(`String.prototype.${name}`, refusing);
  Object.defineProperty(prototype, name, { value: refusing, writable: true, configurable: true, enumerable: false });
}
