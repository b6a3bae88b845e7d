// Values as text: for messages, differences and snapshots.

/** A value that stands for several, as expect.any(Number). */
export abstract class Asymmetric {
  abstract matches(value: unknown): boolean;
  abstract readonly text: string;
}

const name = /^[A-Za-z_$][\w$]*$/;
const mostBrief = 100; // characters

/** The value on as many lines as it has parts, members in the order of their names. */
export const print = (value: unknown): string => show(value, "\n", []);

/** The value on one line, shortened. */
export function brief(value: unknown): string {
  const text = show(value, "", []);
  return text.length > mostBrief ? `${text.slice(0, mostBrief)}…` : text;
}

/** pad begins each line of parts; empty: all is on one line. */
function show(value: any, pad: string, above: unknown[]): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
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
  if (value instanceof Asymmetric) return value.text;
  if (above.includes(value)) return "[circular]";
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Error) return `[${Error.prototype.toString.call(value)}]`;
  if (value instanceof URL) return `URL ${JSON.stringify(value.href)}`;
  if (value instanceof Response) return `Response { status: ${value.status} }`;
  if (value instanceof Request) return `Request { ${value.method} ${JSON.stringify(value.url)} }`;
  if (value instanceof Promise) return "[promise]";
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return `${value.constructor.name} ${show(value.valueOf(), "", [])}`;
  const inside = [...above, value];
  const deeper = pad === "" ? "" : `${pad}  `;
  const inner = (part: unknown) => show(part, deeper, inside);
  const list = (before: string, parts: string[], after: string) => {
    if (parts.length === 0) return before + after;
    const space = /[{]$/.test(before) ? " " : "";
    return pad === "" ? before + space + parts.join(", ") + space + after : before + deeper + parts.join(`,${deeper}`) + `,${pad}${after}`;
  };
  const made = Object.getPrototypeOf(value)?.constructor?.name;
  if (Array.isArray(value)) return list(made === "Array" || !made ? "[" : `${made} [`, Array.from(value, inner), "]");
  if (value instanceof ArrayBuffer) return list("ArrayBuffer [", Array.from(new Uint8Array(value), String), "]");
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return list(`${made} [`, Array.from(value as unknown as number[], inner), "]");
  if (value instanceof Map) return list("Map {", Array.from(value, ([k, v]) => `${inner(k)} => ${inner(v)}`), "}");
  if (value instanceof Set) return list("Set {", Array.from(value, inner), "}");
  if (value instanceof Headers || value instanceof URLSearchParams) return list(`${made} {`, Array.from(value as Iterable<[string, string]>, ([k, v]) => `${JSON.stringify(k)}: ${JSON.stringify(v)}`), "}");
  const members = keysOf(value)
    .sort((a, b) => (String(a) < String(b) ? -1 : 1))
    .map((key) => `${typeof key === "symbol" ? `[${String(key)}]` : name.test(key) ? key : JSON.stringify(key)}: ${inner(value[key])}`);
  return list(made && made !== "Object" ? `${made} {` : "{", members, "}");
}

/** The names of the members of an object that count. */
export function keysOf(value: object): (string | symbol)[] {
  const symbols = Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));
  return [...Object.keys(value), ...symbols];
}
