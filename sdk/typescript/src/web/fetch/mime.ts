// MIME types (MIME Sniffing Standard, 4; Fetch Standard, 2.2.2).

export interface MIMEType {
  /** Type and subtype, in lower case. */
  essence: string;
  /** The parameters, with names in lower case. */
  parameters: Map<string, string>;
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// A name and, behind "=", text in quotes (which may not end) or up to the next ";".
const parameter = /;[\t\n\r ]*([^;=]*)(?:=(?:"((?:[^"\\]|\\[^])*)(?:"|(\\?)$)[^;]*|([^;]*)))?/gy;

/** Parses a MIME type; null if it is not valid. */
export function parseMIME(text: string): MIMEType | null {
  text = text.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  const [head, type, subtype] = /^([^/;]*)\/([^;]*)/.exec(text) ?? ["", "", ""];
  const name = subtype.replace(/[\t\n\r ]+$/, "");
  if (!token.test(type) || !token.test(name)) return null;
  const parameters = new Map<string, string>();
  for (const [, key, quoted, open = "", plain = ""] of text.slice(head.length).matchAll(parameter)) {
    const lower = key.toLowerCase();
    const value = quoted === undefined ? plain.replace(/[\t\n\r ]+$/, "") : quoted.replace(/\\([^])/g, "$1") + open;
    if (quoted === undefined && value === "") continue;
    if (token.test(lower) && /^[\t -~\x80-\xff]*$/.test(value) && !parameters.has(lower)) parameters.set(lower, value);
  }
  return { essence: `${type}/${name}`.toLowerCase(), parameters };
}

/** Writes a MIME type. */
export function writeMIME({ essence, parameters }: MIMEType): string {
  for (const [name, value] of parameters) essence += `;${name}=${token.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
  return essence;
}

/** The MIME type of a Content-Type header, which may have several values; null if none is valid. */
export function contentType(header: string | null): MIMEType | null {
  let found: MIMEType | null = null;
  let charset: string | undefined;
  // Commas in quotes separate nothing.
  for (const [value] of (header ?? "").matchAll(/(?:[^",]|"(?:[^"\\]|\\[^])*"?)+/g)) {
    const type = parseMIME(value);
    if (type === null || type.essence === "*/*") continue;
    if (type.essence !== found?.essence) charset = type.parameters.get("charset");
    else if (charset !== undefined && !type.parameters.has("charset")) type.parameters.set("charset", charset);
    found = type;
  }
  return found;
}
