// console writes to the server's log, under the request's id.

import { type Runner } from "../host.ts";
import { define } from "./define.ts";

export function installConsole(runner: Runner): void {
  let indent = "";
  const write = (level: number, values: unknown[]) => runner.host.log(level, indent + format(values, runner));
  const level =
    (n: number) =>
    (...values: unknown[]) =>
      write(n, values);
  const counts = new Map<string, number>();
  const clocks = new Map<string, number>();
  const group = () => (...values: unknown[]) => {
    if (values.length > 0) write(1, values);
    indent += "  ";
  };
  const since = (label: string, more: unknown[], over: boolean) => {
    const began = clocks.get(label);
    if (began === undefined) return write(2, [`timer ${label} does not exist: start it with console.time`]);
    write(1, [`${label}: ${(performance.now() - began).toFixed(3)} ms`, ...more]);
    if (over) clocks.delete(label);
  };
  const methods = {
    debug: level(0),
    log: level(1),
    info: level(1),
    dir: (value: unknown) => write(1, [value]),
    dirxml: level(1),
    clear: () => {}, // the log cannot be cleared
    table: (value: unknown) => write(1, [value]),
    warn: level(2),
    error: level(3),
    group: group(),
    groupCollapsed: group(),
    groupEnd: () => {
      indent = indent.slice(2);
    },
    trace: (...values: unknown[]) => {
      const error = new Error(format(values, runner));
      error.name = "trace";
      runner.host.log(0, indent + runner.trace(error));
    },
    assert: (holds?: unknown, ...values: unknown[]) => {
      if (!holds) write(3, values.length > 0 ? ["assertion failed:", ...values] : ["assertion failed"]);
    },
    count: (label: unknown = "default") => {
      const n = (counts.get(String(label)) ?? 0) + 1;
      counts.set(String(label), n);
      write(1, [`${label}: ${n}`]);
    },
    countReset: (label: unknown = "default") => void counts.delete(String(label)),
    time: (label: unknown = "default") => void clocks.set(String(label), performance.now()),
    timeLog: (label: unknown = "default", ...more: unknown[]) => since(String(label), more, false),
    timeEnd: (label: unknown = "default") => since(String(label), [], true),
  };
  // A namespace object (Console Standard, 2): between it and Object.prototype there is an empty object.
  define("console", Object.defineProperty(Object.assign(Object.create({}), methods), Symbol.toStringTag, { value: "console", configurable: true }));
}

/** The values in a line, with %s and the like in the first one replaced (Console Standard, 2.2). */
function format(values: unknown[], runner: Runner): string {
  const [first, ...rest] = values;
  let text = show(first, runner);
  if (values.length === 0) return "";
  if (typeof first === "string" && rest.length > 0 && first.includes("%")) {
    text = first.replace(/%[sdifoOjc%]/g, (what) => {
      if (what === "%%") return "%";
      if (rest.length === 0) return what;
      const value = rest.shift();
      switch (what) {
        case "%c":
          return ""; // a style
        case "%d":
        case "%i":
        case "%f": {
          if (typeof value === "bigint") return `${value}n`;
          const n = typeof value === "object" || typeof value === "symbol" ? NaN : Number(value);
          return String(what === "%i" ? Math.trunc(n) : n);
        }
        default:
          return show(value, runner);
      }
    });
  }
  for (const value of rest) text += ` ${show(value, runner)}`;
  return text;
}

function show(value: unknown, runner: Runner): string {
  if (typeof value === "string") return value;
  try {
    return inspect(value, runner, []);
  } catch {
    return "[what throws when it is looked at]";
  }
}

// The most items of a list, and the most values in one call, that are shown.
const mostItems = 100;
const mostValues = 1000;

function inspect(value: unknown, runner: Runner, above: unknown[], count = { left: mostValues }): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "bigint":
      return `${value}n`;
    case "function":
      return `[function ${value.name || "without a name"}]`;
    case "object":
      break;
    default:
      return String(value);
  }
  if (value === null) return "null";
  if (value instanceof Error) return runner.trace(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Promise) return "[promise]";
  if (above.includes(value)) return "[circular]";
  if (above.length >= 6 || count.left-- <= 0) return "…";
  const inner = (v: unknown) => inspect(v, runner, [...above, value], count);
  const some = <T>(items: T[], tell: (item: T) => string) =>
    items.slice(0, mostItems).map(tell).join(", ") + (items.length > mostItems ? `, … ${items.length - mostItems} more` : "");
  if (Array.isArray(value)) return `[${some(value, inner)}]`;
  if (ArrayBuffer.isView(value)) return `${value.constructor.name}(${value.byteLength})`;
  if (value instanceof ArrayBuffer) return `ArrayBuffer(${value.byteLength})`;
  if (value instanceof Map) return `Map {${some([...value], ([k, v]) => `${inner(k)} => ${inner(v)}`)}}`;
  if (value instanceof Set) return `Set {${some([...value], inner)}}`;
  const name = value.constructor?.name;
  const members = some(Object.entries(value), ([k, v]) => `${/^[A-Za-z_$][\w$]*$/.test(k) ? k : JSON.stringify(k)}: ${inner(v)}`);
  return `${name && name !== "Object" ? `${name} ` : ""}{${members}}`;
}
