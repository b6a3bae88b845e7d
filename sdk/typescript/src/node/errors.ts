// Errors as Node.js has them: with a code.

type Made = new (message: string) => Error;

/** Returns an error with a code. */
export function coded(kind: Made, code: string, message: string): Error & { code: string } {
  return Object.assign(new kind(message), { code });
}

/** Returns the error for an argument of a wrong type. */
export function wrongType(name: string, wanted: string, value: unknown): Error {
  return coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be ${wanted}. Received ${received(value)}`);
}

/** Returns the error for a property of a wrong type. */
export function wrongProperty(name: string, wanted: string, value: unknown): Error {
  return coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" property must be ${wanted}. Received ${received(value)}`);
}

/** Returns the error for a number that is out of range. */
export function outOfRange(name: string, wanted: string, value: unknown): Error {
  return coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be ${wanted}. Received ${grouped(value)}`);
}

/** Throws unless the value is an integer in the range. */
export function needInteger(name: string, value: unknown, min: number, max: number): void {
  if (typeof value !== "number") throw wrongType(name, "of type number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
}

/** Throws unless the value is a function. */
export function needFunction(name: string, value: unknown): void {
  if (typeof value !== "function") throw wrongType(name, "of type function", value);
}

/** Throws unless the value is a string. */
export function needString(name: string, value: unknown): void {
  if (typeof value !== "string") throw wrongType(name, "of type string", value);
}

function received(value: any): string {
  if (value == null) return String(value);
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "object") return value.constructor?.name ? `an instance of ${value.constructor.name}` : "an object";
  const text = typeof value === "string" ? `'${value.length > 28 ? `${value.slice(0, 25)}...` : value}'` : typeof value === "bigint" ? `${value}n` : String(value);
  return `type ${typeof value} (${text})`;
}

/** A number with "_" between groups of three digits, if it is large. */
function grouped(value: unknown): string {
  if (typeof value === "bigint") return `${value > 2n ** 32n || value < -(2n ** 32n) ? groups(String(value)) : value}n`;
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) && Math.abs(value) > 2 ** 32 ? groups(String(value)) : String(value);
}

const groups = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, "_");
