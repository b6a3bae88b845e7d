// What the language itself calls: the build names these with --use.

import { end, failed, running, writeLog } from "./host";

@external("wasi_snapshot_preview1", "random_get")
declare function random_get(buf: usize, length: i32): i32;

// What aborts now does so because the body does not fit its type.
let parsing = false;

export function setParsing(is: bool): void {
  parsing = is;
}

/** Ends a handler that threw or failed an assertion: a line in the log, and 500. */
export function abort(message: string | null = null, file: string | null = null, line: u32 = 0, column: u32 = 0): void {
  const what = message === null || message.length == 0 ? "it aborted" : message;
  if (parsing) end(400, "invalid_json", "read the JSON body: " + what);
  const place = file === null ? "" : file + ":" + line.toString() + ":" + column.toString();
  if (running()) failed(what, "abort", place);
  writeLog(3, place.length == 0 ? what : what + " (" + place + ")"); // while the module is initialized
  unreachable();
}

/** Writes a line of `trace` to the log. */
export function trace(
  message: string, n: i32 = 0, a0: f64 = 0, a1: f64 = 0, a2: f64 = 0, a3: f64 = 0, a4: f64 = 0,
): void {
  let line = message;
  if (n > 0) line += " " + a0.toString();
  if (n > 1) line += ", " + a1.toString();
  if (n > 2) line += ", " + a2.toString();
  if (n > 3) line += ", " + a3.toString();
  if (n > 4) line += ", " + a4.toString();
  writeLog(0, line);
}

const entropy = memory.data(8);

// Math.random was seeded before there was a request: each begins with that state.
let early = false;

/** Seeds Math.random. */
export function seed(): f64 {
  if (!running()) early = true;
  return reinterpret<f64>(draw());
}

/** Gives Math.random a state of this request, where it would have that of all. */
export function reseed(): void {
  if (early) NativeMath.seedRandom(draw());
}

function draw(): i64 {
  if (random_get(entropy, 8) != 0) unreachable();
  return load<i64>(entropy);
}
