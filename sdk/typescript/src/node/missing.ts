// Modules of Node.js that handlers do not have. A package may import one of them and never use it.

const common: any = Function.prototype;

/**
 * Returns a function that stands for a module, or for a member of one. Each of its members is such a function too, and
 * all of them throw when they are called or constructed.
 */
export function missing(path: string): any {
  function refuse(): never {
    throw Object.assign(
      new Error(`${path} is not available: handlers run without Node.js, and this needs its module ${path.split(".")[0]}`),
      { code: "ERR_METHOD_NOT_IMPLEMENTED" },
    );
  }
  // The members are in the prototype: the bundler makes the namespace of an import an object with that prototype.
  const members: Record<string, unknown> = {};
  return Object.setPrototypeOf(
    refuse,
    new Proxy(members, {
      get(_target, key) {
        if (typeof key === "symbol" || key in common) return common[key];
        if (key === "then" || key === "__esModule" || key === "toJSON") return undefined;
        return (members[key] ??= missing(`${path}.${key}`));
      },
      has: (_target, key) => typeof key === "string",
    }),
  );
}

/** node:module. Packages make a function require when they are loaded, and may never call it. */
export const nodeModule: any = Object.assign(missing("module"), {
  builtinModules: [],
  isBuiltin: () => false,
  createRequire: () => (name: string) => {
    throw Object.assign(new Error(`Cannot find module '${name}': in a handler, a function of createRequire finds none`), { code: "MODULE_NOT_FOUND" });
  },
});
