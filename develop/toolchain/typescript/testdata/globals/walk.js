// Lists the functions among the globals: the name and the length of each by its path. It runs in
// a handler and in Node.js, and walks what both have.

const places = {
  "%Iterator%": () => Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())),
  "%ArrayIterator%": () => Object.getPrototypeOf([][Symbol.iterator]()),
  "%MapIterator%": () => Object.getPrototypeOf(new Map().entries()),
  "%SetIterator%": () => Object.getPrototypeOf(new Set().values()),
  "%StringIterator%": () => Object.getPrototypeOf(""[Symbol.iterator]()),
  "%RegExpStringIterator%": () => Object.getPrototypeOf("".matchAll(/a/g)),
  "%GeneratorFunction%": () => Object.getPrototypeOf(function* () {}),
  "%AsyncGeneratorFunction%": () => Object.getPrototypeOf(async function* () {}),
  "%AsyncFunction%": () => Object.getPrototypeOf(async () => {}),
  "%TypedArray%": () => Object.getPrototypeOf(Uint8Array),
};

export function list() {
  const seen = new Set();
  const found = {};
  const add = (path, value) => {
    if (typeof value === "function") found[path] = [value.name, value.length];
  };
  const walk = (path, object) => {
    if (seen.has(object)) return;
    seen.add(object);
    for (const key of Reflect.ownKeys(object)) {
      const at = (path && `${path}.`) + (typeof key === "symbol" ? `[${key.description}]` : key);
      const { get, set, value } = Object.getOwnPropertyDescriptor(object, key);
      add(`get ${at}`, get);
      add(`set ${at}`, set);
      if ((typeof value !== "function" && typeof value !== "object") || value === null) continue;
      add(at, value);
      if (key !== "constructor") walk(at, value);
    }
  };
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (/^(globalThis|self|global|process|navigator|[a-z_$]\d*)$/.test(name)) continue;
    const value = globalThis[name];
    add(name, value);
    if ((typeof value === "function" || typeof value === "object") && value !== null) walk(name, value);
  }
  for (const [name, of] of Object.entries({ crypto, subtle: crypto.subtle, performance })) {
    for (let at = of; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      for (const key of Object.getOwnPropertyNames(at)) if (key !== "constructor" && typeof of[key] === "function") add(`(${name}).${key}`, of[key]);
    }
  }
  for (const [name, of] of Object.entries(places)) walk(name, of());
  return found;
}
