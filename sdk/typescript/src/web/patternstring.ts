// Pattern strings (URL Pattern Standard, 2): their tokens, their parts, and the regular expressions that they become.

type TokenType = "open" | "close" | "regexp" | "name" | "char" | "escaped" | "modifier" | "asterisk" | "end" | "invalid";

export interface Token {
  type: TokenType;
  /** The index of its first code point. */
  index: number;
  value: string;
}

export interface Options {
  /** A named group ends at this character. */
  delimiter: string;
  /** Before a group, it belongs to the group. */
  prefix: string;
  ignoreCase?: boolean;
}

interface Part {
  type: "text" | "regexp" | "segment" | "full";
  value: string;
  modifier: string;
  name: string;
  prefix: string;
  suffix: string;
}

/** The pattern of one component of a URL. */
export interface Component {
  /** The pattern as a string, normalized. */
  pattern: string;
  regexp: RegExp;
  /** The names of the groups, in their order. */
  names: string[];
  /** A group has a regular expression of its own. */
  custom: boolean;
}

/** Encodes fixed text as the component of a URL has it, or throws a TypeError. */
export type Encode = (text: string) => string;

const anything = ".*";
const singles: Record<string, TokenType> = { "*": "asterisk", "+": "modifier", "?": "modifier", "{": "open", "}": "close" };

export function bad(pattern: string, why: string): TypeError {
  return new TypeError(`URLPattern: ${JSON.stringify(pattern)} is not a valid pattern: ${why}`);
}

/** Whether a name may have the code point. The sets of Unicode are 10 KB, so they are made only when they are needed. */
function isName(point: string, first: boolean): boolean {
  if (point < "\x80") return (first ? /[A-Za-z$_]/ : /[\w$]/).test(point);
  return new RegExp(first ? "^\\p{ID_Start}$" : "^[\\p{ID_Continue}\u200c\u200d]$", "u").test(point);
}

/** Cuts a pattern into tokens (2.1.2). If it is lenient, what is not valid is a token too. */
export function tokenize(input: string, lenient = false): Token[] {
  const points = [...input];
  const tokens: Token[] = [];
  for (let at = 0; at < points.length; ) {
    const index = at++;
    let value = points[index];
    let type: TokenType = singles[value] ?? "char";
    let why = "";
    if (value === "\\") {
      type = "escaped";
      if (at < points.length) value = points[at++];
      else why = "it ends with a backslash";
    } else if (value === ":") {
      type = "name";
      while (at < points.length && isName(points[at], at === index + 1)) at++;
      if (at > index + 1) value = points.slice(index + 1, at).join("");
      else why = "no name follows a colon; write \\\\: for the character";
    } else if (value === "(") {
      type = "regexp";
      const end = regexpEnd(points, at);
      if (end > 0) value = points.slice(at, (at = end) - 1).join("");
      else why = "a group in parentheses must be a regular expression in ASCII, whose inner groups begin with (?";
    }
    if (why !== "") {
      if (!lenient) throw bad(input, why);
      type = "invalid";
    }
    tokens.push({ type, index, value });
  }
  tokens.push({ type: "end", index: points.length, value: "" });
  return tokens;
}

/** The end of a regular expression that begins after a parenthesis, or 0 if it is not valid. */
function regexpEnd(points: string[], start: number): number {
  let depth = 1;
  for (let at = start; at < points.length; at++) {
    const point = points[at];
    if (point > "\x7f" || (at === start && point === "?")) return 0;
    if (point === "\\") {
      if (!(points[++at] <= "\x7f")) return 0;
    } else if (point === ")") {
      if (--depth === 0) return at === start ? 0 : at + 1;
    } else if (point === "(") {
      depth++;
      if (points[at + 1] !== "?") return 0;
    }
  }
  return 0;
}

const segment = ({ delimiter }: Options): string => `[^${escapeRegExp(delimiter)}]+?`;

/** Parses a pattern (2.1.5). */
function parse(input: string, options: Options, encode: Encode): Part[] {
  const tokens = tokenize(input);
  const parts: Part[] = [];
  let next = 0;
  let pending = ""; // fixed text
  let number = 0; // the name of the next group without one
  const take = (type: TokenType): string | undefined => (tokens[next].type === type ? tokens[next++].value : undefined);
  const takeText = (): string => {
    let text = "";
    for (let value; (value = take("char") ?? take("escaped")) !== undefined; ) text += value;
    return text;
  };
  const addText = (text: string, modifier: string): void => {
    if (text !== "") parts.push({ type: "text", value: encode(text), modifier, name: "", prefix: "", suffix: "" });
  };
  const flush = (): void => {
    addText(pending, "");
    pending = "";
  };
  const required = (type: TokenType): void => {
    if (take(type) === undefined) throw bad(input, type === "close" ? "a { has no }" : `${JSON.stringify(tokens[next].value)} is not allowed where it is`);
  };
  /** Takes a group, if there is one. */
  const group = (): [name: string | undefined, regexp: string | undefined] => {
    const name = take("name");
    const regexp = take("regexp") ?? (name === undefined && take("asterisk") !== undefined ? anything : undefined);
    return [name, regexp];
  };
  const add = (prefix: string, name: string | undefined, regexp: string | undefined, suffix: string): void => {
    const modifier = take("modifier") ?? take("asterisk") ?? "";
    if (name === undefined && regexp === undefined) {
      if (modifier === "") {
        pending += prefix;
      } else {
        flush();
        addText(prefix, modifier);
      }
      return;
    }
    flush();
    let value = regexp ?? segment(options);
    const type = value === segment(options) ? "segment" : value === anything ? "full" : "regexp";
    if (type !== "regexp") value = "";
    name ??= String(number++);
    if (parts.some((part) => part.name === name)) throw bad(input, `two groups have the name ${name}`);
    parts.push({ type, value, modifier, name, prefix: encode(prefix), suffix: encode(suffix) });
  };
  while (next < tokens.length) {
    const char = take("char");
    const [name, regexp] = group();
    if (name !== undefined || regexp !== undefined) {
      let prefix = char ?? "";
      if (prefix !== options.prefix) {
        pending += prefix;
        prefix = "";
      }
      add(prefix, name, regexp, "");
      continue;
    }
    const text = char ?? take("escaped");
    if (text !== undefined) {
      pending += text;
    } else if (take("open") !== undefined) {
      const prefix = takeText();
      const [name, regexp] = group();
      const suffix = takeText();
      required("close");
      add(prefix, name, regexp, suffix);
    } else {
      flush();
      required("end");
    }
  }
  return parts;
}

