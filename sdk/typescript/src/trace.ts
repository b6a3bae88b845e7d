// Stack traces with places in the handlers' source files: the engine names places in the
// bundled script, and the source map maps them.

// What libraries that stream responses use.
const noStream = /^ReferenceError: '?(Readable|Writable|Transform|Compression|Decompression)Stream'? is not defined$/;

/** Returns the function that describes an error in one line. */
export function tracer(sources: string[], mappings: string): (error: unknown, causes?: number) => string {
  const lines = mappings.split(";");

  function place(line: number, column: number): string | null {
    const at = find(lines[line - 1] ?? "", column - 1);
    return at && `${sources[at[1]]}:${at[2] + 1}:${at[3] + 1}`;
  }

  function frames(stack: string): string[] {
    const all: string[] = [];
    for (const line of stack.split("\n")) {
      if (all.length === 10) break;
      const at = /^\s*at (.*?) ?\(?handlers\.js:(\d+):(\d+)\)?$/.exec(line);
      const where = at && place(Number(at[2]), Number(at[3]));
      if (at && where) all.push(at[1] && at[1] !== "<anonymous>" ? `${at[1]} (${where})` : where);
    }
    return all;
  }

  function trace(error: unknown, causes = 0): string {
    try {
      return error instanceof Error ? described(error, causes) : `thrown: ${describe(error)}`;
    } catch {
      return "thrown: an error that cannot be described, because its getters throw";
    }
  }

  function described(error: Error, causes: number): string {
    let text = error.message ? `${error.name}: ${error.message}` : error.name;
    const code = (error as { code?: unknown }).code;
    if (error.name === "HostError" && code) text = error.message ? `${code}: ${error.message}` : `${code}`;
    if (noStream.test(text)) text += ": a response is sent as a whole, so handlers have no streams of their own; make the body first";
    const at = frames(String(error.stack ?? ""));
    if (at.length > 0) text += ` at ${at.join(", ")}`;
    if (error.cause !== undefined && causes < 4) text += `; because of ${trace(error.cause, causes + 1)}`;
    return text;
  }

  return trace;
}

/** Describes a thrown value that is not an error. */
function describe(value: unknown): string {
  try {
    return typeof value === "object" ? (JSON.stringify(value) ?? "an object") : String(value);
  } catch {
    return "an object";
  }
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * Finds the segment of a column in the mappings of a line (ECMA-426): segments are separated
 * by ","; numbers are base64 VLQ, each the difference to the previous one. A segment of one
 * number has no place.
 */
function find(line: string, column: number): number[] | null {
  const state = [0, 0, 0, 0, 0];
  let found: number[] | null = null;
  let field = 0;
  let shift = 0;
  let n = 0;
  for (let i = 0; i <= line.length; i++) {
    if (i === line.length || line[i] === ",") {
      if (field > 0 && state[0] <= column) found = field >= 4 ? state.slice() : null;
      if (state[0] > column) break;
      field = 0;
      continue;
    }
    const bits = digits.indexOf(line[i]);
    n |= (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    state[field++] += n & 1 ? -(n >>> 1) : n >>> 1;
    n = shift = 0;
  }
  return found;
}
