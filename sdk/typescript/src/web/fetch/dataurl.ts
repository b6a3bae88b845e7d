// data: URLs (Fetch Standard, 6).

import { fromBase64, fromBinary } from "../encoding.ts";
import { percentDecode } from "../percent.ts";
import { parseMIME, writeMIME } from "./mime.ts";

/** The bytes and the MIME type of a data: URL without fragment; null if it is not valid. */
export function readDataURL(url: string): { bytes: Uint8Array; type: string } | null {
  const comma = url.indexOf(",");
  if (comma < 0) return null;
  let type = url.slice("data:".length, comma).replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "");
  const body = percentDecode(url.slice(comma + 1));
  let bytes: Uint8Array;
  const inBase64 = /; *base64$/i.exec(type);
  if (inBase64) {
    type = type.slice(0, inBase64.index);
    try {
      bytes = fromBase64(body);
    } catch {
      return null;
    }
  } else {
    bytes = fromBinary(body);
  }
  const parsed = parseMIME(type.startsWith(";") ? `text/plain${type}` : type);
  return { bytes, type: parsed ? writeMIME(parsed) : "text/plain;charset=US-ASCII" };
}