const escapeRegExp = (text: string): string => text.replace(/[.+*?^${}()[\]|/\\]/g, "\\$&");

export const escapePattern = (text: string): string => text.replace(/[+*?:{}()\\]/g, "\\$&");

/** The source of the regular expression of parts (2.2). */
function source(parts: Part[], options: Options): string {
  let all = "^";
  for (const { type, value, modifier, prefix, suffix } of parts) {
    if (type === "text") {
      all += modifier === "" ? escapeRegExp(value) : `(?:${escapeRegExp(value)})${modifier}`;
      continue;
    }
    const regexp = type === "segment" ? segment(options) : type === "full" ? anything : value;
    const before = escapeRegExp(prefix);
    const after = escapeRegExp(suffix);
    const repeated = modifier === "*" || modifier === "+";
    if (before === "" && after === "") all += repeated ? `((?:${regexp})${modifier})` : `(${regexp})${modifier}`;
    else if (!repeated) all += `(?:${before}(${regexp})${after})${modifier}`;
    else all += `(?:${before}((?:${regexp})(?:${after}${before}(?:${regexp}))*)${after})${modifier === "*" ? "?" : ""}`;
  }
  return all + "$";
}

/**
 * Escapes what only classes reserve. With the flag v the engine refuses such punctuation outside of them too: a hyphen, a slash,
 * and some characters that are doubled.
 */
function outsideClasses(source: string): string {
  let depth = 0;
  return source.replace(/\\k<[^>]*>|\\.|\(\?(?:<[=!]|<[^>]*>|[a-z-]*:|[=!])|\{\d+,\d*\}|[-/[\]&!#%,:;<=>@`~]/gs, (found) => {
    if (found === "[") depth++;
    else if (found === "]") depth--;
    else if (found.length === 1 && depth === 0) return `\\x${found.charCodeAt(0).toString(16)}`;
    return found;
  });
}

/** The pattern of parts, normalized (2.3). */
function write(parts: Part[], options: Options): string {
  let all = "";
  for (const [i, part] of parts.entries()) {
    const { type, value, modifier, name, prefix, suffix } = part;
    if (type === "text") {
      all += modifier === "" ? escapePattern(value) : `{${escapePattern(value)}}${modifier}`;
      continue;
    }
    const previous = parts.at(i - 1 < 0 ? parts.length : i - 1);
    const next = parts.at(i + 1);
    const named = !/^\d/.test(name);
    let grouped = suffix !== "" || (prefix !== "" && prefix !== options.prefix);
    if (!grouped && named && type === "segment" && modifier === "" && next && next.prefix === "" && next.suffix === "") {
      grouped = next.type === "text" ? isName([...next.value][0], false) : /^\d/.test(next.name);
    }
    if (!grouped && prefix === "" && previous?.type === "text" && options.prefix !== "" && previous.value.endsWith(options.prefix)) grouped = true;
    all += (grouped ? "{" : "") + escapePattern(prefix) + (named ? `:${name}` : "");
    if (type === "regexp") all += `(${value})`;
    else if (type === "segment" && !named) all += `(${segment(options)})`;
    else if (type === "full") all += !named && (!previous || previous.type === "text" || previous.modifier !== "" || grouped || prefix !== "") ? "*" : `(${anything})`;
    if (type === "segment" && named && suffix !== "" && isName([...suffix][0], false)) all += "\\";
    all += escapePattern(suffix) + (grouped ? "}" : "") + modifier;
  }
  return all;
}

/** Compiles the pattern of a component (1.6). */
export function compile(input: string, encode: Encode, options: Options): Component {
  const parts = parse(input, options, encode);
  let regexp: RegExp;
  try {
    regexp = new RegExp(outsideClasses(source(parts, options)), options.ignoreCase ? "vi" : "v");
  } catch (error) {
    throw bad(input, (error as Error).message);
  }
  return {
    pattern: write(parts, options),
    regexp,
    names: parts.filter((part) => part.type !== "text").map((part) => part.name),
    custom: parts.some((part) => part.type === "regexp"),
  };
}
