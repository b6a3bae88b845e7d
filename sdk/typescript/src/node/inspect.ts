// util.inspect and util.format (Node.js, "util").

import types from "./types.ts";

export interface Options {
  depth?: number | null;
  breakLength?: number;
  compact?: boolean | number;
  showHidden?: boolean;
  maxArrayLength?: number | null;
  maxStringLength?: number | null;
  sorted?: boolean | ((a: string, b: string) => number);
  getters?: boolean | "get" | "set";
  numericSeparator?: boolean;
  customInspect?: boolean;
  colors?: boolean;
}

interface State extends Required<Options> {
  seen: unknown[];
  circular: Map<unknown, number>;
  indent: number;
  /** The level of the object that was shown last. */
  current: number;
  stylize: (text: string, style?: string) => string;
}

export const custom = Symbol.for("nodejs.util.inspect.custom");

const defaults: Options = {
  depth: 2, breakLength: 128, compact: 3, showHidden: false, maxArrayLength: 100, maxStringLength: 10000,
  sorted: false, getters: false, numericSeparator: false, customInspect: true, colors: false,
};

export function inspect(value: unknown, given?: Options | boolean, depth?: number | null): string {
  const options = typeof given === "boolean" ? { showHidden: given, ...(depth !== undefined ? { depth } : {}) } : given;
  const state = { ...defaults, breakLength: 80, ...options, seen: [], circular: new Map(), indent: 0, current: 0, stylize: (text: string) => text } as unknown as State;
  for (const name of ["maxArrayLength", "maxStringLength"] as const) state[name] ??= Infinity;
  return show(value, state, 0);
}
inspect.custom = custom;
inspect.defaultOptions = defaults;
inspect.colors = Object.create(null);
inspect.styles = Object.create(null);

const escapes: Record<string, string> = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\" };

