// The variables of the schema, with the values that this node has for them.

import { result, run, runner } from "./host.ts";

// Empty while the module is built: each request reads again what it uses.
const known: Record<string, unknown> = Object.create(null);

export const vars: Record<string, unknown> = new Proxy(Object.freeze(Object.create(null)), {
  get(_, name) {
    if (typeof name !== "string") return undefined;
    if (!(name in known)) {
      runner.demand(`vars.${name}`);
      run("var", { name });
      known[name] = result().value;
    }
    return known[name];
  },
});
