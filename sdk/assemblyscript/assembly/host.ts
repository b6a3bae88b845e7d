// The way down: operations, and what becomes of a failed one. AssemblyScript has no
// exceptions, so an error that the handler does not check answers and ends the request, as if it had
// returned: WASI's proc_exit unwinds to the host.

import { call as host_call, errnoName, log as host_log, response_error } from "./abi";
import { __runnerUnfit, parseJSON, member, oddOf } from "./json";
import { decode, pieces, Source } from "./memory";

@external("wasi_snapshot_preview1", "proc_exit")
declare function proc_exit(status: i32): void;

/** Why an operation failed. */
export class HostError {
  constructor(
    /** One of not_found, invalid, denied, conflict, too_large, limit, unavailable, deadline, internal. */
    public code: string,
    public message: string = "",
    /** The operation that failed; empty of an error that a handler made. */
    public op: string = "",
    /** The entity of an operation on rows; may be empty. */
    public entity: string = "",
    /** The field that the error is about, such as email for a conflict. The fields of @@unique are separated by commas. May be empty. */
    public field: string = "",
  ) {}

  toString(): string {
    return this.message.length > 0 ? this.code + ": " + this.message : this.code;
  }
}

/** Parses a part of a result. If a value does not match T, the request ends with 500: a decimal is text, not a number. */
function fitting<T>(text: string): T {
  const unfit = text.length > 0 ? __runnerUnfit<T>(text, 0) : "";
  if (unfit.length > 0) fail(new HostError("invalid", "read the result as a class: " + (unfit.startsWith(" ") ? "it" : "") + unfit));
  return parseJSON<T>(text);
}

/** What an operation gave. */
export class Outcome {
  /** The operation failed, and why; null when it did not. */
  error: HostError | null = null;

  private text: string | null = null;

  /** The result as JSON, read when it is asked for, or when the next operation takes its place. */
  get json(): string {
    const known = this.text;
    if (known !== null) return known;
    const failed = this.error;
    if (failed !== null) fail(failed);
    const read = decode(pieces(Source.Result));
    if (read.length == 0) fail(failure("", "limit")); // a result is never empty
    this.text = read;
    last = null;
    return read;
  }

  /** A member of the result, as JSON; empty when it is not there. */
  member(name: string): string {
    return member(this.json, name);
  }

  /** The rows of the result. */
  rows<T>(): T[] {
    return fitting<T[]>(this.member("rows"));
  }

  /** The row of the result, or the first of its rows; without any it fails with not_found. */
  row<T>(): T {
    const one = this.member("row");
    if (one.length > 0) return fitting<T>(one);
    const rows = this.rows<T>();
    if (rows.length == 0) fail(new HostError("not_found", "no row matches the conditions"));
    return rows[0];
  }

  /** How many rows it was about. */
  get count(): i32 {
    return parseJSON<i32>(this.member("count"));
  }

  /** Whether there are more rows than an operation was about, if it was given their number. */
  get more(): bool {
    return parseJSON<bool>(this.member("more"));
  }

  /** The cursor of the next page, empty on the last one. */
  get nextCursor(): string {
    return parseJSON<string>(this.member("nextCursor"));
  }

  /** The whole result as a T. */
  as<T>(): T {
    return parseJSON<T>(this.json);
  }
}

/** Runs any operation of the runner, JSON in; one that fails answers and ends the request. */
export function call(op: string, args: string = "{}"): Outcome {
  const outcome = tryCall(op, args);
  const failed = outcome.error;
  if (failed !== null) fail(failed);
  return outcome;
}

/** Runs any operation of the runner, JSON in; the outcome's error says whether it failed. */
export function tryCall(op: string, args: string = "{}"): Outcome {
  const odd = oddOf(args);
  if (odd !== null) {
    const refused = new Outcome();
    refused.error = new HostError("invalid", op + ": " + odd.place + " is " + odd.what + ": check it first, or use nil on purpose", op);
    return refused;
  }
  keepLast();
  const name = String.UTF8.encode(op);
  const text = String.UTF8.encode(args);
  return settled(op, host_call(changetype<usize>(name), name.byteLength, changetype<usize>(text), text.byteLength));
}

// What the last operation gave, while only the host has it.
let last: Outcome | null = null;

/** Reads what the last operation gave, as another one is about to take its place. */
export function keepLast(): void {
  const unread = last;
  if (unread !== null) unread.json;
  last = null;
}

/** What an operation gave whose call returned n. */
export function settled(op: string, n: i32): Outcome {
  const outcome = new Outcome();
  if (n >= 0) {
    last = outcome;
    return outcome;
  }
  outcome.error = failure(op, errnoName(n));
  return outcome;
}

/** What the host says of a call that failed with a code, or of reading its result. */
function failure(op: string, code: string): HostError {
  const text = decode(pieces(Source.Result));
  if (text.length == 0) return new HostError(code, "", op);
  return new HostError(parseJSON<string>(member(text, "code")), parseJSON<string>(member(text, "message")), op, textOf(text, "entity"), textOf(text, "field"));
}

/** A text of an object; empty when it is not there. */
function textOf(object: string, name: string): string {
  const text = member(object, name);
  return text.length == 0 ? "" : parseJSON<string>(text);
}

// The operations on rows.
const rows: string[] = ["query", "get", "count", "aggregate", "insert", "update", "delete"];

/**
 * Answers with the error of a failed operation that the handler did not check, and ends the request. What
 * one on rows or keys says is for the caller, anything else for the log alone.
 */
export function fail(error: HostError): void {
  const op = error.op;
  if (op.length == 0 || op == "webhooks.verify" || rows.includes(op) || op.startsWith("apiKeys.") || op.startsWith("sessions.") || op.startsWith("jobs.")) {
    if (error.code == "not_found") end(404, "not_found", error.message);
    if (error.code == "denied") end(403, "forbidden", error.message);
    if (error.code == "conflict") end(409, "conflict", error.message);
    if (error.code == "unavailable") end(503, "unavailable", error.message);
  }
  failed(error.toString());
}

// The handler that runs, for the log; empty when none does.
let current = "";

export function setCurrent(name: string): void {
  current = name;
}

export function running(): bool {
  return current.length > 0;
}

/** Reports why a handler cannot answer, and where if that is known, answers 500 and ends the request. */
export function failed(why: string, kind: string = "error", place: string = ""): void {
  if (running()) writeLog(4, kind + "\n" + why + (place.length == 0 ? "" : "\n    at " + place));
  else writeLog(3, why);
  end(500, "handler_failed", "");
}

/** Answers with a failure, or breaks off the answer that has begun, and ends the request. */
export function end(status: i32, code: string, message: string): void {
  const c = String.UTF8.encode(code);
  const m = String.UTF8.encode(message);
  const n = response_error(status, changetype<usize>(c), c.byteLength, changetype<usize>(m), m.byteLength);
  if (n < 0) {
    if (errnoName(n) == "denied") writeLog(3, "operations are for handlers: what stands outside of functions is evaluated once, before there is a request");
    unreachable(); // what was answered before must not stand: a trap takes it back
  }
  proc_exit(0);
  unreachable();
}

/** Writes to the server's log; levels are 0 debug, 1 info, 2 warn, 3 error. */
export function writeLog(level: i32, text: string): void {
  const line = String.UTF8.encode(text);
  host_log(level, changetype<usize>(line), line.byteLength);
}
