// Hosts of URLs (URL Standard, 3): domains, addresses, and the opaque hosts of other schemes.

import { encode, inOpaque } from "./percent.ts";
import { errno, failure, result, runner } from "../host.ts";

/** A host as a URL has it, or null if it is not valid. */
export function parseHost(text: string, special: boolean): string | null {
  if (text.startsWith("[")) {
    const pieces = text.endsWith("]") ? ipv6(text.slice(1, -1)) : null;
    return pieces && `[${compressed(pieces)}]`;
  }
  if (!special) return /[\0\t\n\r #/:<>?@[\\\]^|]/.test(text) ? null : encode(text, inOpaque);
  let domain = text;
  if (domain.includes("%")) {
    try {
      domain = decodeURIComponent(domain);
    } catch {
      return null; // what is not UTF-8 is not a domain either
    }
  }
  const ascii = /[^\0-\x7f]|(^|\.)xn--/i.test(domain) ? toASCII(domain) : domain.toLowerCase();
  if (!ascii || /[\0- #%/:<>?@[\\\]^|\x7f]/.test(ascii)) return null;
  return /(^|\.)(\d+|0x[\da-f]*)\.?$/.test(ascii) ? ipv4(ascii) : ascii;
}

/** A domain in ASCII (UTS #46), which the host knows, or null if it is not valid. */
function toASCII(domain: string): string | null {
  const op = "domainToASCII";
  const n = runner.host.call(op, JSON.stringify({ domain }));
  if (n >= 0) return result().ascii;
  if (errno(n) === "invalid" || errno(n) === "too_large") return null;
  throw failure(n, op);
}

function ipv4(text: string): string | null {
  const parts = text.replace(/\.$/, "").split(".");
  if (parts.length > 4) return null;
  let address = 0;
  for (const [i, part] of parts.entries()) {
    const n = /^(0|[1-9]\d*)$/.test(part) ? Number(part)
      : /^0[0-7]+$/.test(part) ? parseInt(part, 8)
      : /^0x[\da-f]*$/.test(part) ? Number(part === "0x" ? 0 : part)
      : NaN;
    const last = i === parts.length - 1;
    if (!(n < (last ? 256 ** (4 - i) : 256))) return null;
    address += last ? n : n * 256 ** (3 - i);
  }
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}

/** The eight pieces of an address. */
function ipv6(text: string): number[] | null {
  const v4 = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  if (v4) {
    const bytes = v4.slice(2).map((part) => (/^(0|[1-9]\d{0,2})$/.test(part) ? Number(part) : NaN));
    if (!bytes.every((byte) => byte < 256)) return null;
    text = v4[1] + ((bytes[0] << 8) | bytes[1]).toString(16) + ":" + ((bytes[2] << 8) | bytes[3]).toString(16);
  }
  const halves = text.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const given = halves.flat();
  if (!given.every((piece) => /^[\da-f]{1,4}$/i.test(piece))) return null;
  if (halves.length > 2 || (halves.length === 2 ? given.length > 7 : given.length !== 8)) return null;
  const zeros = Array(8 - given.length).fill("0");
  return [...halves[0], ...zeros, ...(halves[1] ?? [])].map((piece) => parseInt(piece, 16));
}

/** An address with its longest run of zeros left out. */
function compressed(pieces: number[]): string {
  const text = pieces.map((piece) => piece.toString(16)).join(":");
  let longest: RegExpMatchArray | undefined;
  for (const run of text.matchAll(/\b0(:0)+\b/g)) if (run[0].length > (longest?.[0].length ?? 0)) longest = run;
  if (longest === undefined) return text;
  const { 0: zeros, index = 0 } = longest;
  return `${text.slice(0, index).replace(/:$/, "")}::${text.slice(index + zeros.length).replace(/^:/, "")}`;
}
