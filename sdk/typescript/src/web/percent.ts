// Percent-encoding (URL Standard, 1.3): the characters that each part of a URL encodes.

export const inOpaque = /[\u0000-\u001f\u007f-\u{10ffff}]/gu;
export const inFragment = /[\u0000- "<>`\u007f-\u{10ffff}]/gu;
export const inQuery = /[\u0000- "#<>\u007f-\u{10ffff}]/gu;
export const inSpecialQuery = /[\u0000- "#<>'\u007f-\u{10ffff}]/gu;
export const inPath = /[\u0000- "#<>?^`{}\u007f-\u{10ffff}]/gu;
export const inUser = /[\u0000- "#<>?^`{}/:;=@[\\\]|\u007f-\u{10ffff}]/gu;

/** Percent-encodes what the pattern finds in well-formed text. */
export function encode(text: string, unsafe: RegExp): string {
  return text.replace(unsafe, (c) => (c === "'" ? "%27" : encodeURIComponent(c)));
}

const escapes = new Map(Array.from({ length: 0x100 }, (_, byte) => ["%" + byte.toString(16).padStart(2, "0"), String.fromCharCode(byte)]));

/** Percent-decodes text with a unit for each byte. */
export function percentDecode(text: string): string {
  return text.replace(/%[0-9A-Fa-f]{2}/g, (escape) => escapes.get(escape.toLowerCase())!);
}
