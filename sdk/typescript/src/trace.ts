// Stack traces in the words of the handlers' author: the engine names places in
// the script that all files became; the source map says which places these are.

type Segment = [column: number, source: number, line: number, sourceColumn: number];

/** Gives the function that tells an error in one line. */
export function tracer(sources: string[], mappings: string): (error: unknown, causes?: number) => string {
  let lines: Segment[][] | undefined;

  function place(line: number, column: number): string | null {
    lines ??= decode(mappings);
    let found: Segment | undefined;
    for (const segment of lines[line - 1] ?? []) {
      if (segment[0] > column - 1) break;
      found = segment;
    }
    if (!found) return null;
    const source = sources[found[1]];
    if (source.startsWith("runner-sdk:") || source === "runner-entry.js") return null;
    return `${source}:${found[2] + 1}:${found[3] + 1}`;
  }

  function frames(stack: string): string[] {
    const all: string[] = [];
    for (const line of stack.split("\n")) {
      const at = /^\s*at (.*?) ?\(?handlers\.js:(\d+):(\d+)\)?$/.exec(line);
      const where = at && place(Number(at[2]), Number(at[3]));
      if (at && where) all.push(at[1] && at[1] !== "<anonymous>" ? `${at[1]} (${where})` : where);
    }
    return all;
  }

  function trace(error: unknown, causes = 0): string {
    try {
      return error instanceof Error ? told(error, causes) : `thrown: ${describe(error)}`;
    } catch {
      return "thrown: an error that cannot be told, as it throws when it is looked at";
    }
  }

  function told(error: Error, causes: number): string {
    let text = error.message ? `${error.name}: ${error.message}` : error.name;
    const code = (error as { code?: unknown }).code;
    if (error.name === "HostError" && code) text = error.message ? `${code}: ${error.message}` : `${code}`;
    const at = frames(String(error.stack ?? ""));
    if (at.length > 0) text += ` at ${at.slice(0, 10).join(", ")}`;
    if (error.cause !== undefined && causes < 4) text += `; because of ${trace(error.cause, causes + 1)}`;
    return text;
  }

  return trace;
}

/** What was thrown instead of an error, and may be anything. */
function describe(value: unknown): string {
  try {
    return typeof value === "object" ? (JSON.stringify(value) ?? "an object") : String(value);
  } catch {
    return "an object";
  }
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Reads the mappings of a source map (ECMA-426): lines by ";", segments by ",", numbers in base64 VLQ. */
function decode(mappings: string): Segment[][] {
  const value: Record<string, number> = {};
  for (let i = 0; i < digits.length; i++) value[digits[i]] = i;
  const state = [0, 0, 0, 0, 0];
  return mappings.split(";").map((line) => {
    state[0] = 0;
    const segments: Segment[] = [];
    for (const text of line === "" ? [] : line.split(",")) {
      let field = 0;
      let shift = 0;
      let n = 0;
      for (const digit of text) {
        const bits = value[digit];
        n |= (bits & 31) << shift;
        shift += 5;
        if (bits & 32) continue;
        state[field++] += n & 1 ? -(n >>> 1) : n >>> 1;
        n = shift = 0;
      }
      if (field >= 4) segments.push([state[0], state[1], state[2], state[3]]);
    }
    return segments;
  });
}
