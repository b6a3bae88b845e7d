import { HostError, insert, text, type RouteRequest } from "@runner/sdk";
import { Maker } from "../maker.ts";

/** What must be stored, as JSON; undefined: it is refused. The engine's own JSON.stringify visits the values. */
function expected(value: unknown): string | undefined {
  let refused = false;
  const visit = function (this: any, name: string, value: any) {
    const data = Array.isArray(value) || value === null || typeof value !== "object" || value instanceof String || value instanceof Number;
    const plain = data || [Object.prototype, null].includes(Object.getPrototypeOf(value));
    refused ||= (value === null && this[name] instanceof Date) || ["function", "symbol", "bigint"].includes(typeof value) || (typeof value === "number" && !Number.isFinite(value)) || (value === undefined && Array.isArray(this)) ||
      (typeof value === "string" && !value.isWellFormed()) || (value instanceof String && !value.isWellFormed()) || (value !== undefined && !name.isWellFormed()) ||
      value instanceof Map || value instanceof Set || value instanceof Uint8Array || (!plain && Object.keys(value).length === 0);
    return refused ? null : value;
  };
  try {
    const made = JSON.stringify({ value }, visit as any, 0);
    return refused ? undefined : made;
  } catch {
    return undefined; // it contains itself
  }
}

/** Stores values of every kind, with arguments that are written natively, and with ones that the script writes. */
export async function compare(req: RouteRequest) {
  const first = Number(req.text());
  let kept = 0, refused = 0;
  for (let seed = first; seed < first + 200; seed++) {
    const want = expected(new Maker(seed).value(4));
    for (const more of [{}, { at: new Date(0) }]) {
      let have: string | undefined;
      try {
        const { value } = await insert("Value", { value: new Maker(seed).value(4), ...more });
        have = JSON.stringify({ value });
      } catch (error) {
        if (!(error instanceof HostError) || error.code !== "invalid") throw error;
      }
      const absent = want === "{}" && have === '{"value":null}';
      if (have !== want && !absent) return text(`seed ${seed}, ${Object.keys(more)}: ${have} and ${want}`);
    }
    if (want === undefined) refused++;
    else kept++;
  }
  return text(kept > 50 && refused > 20 ? "same" : `${kept} were kept and ${refused} refused`);
}
