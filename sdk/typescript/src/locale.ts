// What takes a language or options and would need Intl for them, which the engine has
// not: it would leave them aside, and give something else than was asked for.

export function installLocale(): void {
  refuse(Number.prototype, "toLocaleString", 0);
  refuse(BigInt.prototype, "toLocaleString", 0);
  refuse(Array.prototype, "toLocaleString", 0);
  for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) refuse(Date.prototype, name, 0);
  refuse(String.prototype, "localeCompare", 1);
  for (const name of ["toLocaleLowerCase", "toLocaleUpperCase"]) refuse(String.prototype, name, 0);
}

/** Lets a method of the language have the first arguments alone. */
function refuse(prototype: any, name: string, arity: number): void {
  const method = prototype[name];
  const { [name]: refusing } = {
    [name](this: unknown, ...args: unknown[]): unknown {
      for (let i = arity; i < args.length; i++) {
        if (args[i] === undefined) continue;
        throw new TypeError(`${name} does not support a locale or options: Intl does not exist here; use a package`);
      }
      return Reflect.apply(method, this, args.slice(0, arity));
    },
  };
  Object.defineProperty(prototype, name, { value: refusing, writable: true, configurable: true, enumerable: false });
}
