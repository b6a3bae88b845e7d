// Defines globals with the names, lengths and attributes of the standards. Those of the sources differ, because
// the build shortens the names in this script, optional parameters of TypeScript count, and members of classes
// are not enumerable.

import { type Runner } from "../host.ts";

const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames, hasOwn } = Object;

// One for all scripts (lengths.ts). What has a prototype of interfaces cannot be cloned unless its class says how.
const { interfaces, lengths } = (globalThis as unknown as { __runner: Runner }).__runner;

/** Defines a global with the attributes that globals of the language have. */
export function define(name: string, value: unknown): void {
  if (value !== globalThis) standardize(name, value);
  defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

/**
 * Makes the class an interface with that name (Web IDL, 3.7): its members are enumerable, it has a
 * Symbol.toStringTag, and constants if there are any. Attributes must be accessors and brand-checked, which a
 * private field does. The constructor is a global unless hidden.
 */
export function expose(name: string, made: new (...args: any[]) => object, constants: Record<string, number> = {}, hidden = false): void {
  standardize(name, made);
  const { prototype } = made;
  interfaces.add(prototype);
  for (const of of [made, prototype]) {
    for (const key of getOwnPropertyNames(of)) {
      if (key === "constructor" || key === "prototype" || (of === made && (key === "name" || key === "length"))) continue;
      const found = getOwnPropertyDescriptor(of, key)!;
      if (found.configurable) defineProperty(of, key, { ...found, enumerable: true });
    }
    for (const [key, value] of Object.entries(constants)) defineProperty(of, key, { value, enumerable: true, writable: false, configurable: false });
  }
  if (!hasOwn(prototype, Symbol.toStringTag)) defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
  if (!hidden) define(name, made);
}

/** Names a function, and the methods and accessors of a class or an object with functions. */
export function standardize(path: string, value: unknown): void {
  if (typeof value === "function") {
    const name = path.slice(path.lastIndexOf(".") + 1);
    if (value.name !== name) defineProperty(value, "name", { value: name, configurable: true });
    const length = lengths[path];
    if (length !== undefined) defineProperty(value, "length", { value: length, configurable: true });
    if (value.prototype !== undefined) standardize(`${path}.prototype`, value.prototype);
  }
  if ((typeof value !== "function" && typeof value !== "object") || value === null) return;
  for (const key of getOwnPropertyNames(value)) {
    const member = getOwnPropertyDescriptor(value, key)?.value;
    if (key !== "constructor" && key !== "prototype" && typeof member === "function") standardize(`${path}.${key}`, member);
  }
}
