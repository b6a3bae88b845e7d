// structuredClone (HTML, 2.7) of what lives in one program.

import { define } from "./console.ts";

export function installClone(): void {
  define("structuredClone", (value: unknown, options?: { transfer?: ArrayBuffer[] }) => {
    const seen = new Map<object, object>();
    const moved = new Set(options?.transfer ?? []);
    for (const buffer of moved) {
      if (!(buffer instanceof ArrayBuffer) || buffer.detached) throw new TypeError("structuredClone: only an ArrayBuffer that was not transferred can be transferred");
    }
    for (const buffer of moved) seen.set(buffer, buffer.slice(0));
    const copy = clone(value, seen);
    for (const buffer of moved) buffer.transfer(); // what could not be cloned moves nothing
    return copy;
  });
}

function clone(value: any, seen: Map<object, object>): any {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new TypeError(`structuredClone: a ${typeof value} cannot be cloned`);
  }
  if (typeof value !== "object" || value === null) return value;
  const known = seen.get(value);
  if (known) return known;
  const keep = <T extends object>(copy: T): T => {
    seen.set(value, copy);
    return copy;
  };
  if (Array.isArray(value)) {
    const copy = keep(new Array(value.length));
    for (const key of Object.keys(value)) copy[key as any] = clone(value[key as any], seen);
    return copy;
  }
  if (value instanceof Date) return keep(new Date(value.getTime()));
  if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
  if (value instanceof Map) {
    const copy = keep(new Map());
    for (const [k, v] of value) copy.set(clone(k, seen), clone(v, seen));
    return copy;
  }
  if (value instanceof Set) {
    const copy = keep(new Set());
    for (const v of value) copy.add(clone(v, seen));
    return copy;
  }
  if (value instanceof ArrayBuffer) return keep(value.slice(0));
  if (ArrayBuffer.isView(value)) {
    const buffer = clone(value.buffer, seen);
    const length = value instanceof DataView ? value.byteLength : (value as any).length;
    return keep(new (value.constructor as any)(buffer, value.byteOffset, length));
  }
  if (value instanceof Boolean || value instanceof Number || value instanceof String) return keep(Object(value.valueOf()));
  if (value instanceof Error) {
    const copy = keep(Object.create(Object.getPrototypeOf(value)));
    for (const key of ["name", "message", "stack", "cause"]) {
      if (Object.hasOwn(value, key)) {
        Object.defineProperty(copy, key, { value: clone((value as any)[key], seen), writable: true, configurable: true });
      }
    }
    return copy;
  }
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
    throw new TypeError(`structuredClone: a ${value.constructor.name} cannot be cloned`);
  }
  const copy: Record<string, unknown> = keep({});
  for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
  return copy;
}
