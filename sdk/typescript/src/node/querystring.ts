// node:querystring.

function escape(text: unknown): string {
  const given = typeof text === "string" ? text : typeof text === "object" ? String(text) : `${text as any}`;
  if (!given.isWellFormed()) throw Object.assign(new URIError("URI malformed"), { code: "ERR_INVALID_URI" });
  return encodeURIComponent(given);
}

/** Decodes the valid escapes, and keeps the others. */
function unescapeBytes(text: string): Uint8Array {
  const bytes: number[] = [];
  for (let i = 0; i < text.length; i++) {
    const hex = text[i] === "%" ? text.slice(i + 1, i + 3) : "";
    if (/^[0-9A-Fa-f]{2}$/.test(hex)) {
      bytes.push(parseInt(hex, 16));
      i += 2;
    } else if (text.charCodeAt(i) < 0x80) {
      bytes.push(text.charCodeAt(i));
    } else {
      const character = String.fromCodePoint(text.codePointAt(i)!);
      bytes.push(...new TextEncoder().encode(character));
      i += character.length - 1;
    }
  }
  return new Uint8Array(bytes);
}

function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(unescapeBytes(text));
  }
}

const primitive = (value: unknown): string => {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      return Number.isFinite(value) ? String(value) : "";
    case "bigint":
    case "boolean":
      return String(value);
  }
  return "";
};

function stringify(values: any, separator?: string | null, equals?: string | null, options?: { encodeURIComponent?: (text: string) => string }): string {
  if (typeof values !== "object" || values === null) return "";
  const encode = options?.encodeURIComponent ?? querystring.escape;
  const pairs: string[] = [];
  for (const [key, value] of Object.entries(values)) {
    const name = encode(primitive(key)) + (equals || "=");
    for (const one of Array.isArray(value) ? value : [value]) pairs.push(name + encode(primitive(one)));
  }
  return pairs.join(separator || "&");
}

function parse(text: unknown, separator?: string | null, equals?: string | null, options: { maxKeys?: number; decodeURIComponent?: (text: string) => string } = {}): Record<string, string | string[]> {
  const made: Record<string, any> = Object.create(null);
  if (typeof text !== "string" || text === "") return made;
  const decode = options?.decodeURIComponent ?? querystring.unescape;
  const decoded = (part: string): string => {
    part = part.replaceAll("+", " ");
    try {
      return /%/.test(part) || options?.decodeURIComponent ? decode(part) : part;
    } catch {
      return unescape(part);
    }
  };
  const most = options?.maxKeys ?? 1000;
  const parts = text.split(separator || "&");
  for (const part of most > 0 ? parts.slice(0, most) : parts) {
    if (part === "") continue;
    const at = part.indexOf(equals || "=");
    const name = decoded(at < 0 ? part : part.slice(0, at));
    const value = at < 0 ? "" : decoded(part.slice(at + (equals || "=").length));
    if (!(name in made)) made[name] = value;
    else if (Array.isArray(made[name])) made[name].push(value);
    else made[name] = [made[name], value];
  }
  return made;
}

const querystring: any = { escape, unescape, unescapeBuffer: unescapeBytes, stringify, encode: stringify, parse, decode: parse };

export default querystring;