function quote(text: string): string {
  const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") && !text.includes("${") ? "`" : "'";
  const inner = text.replace(/[\x00-\x1f\x7f-\x9f\\]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (c) => {
    const code = c.charCodeAt(0);
    return escapes[c] ?? (code > 255 ? `\\u${code.toString(16)}` : `\\x${code.toString(16).toUpperCase().padStart(2, "0")}`);
  });
  return mark + (mark === "'" ? inner.replaceAll("'", "\\'") : inner) + mark;
}

const number = (n: number): string => (Object.is(n, -0) ? "-0" : String(n));

function primitive(value: any, state: State): string {
  switch (typeof value) {
    case "string": {
      let text = value;
      const most = state.maxStringLength!;
      const more = text.length - most;
      if (more > 0) text = text.slice(0, most);
      const tail = more > 0 ? `... ${more} more character${more > 1 ? "s" : ""}` : "";
      if (state.compact !== true && text.length > 16 && text.length > state.breakLength - state.indent - 4) {
        return text.split(/(?<=\n)/).map(quote).join(` +\n${" ".repeat(state.indent + 2)}`) + tail;
      }
      return quote(text) + tail;
    }
    case "number":
      return number(value);
    case "bigint":
      return `${value}n`;
  }
  return String(value);
}

/** The name of the class: the constructor of the nearest prototype that has one. */
function className(value: object): string | null {
  for (let at: any = value, first = true; at !== null; at = Object.getPrototypeOf(at), first = false) {
    const made = Object.getOwnPropertyDescriptor(at, "constructor")?.value;
    if (typeof made === "function" && made.name !== "" && value instanceof made) return made.name;
    if (first && Object.getPrototypeOf(at) === null) return null;
  }
  return null;
}

const identifier = /^[a-zA-Z_][a-zA-Z_0-9]*$/;

function keyText(key: string | symbol): string {
  if (typeof key === "symbol") return `[${String(key)}]`;
  if (key === "__proto__") return "['__proto__']";
  return identifier.test(key) ? key : quote(key);
}

function show(value: any, state: State, level: number): string {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return primitive(value, state);
  const own = value[custom];
  if (state.customInspect && typeof own === "function" && own !== inspect) {
    const { seen, circular, indent, current, ...options } = state;
    const depth = state.depth === null ? null : state.depth! - level;
    const made = own.call(value, depth, { ...options, depth }, inspect);
    if (made !== value) return typeof made === "object" && made !== null ? show(made, state, level) : String(made).replaceAll("\n", `\n${" ".repeat(state.indent)}`);
  }
  if (state.seen.includes(value)) {
    let n = state.circular.get(value);
    if (n === undefined) state.circular.set(value, (n = state.circular.size + 1));
    return `[Circular *${n}]`;
  }
  return object(value, state, level);
}

function keysOf(value: object, state: State): (string | symbol)[] {
  if (state.showHidden) return Reflect.ownKeys(value);
  return [...Object.keys(value), ...Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key))];
}

/** How an object is shown: a prefix, such as the name of its class, and its parts in braces. */
interface Form {
  base: string;
  prefix: string;
  open: string;
  close: string;
  /** The parts that are not properties. */
  items: () => string[];
  keys: (string | symbol)[];
  list?: boolean;
}

const sizeOf = (kind: typeof Set | typeof Map, value: unknown): number => Object.getOwnPropertyDescriptor(kind.prototype, "size")!.get!.call(value);
const urlMembers = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "searchParams", "hash"] as const;

function object(value: any, state: State, level: number): string {
  const name = className(value);
  const tag = value[Symbol.toStringTag];
  const ownTag = state.showHidden ? Object.hasOwn(value, Symbol.toStringTag) : Object.prototype.propertyIsEnumerable.call(value, Symbol.toStringTag);
  const tagged = typeof tag === "string" && tag !== "" && tag !== name && !ownTag ? `[${tag}] ` : "";
  const title = (usual: string, size?: number) => {
    const shown = name === null ? `[${usual}${size === undefined ? "" : `(${size})`}: null prototype] ` : `${name}${size === undefined ? "" : `(${size})`} `;
    return shown + tagged;
  };
  const keys = keysOf(value, state);
  const inner = (v: unknown) => {
    state.indent += 2;
    try {
      return show(v, state, level + 1);
    } finally {
      state.indent -= 2;
    }
  };
  const f: Form = { base: "", prefix: "", open: "{", close: "}", items: () => [], keys };
  const some = <T>(all: Iterable<T>, size: number, tell: (one: T) => string): string[] => {
    const out: string[] = [];
    for (const one of all) {
      if (out.length >= state.maxArrayLength!) break;
      out.push(tell(one));
    }
    if (size > out.length) out.push(`... ${size - out.length} more item${size - out.length > 1 ? "s" : ""}`);
    return out;
  };
  const indexed = (key: string | symbol) => typeof key === "string" && /^(0|[1-9]\d*)$/.test(key) && Number(key) < 2 ** 32 - 1;
  if (Array.isArray(value)) {
    f.prefix = name === "Array" && tagged === "" ? "" : title("Array", value.length);
    [f.open, f.close, f.list] = ["[", "]", true];
    f.keys = keys.filter((key) => !indexed(key) && (state.showHidden || key !== "length"));
    if (value.length === 0 && f.keys.length === 0) return `${f.prefix}[]`;
    f.items = () => elements(value, state, inner);
  } else if (types.isSet(value)) {
    const size = sizeOf(Set, value); // its prototype may be another one
    f.prefix = title("Set", size);
    if (size === 0 && keys.length === 0) return `${f.prefix}{}`;
    f.items = () => some(Set.prototype.values.call(value), size, inner);
  } else if (types.isMap(value)) {
    const size = sizeOf(Map, value); // its prototype may be another one
    f.prefix = title("Map", size);
    if (size === 0 && keys.length === 0) return `${f.prefix}{}`;
    f.items = () => some(Map.prototype.entries.call(value), size, ([k, v]) => `${inner(k)} => ${inner(v)}`);
  } else if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    const typed = value as unknown as Uint8Array;
    f.prefix = title("TypedArray", typed.length);
    [f.open, f.close, f.list] = ["[", "]", true];
    f.keys = keys.filter((key) => !indexed(key));
    f.items = () => some(typed, typed.length, (n) => primitive(n, state));
  } else if (types.isArrayBuffer(value)) {
    f.prefix = title("ArrayBuffer");
    f.items = () => {
      const bytes = new Uint8Array(value);
      const hex = Array.from(bytes.subarray(0, 50), (b) => b.toString(16).padStart(2, "0")).join(" ");
      return [`[Uint8Contents]: <${hex}${bytes.length > 50 ? ` ... ${bytes.length - 50} more byte${bytes.length > 51 ? "s" : ""}` : ""}>`, `byteLength: ${bytes.length}`];
    };
  } else if (value instanceof DataView) {
    f.prefix = title("DataView");
    f.items = () => ["byteLength", "byteOffset", "buffer"].map((key) => `${key}: ${inner((value as any)[key])}`);
  } else if (value instanceof Promise) {
    f.prefix = title("Promise");
    f.items = () => ["<pending>"];
  } else if (value instanceof WeakMap || value instanceof WeakSet) {
    f.prefix = title("WeakMap");
    f.items = () => ["<items unknown>"];
  } else if (value instanceof URLSearchParams) {
    f.prefix = title("URLSearchParams");
    f.keys = [];
    f.items = () => Array.from(value, ([k, v]) => `${inner(k)} => ${inner(v)}`);
  } else if (value instanceof URL && keys.length === 0) {
    f.prefix = title("URL");
    f.items = () => urlMembers.map((key) => `${key}: ${inner(value[key])}`);
  } else if (Object.prototype.toString.call(value) === "[object Arguments]") {
    f.prefix = "[Arguments] ";
  } else {
    const base = baseOf(value, name, tagged, keys, state);
    if (base !== undefined) {
      f.keys = base.keys;
      if (f.keys.length === 0) return base.text;
      f.base = base.text;
    } else {
      f.prefix = name === "Object" && tagged === "" ? "" : title("Object");
      if (f.keys.length === 0) return `${f.prefix}{}`;
    }
  }
  if (state.depth !== null && level > state.depth!) {
    return `[${(name ?? `${Array.isArray(value) ? "Array" : "Object"}: null prototype`) + (tagged ? ` ${tagged.trim()}` : "")}]`;
  }
  state.seen.push(value);
  state.current = level;
  const parts = [...f.items(), ...f.keys.map((key) => property(value, key, state, level))];
  state.seen.pop();
  const circular = state.circular.get(value);
  if (circular !== undefined) f.base = `<ref *${circular}>${f.base && ` ${f.base}`}`;
  if (parts.length === 0) return `${f.base && `${f.base} `}${f.prefix}${f.open}${f.close}`;
  if (state.sorted && !f.list) parts.sort(typeof state.sorted === "function" ? state.sorted : undefined);
  return joined(parts, f, state, level, value);
}

function elements(value: unknown[], state: State, inner: (v: unknown) => string): string[] {
  const out: string[] = [];
  let i = 0;
  for (; i < value.length && out.length < state.maxArrayLength!; i++) {
    if (Object.hasOwn(value, i)) {
      out.push(inner(value[i]));
      continue;
    }
    const from = i;
    while (i + 1 < value.length && !Object.hasOwn(value, i + 1)) i++;
    out.push(`<${i - from + 1} empty item${i > from ? "s" : ""}>`);
  }
  if (i < value.length) out.push(`... ${value.length - i} more item${value.length - i > 1 ? "s" : ""}`);
  return out;
}

/** The text before the braces, for values that are more than their properties; undefined for others. */
function baseOf(value: any, name: string | null, tagged: string, keys: (string | symbol)[], state: State): { text: string; keys: (string | symbol)[] } | undefined {
  if (typeof value === "function") {
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    // A module does not contain the sources of functions. But the prototype of a class is not writable.
    if (Object.getOwnPropertyDescriptor(value, "prototype")?.writable === false && (globalThis as any)[value.name] !== value) {
      const above = Object.getPrototypeOf(value)?.name;
      return { text: `[class ${value.name || "(anonymous)"}${above ? ` extends ${above}` : ""}]`, keys };
    }
    const usual = kind === "Object" ? "Function" : kind;
    const extended = name !== null && name !== usual && usual === "Function" ? ` ${name}` : "";
    return { text: `[${usual}${name === null ? " (null prototype)" : ""}${value.name ? `: ${value.name}` : " (anonymous)"}]${extended}`, keys };
  }
  const before = (usual: string) => (name === usual ? "" : name === null ? `[${usual}: null prototype] ` : `${name} `);
  if (types.isRegExp(value)) return { text: before("RegExp") + RegExp.prototype.toString.call(value), keys };
  if (types.isDate(value)) {
    const time = Date.prototype.getTime.call(value);
    return { text: before("Date") + (Number.isNaN(time) ? "Invalid Date" : new Date(time).toISOString()), keys };
  }
  if (value instanceof Error || (name === null && types.isNativeError(value))) return errorText(value, name, tagged, keys, state);
  for (const kind of [String, Number, Boolean, BigInt, Symbol] as const) {
    if (!(value instanceof (kind as any))) continue;
    const plain = value.valueOf();
    const shown = keys.filter((key) => !(typeof plain === "string" && typeof key === "string" && (/^\d+$/.test(key) || key === "length")));
    return { text: `[${kind.name}${name === kind.name ? "" : ` (${name})`}: ${primitive(plain, { ...state, breakLength: Infinity })}]`, keys: shown };
  }
  return undefined;
}

function errorText(error: any, className: string | null, tagged: string, keys: (string | symbol)[], state: State): { text: string; keys: (string | symbol)[] } {
  const name = error.name != null ? String(error.name) : "Error";
  const stack = typeof error.stack === "string" && error.stack !== "" ? error.stack : Error.prototype.toString.call(error);
  const shown = keys.filter((key) => !["name", "message", "stack"].includes(key as string) || !stack.includes(String(error[key])));
  for (const key of ["cause", "errors"]) {
    if (Object.hasOwn(error, key) && !shown.includes(key)) shown.push(key);
  }
  let text = withClass(stack, name, className, tagged);
  const at = error.message ? text.indexOf(error.message) : -1;
  if (!text.includes("\n    at", at < 0 ? 0 : at + error.message.length)) text = `[${text}]`; // it has no frames
  return { text: state.indent > 0 ? text.replaceAll("\n", `\n${" ".repeat(state.indent)}`) : text, keys: shown };
}

/** The stack, with the name of the class, if the error has another name. */
function withClass(stack: string, name: string, className: string | null, tagged: string): string {
  const begins = name.endsWith("Error") && stack.startsWith(name) && [undefined, ":", "\n"].includes(stack[name.length]);
  if (className !== null && !begins) return stack;
  const prefix = className === null ? `[${name}: null prototype]` : `${className}${tagged && ` ${tagged.trim()}`}`;
  if (name === prefix) return stack;
  const rest = begins ? stack.slice(name.length) : `: ${stack}`;
  return prefix.includes(name) ? prefix + rest : `${prefix} [${name}]${rest}`;
}

function property(value: any, key: string | symbol, state: State, level: number): string {
  const at = Object.getOwnPropertyDescriptor(value, key) ?? { value: value[key], enumerable: true };
  let text: string;
  if (at.get !== undefined || at.set !== undefined) {
    text = at.get === undefined ? "[Setter]" : at.set === undefined ? "[Getter]" : "[Getter/Setter]";
    if (state.getters && at.get !== undefined) text = `${text.slice(0, -1)}: ${show(value[key], state, level + 1)}]`;
  } else {
    state.indent += 2;
    text = show(at.value, state, level + 1);
    state.indent -= 2;
  }
  const name = at.enumerable === false ? `[${typeof key === "symbol" ? String(key) : key}]` : keyText(key);
  return `${name}: ${text}`;
}

function joined(parts: string[], f: Form, state: State, level: number, value: unknown): string {
  let output = parts;
  const begin = `${f.base && `${f.base} `}${f.prefix}${f.open}`;
  if (state.compact === true) {
    const length = output.reduce((sum, one) => sum + one.length, output.length + f.open.length + f.prefix.length + f.base.length);
    const apart = length + output.length > state.breakLength || output.some((one) => one.includes("\n"));
    return `${begin} ${output.join(apart ? `,\n${" ".repeat(state.indent + 2)}` : ", ")} ${f.close}`;
  }
  if (typeof state.compact === "number" && state.compact >= 1) {
    if (f.list && parts.length > 6) output = grouped(parts, state, value as ArrayLike<unknown>);
    if (state.current - level < state.compact && parts.length === output.length) {
      const start = output.length + state.indent + f.open.length + f.prefix.length + f.base.length + 10;
      const length = output.reduce((sum, one) => sum + one.length, output.length + start);
      if (length <= state.breakLength && !f.base.includes("\n")) {
        const line = output.join(", ");
        if (!line.includes("\n")) return `${begin} ${line} ${f.close}`;
      }
    }
  }
  const space = `\n${" ".repeat(state.indent)}`;
  return `${begin}${space}  ${output.join(`,${space}  `)}${space}${f.close}`;
}

/** Puts the short items of a long list into columns. */
function grouped(parts: string[], state: State, value: ArrayLike<unknown>): string[] {
  let total = 0;
  let longest = 0;
  const more = parts.at(-1)!.startsWith("... ") ? 1 : 0;
  const count = parts.length - more;
  const lengths = parts.slice(0, count).map((part) => part.length);
  for (const length of lengths) {
    total += length + 2;
    longest = Math.max(longest, length);
  }
  const actual = longest + 2;
  if (actual * 3 + state.indent >= state.breakLength || !(total / actual > 5 || longest <= 6)) return parts;
  // An item is about 2.5 times as high as it is wide.
  const bias = Math.sqrt(actual - total / parts.length);
  const width = Math.max(actual - 3 - bias, 1);
  const columns = Math.min(Math.round(Math.sqrt(2.5 * width * count) / width), Math.floor((state.breakLength - state.indent) / actual), (state.compact as number) * 4, 15);
  if (columns <= 1) return parts;
  const out: string[] = [];
  const widths: number[] = [];
  for (let i = 0; i < columns; i++) {
    let width = 0;
    for (let j = i; j < count; j += columns) width = Math.max(width, lengths[j]);
    widths.push(width + 2);
  }
  const numbers = value !== undefined && Array.from({ length: count }, (_, i) => value[i]).every((v) => typeof v === "number" || typeof v === "bigint");
  for (let i = 0; i < count; i += columns) {
    const end = Math.min(i + columns, count);
    let line = "";
    let j = i;
    for (; j < end - 1; j++) {
      const cell = `${parts[j]}, `;
      line += numbers ? cell.padStart(widths[j - i]) : cell.padEnd(widths[j - i]);
    }
    line += numbers ? parts[j].padStart(widths[j - i] - 2) : parts[j];
    out.push(line);
  }
  if (more) out.push(parts.at(-1)!);
  return out;
}

/** Replaces %s and the like (Node.js, "util.format"). */
export function formatWithOptions(options: Options, ...values: unknown[]): string {
  const [first, ...rest] = values;
  if (values.length === 0) return "";
  let text = "";
  let parts = values;
  if (typeof first === "string") {
    if (values.length === 1) return first;
    text = first.replace(/%[sdijfoOc%]/g, (what) => {
      if (what === "%%") return "%";
      if (rest.length === 0) return what;
      const value = rest.shift() as any;
      switch (what) {
        case "%s":
          return asText(value, options);
        case "%d":
          return typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : number(Number(value));
        case "%i":
          return typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : number(parseInt(value));
        case "%f":
          return typeof value === "symbol" ? "NaN" : number(parseFloat(value));
        case "%j":
          try {
            return JSON.stringify(value);
          } catch (error) {
            if (/circular/i.test(String(error))) return "[Circular]";
            throw error;
          }
        case "%o":
          return inspect(value, { ...options, showHidden: true, depth: 4 });
        case "%O":
          return inspect(value, options);
      }
      return ""; // %c, a style
    });
    parts = rest;
    if (rest.length === 0) return text;
    text += " ";
  }
  return text + parts.map((value) => (typeof value === "string" ? value : inspect(value, { ...options, compact: 3 }))).join(" ");
}

function asText(value: any, options: Options): string {
  if (typeof value === "number") return number(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null || !hasUsualToString(value)) return String(value);
  return inspect(value, { ...options, depth: 0, compact: 3 });
}

/** Whether toString is that of a class of the language. */
function hasUsualToString(value: any): boolean {
  if (typeof value.toString !== "function") return true;
  let at = value;
  while (!Object.hasOwn(at, "toString")) at = Object.getPrototypeOf(at);
  const made = at === value ? undefined : Object.getOwnPropertyDescriptor(at, "constructor")?.value;
  return typeof made === "function" && /^(Object|Array|Date|RegExp|Error|Number|String|Boolean|BigInt|Symbol|.+Array|.+Error)$/.test(made.name) && (globalThis as any)[made.name] === made;
}

export const format = (...values: unknown[]): string => formatWithOptions({}, ...values);
