// Stack traces and reports. The engine gives places in the bundled script. The source map maps them
// to the handlers' own files.

import { NetworkError, type Runner } from "./host.ts";

// The limits of the frames of a report, and of the causes and errors within an error.
const mostFrames = 32;
const mostCauses = 4;

const { defineProperty, getOwnPropertyDescriptor } = Object;
// The stack as the engine writes it, without a first line; undefined if the value is not an error.
const written = getOwnPropertyDescriptor(Error.prototype, "stack")!;
const raw = (error: unknown): unknown => written.get!.call(error);

// A line of a stack: function (file:line:column), file:line:column or function (native).
const line = /^ *at (?:(.*) \((.+):(\d+):(\d+)\)|(.+):(\d+):(\d+)|(.+) \((?:native|<anonymous>)\))$/;

/** Gives errors stacks like those of V8, with places in the handlers' files. Sets the functions of runner that describe errors. */
export function installTraces(runner: Runner, script: string): void {
  const { sources, calls, renamed } = runner;
  const mappings = runner.mappings.split(";");
  runner.mappings = "";

  /** The place in a source file: file, line, column. */
  function place(row: number, column: number): [file: string, line: number, column: number] | undefined {
    const at = find(mappings[row - 1] ?? "", column - 1);
    return at && [sources[at[1]], at[2] + 1, at[3] + 1];
  }

  /** The lines of a stack for functions of the app, and for native functions that these called. */
  function frames(stack: unknown): string[] {
    if (typeof stack !== "string") return [];
    const all: string[] = [];
    let known = 0;
    for (const text of stack.split("\n")) {
      const at = line.exec(text);
      if (at === null) continue;
      if (at[8] !== undefined) {
        all.push(`    at ${at[8]} (<anonymous>)`);
        continue;
      }
      let where: string | undefined = `${at[2] ?? at[5]}:${at[3] ?? at[6]}:${at[4] ?? at[7]}`;
      if (where.startsWith(`${script}:`)) where = place(Number(at[3] ?? at[6]), Number(at[4] ?? at[7]))?.join(":");
      else if (/^<(null|input)>:/.test(where)) where = undefined; // a script of the SDK, or of eval
      if (where === undefined) continue;
      const name = Object.hasOwn(renamed, at[1]) ? renamed[at[1]] : at[1];
      all.push(name && name !== "<anonymous>" && name !== "<eval>" ? `    at ${name} (${where})` : `    at ${where}`);
      known = all.length;
    }
    return all.slice(0, known);
  }

  /** The frames of a stack that have a file and a line. */
  const located = (stack: unknown): string[] => frames(stack).filter((frame) => !frame.endsWith("(<anonymous>)")).slice(0, mostFrames);

  /** Those of an error. */
  function placed(error: Error): string[] {
    let stack = raw(error);
    if (Object.hasOwn(error, "stack")) { // it was read, or written
      stack = error.stack;
      const first = heading(error); // which may be of several lines
      if (typeof stack === "string" && stack.startsWith(first)) stack = stack.slice(first.length);
    }
    return located(stack);
  }

  /** The stack as scripts see it, made from the one that the engine wrote. */
  function stackOf(error: object, stack: unknown): unknown {
    if (typeof stack !== "string" || !/^( *at |$)/.test(stack)) return stack; // of a prepareStackTrace
    return [heading(error), ...frames(stack)].join("\n");
  }

  const keep = (error: object, value: unknown): void => {
    if (Object.isExtensible(error)) defineProperty(error, "stack", { value, writable: true, configurable: true, enumerable: false });
  };

  // As in V8, the stack is written when it is first read. Until then it takes no time.
  defineProperty(Error.prototype, "stack", {
    ...written,
    get(this: object): unknown {
      const stack = raw(this);
      if (stack === undefined) return undefined;
      const text = stackOf(this, stack);
      keep(this, text);
      return text;
    },
  });

  const capture = Error.captureStackTrace;
  defineProperty(Error, "captureStackTrace", {
    value: {
      captureStackTrace(target: object, above?: Function): void {
        capture(target, above);
        const stack = getOwnPropertyDescriptor(target, "stack")?.value;
        if (typeof stack !== "string") return;
        defineProperty(target, "stack", {
          get() {
            const text = stackOf(target, stack);
            keep(target, text);
            return text;
          },
          set(value: unknown) {
            keep(target, value);
          },
          configurable: true,
          enumerable: false,
        });
      },
    }.captureStackTrace,
    writable: true,
    configurable: true,
    enumerable: false,
  });

  // The call sites that prepareStackTrace gets have the same places.
  const made = Error as { prepareStackTrace?: unknown };
  made.prepareStackTrace = (_: unknown, sites: object[]) => {
    const site = Object.getPrototypeOf(sites[0]);
    const { getFunctionName, getFileName, getLineNumber, getColumnNumber } = site;
    runner.line = (at) => `    at ${getFunctionName.call(at) ?? "<anonymous>"} (${getFileName.call(at)}:${getLineNumber.call(at)}:${getColumnNumber.call(at)})`;
    const of = (at: object, i: number, otherwise: () => unknown): unknown =>
      getFileName.call(at) === script ? (place(getLineNumber.call(at), getColumnNumber.call(at))?.[i] ?? otherwise.call(at)) : otherwise.call(at);
    const methods = {
      getFileName(this: object) {
        return of(this, 0, getFileName);
      },
      getLineNumber(this: object) {
        return of(this, 1, getLineNumber);
      },
      getColumnNumber(this: object) {
        return of(this, 2, getColumnNumber);
      },
    };
    for (const [name, value] of Object.entries(methods)) defineProperty(site, name, { value, writable: true, configurable: true, enumerable: false });
  };
  new Error();
  made.prepareStackTrace = undefined;

  /** The message of an error of the engine as V8 writes it, where that is certain; otherwise undefined. */
  function inFull(error: Error): string | undefined {
    const { message } = error;
    const stack = raw(error);
    if (typeof stack !== "string" || typeof message !== "string") return undefined;
    if (error.name === "TypeError") {
      const of = /^cannot (read|set) property '(?!Symbol\.)(.{1,59})' of (undefined|null)$/s.exec(message);
      if (of) return `Cannot ${of[1]} properties of ${of[3]} (${of[1]}${of[1] === "set" ? "t" : ""}ing '${of[2]}')`;
      const first = new RegExp(`^ *at .*\\(${script}:(\\d+:\\d+)\\)\\n`).exec(stack);
      if (!first || !/^(not a function|not a constructor|value is not iterable|cannot read property 'Symbol.iterator' of (undefined|null))$/.test(message)) return undefined;
      const at = calls.indexOf(`\n${first[1]}:`);
      if (at < 0) return undefined;
      const [kind, ...text] = calls.slice(at + first[1].length + 2, calls.indexOf("\n", at + 1));
      const what = text.join("");
      if (kind === "c" && message === "not a function") return `${what} is not a function`;
      if (kind === "n" && message.startsWith("not")) return `${what} is not a constructor`;
      if (kind === "i" && message !== "not a function") return `${what} is not iterable`;
    } else if (error.name === "ReferenceError") {
      const of = /^([\w$]{1,59}) is not initialized$/.exec(message);
      if (of?.[1] === "this") return "Must call super constructor in derived class before accessing 'this' or returning from derived constructor";
      if (of) return `Cannot access '${of[1]}' before initialization`;
    }
    return undefined;
  }

  /** An error without its frames: Name: message. */
  function titled(error: unknown): string {
    if (!(error instanceof Error)) return `thrown: ${describe(error)}`;
    const { name, message } = error;
    const code = (error as { code?: unknown }).code;
    let text = heading(error);
    if ((name === "HostError" || error instanceof NetworkError) && code) text = message ? `${code}: ${message}` : `${code}`;
    const full = inFull(error);
    if (full !== undefined) text = `${name}: ${full}`;
    return text;
  }

  const guarded =
    <T extends unknown[]>(tell: (error: unknown, ...more: T) => string) =>
    (error: unknown, ...more: T): string => {
      try {
        return tell(error, ...more);
      } catch {
        return "thrown: an error that cannot be described, because its getters throw";
      }
    };

  const trace = guarded((error, causes: number = 0): string => {
    let text = titled(error);
    if (!(error instanceof Error)) return text;
    const at = placed(error);
    if (at.length > 0) text += ` at ${at.slice(0, 10).map((frame) => frame.slice(7)).join(", ")}`;
    if (error.cause !== undefined && causes < mostCauses) text += `; because of ${trace(error.cause, causes + 1)}`;
    return text;
  });

  /** The message of a report: a line for the error, and one for each cause or error in it. */
  const message = guarded((error, causes: number = 0): string => {
    let text = titled(error);
    if (!(error instanceof Error) || causes === mostCauses) return text;
    if (causes > 0) text += placed(error)[0]?.replace(/^    at (?:.*\((.*)\)|(.*))$/, " at $1$2") ?? "";
    const errors = (error as { errors?: unknown }).errors;
    if (error instanceof AggregateError && Array.isArray(errors)) {
      for (const one of errors.slice(0, mostCauses)) text += `\nwith ${message(one, causes + 1)}`;
    }
    if (error.cause !== undefined && error.cause !== error) text += `\nbecause of ${message(error.cause, causes + 1)}`;
    return text;
  });

  runner.trace = trace;
  runner.raw = raw;
  runner.located = located;
  runner.report = (kind, error, text, at) => {
    try {
      if (error instanceof Error) at ??= placed(error);
    } catch {} // its getter throws
    return [kind, ...(text ?? message(error)).split("\n").map((of) => (/^ *at /.test(of) ? of.trimStart() : of)), ...(at ?? [])].join("\n");
  };
  runner.moved = (error, stack) => keep(error, [heading(error), ...frames(stack)].join("\n"));
}

/** The first line of a stack, as Error.prototype.toString writes it. */
function heading(error: object): string {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return "Error";
  }
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
