// From a request to its answer. The module's export for handler n calls
// dispatch(n), does the jobs that are pending, and then calls finish(). That may say
// that there is something to wait for; then dispatch(-1) goes on.

import { bytesOf, fromBase64 } from "./web/encoding.ts";
import { errno, forget, forgotten, hasForgotten, HostError, last, latest, Operation, run, runner, starts } from "./host.ts";
import { FileBody } from "./files.ts";
import { isThenable, noJSON } from "./plain.ts";
import { BodyError, RouteRequest } from "./request.ts";
import { Chunks, forms, Response } from "./response.ts";

type Handler = (request: RouteRequest) => unknown;

// The handlers and their names, as dispatch counts them.
const handlers: Handler[] = [];
const names: string[] = [];
// Every request begins with the memory that the build has left, so this one is new
// in each.
const request = new RouteRequest();
const { stringify } = JSON;
const { getPrototypeOf, keys } = Object;
const { isArray } = Array;
const { host } = runner;
// With var, as each use of let and const is checked.
var current = 0;
var done = false;
var trap = false;
var endless = "the promise that the handler returned can never settle";
// The report of the failure of the handler. It is the last report of the run.
var failure: string | undefined;
var position: string | undefined; // the stack of the run when it was interrupted

/** Makes handlers of what the files export. The build reads the names. */
export function serve(files: [file: string, module: Record<string, unknown>][]): void {
  const found: { name: string; file: string; kind: string }[] = [];
  const defaults: { name: string; file: string; kind: string }[] = [];
  for (const [file, module] of files) {
    for (const name of Object.keys(module)) {
      const given = module[name];
      if (typeof given !== "function") continue;
      if (name === "default") {
        defaults.push({ name: given.name, file, kind: kindOf(given) });
        continue;
      }
      found.push({ name, file, kind: kindOf(given) });
      names.push(name);
      handlers.push(given as Handler);
    }
  }
  runner.defaults = stringify(defaults);
  runner.names = stringify(found);
  runner.dispatch = dispatch;
  runner.finish = finish;
  runner.threw = (error) => {
    if (!runner.handled?.(error)) fail(error);
  };
  runner.interrupted = interrupted;
  runner.stopped = stopped;
  runner.seal = () => {
    runner.live = true;
    runner.frozen = [];
    forget();
    delete (globalThis as { __runner?: unknown }).__runner;
  };
  // What is there needs not be made in a request.
  const never = new Promise(() => {});
  const pending = (async () => {
    await never;
  })();
  runner.kept = [forms, {}, [], never, pending, pending.then(settle, fail), stringify({ a: [1, "", true, null] })];
}

/** What a function is that is none to call: empty of one that is. */
function kindOf(given: Function): string {
  if (Object.getOwnPropertyDescriptor(given, "prototype")?.writable === false) return "class";
  const tag = Object.getPrototypeOf(given)?.[Symbol.toStringTag];
  return tag === "GeneratorFunction" || tag === "AsyncGeneratorFunction" ? "generator" : "";
}

/** 0: it has ended, without an error to report. */
function dispatch(n: number): number {
  try {
    if (n < 0) {
      runner.wake();
      return 1;
    }
    current = n;
    // With var, as each use of let and const is checked.
    var given: any = handlers[n](request);
    // The most common answer first, and here: a call takes longer than what follows.
    if (
      given?.constructor === Response && given.body?.constructor === Object && given.body.then === undefined &&
      given.message === undefined && given.headers === undefined
    ) {
      var sent = host.response_send(given.status, given.body);
      if (sent !== 0) sendAgain(given.status, given.body, sent);
      done = true;
    } else {
      answer(given);
    }
  } catch (error) {
    fail(error);
  }
  return done && failure === undefined && runner.unseen === 0 && runner.timers === 0 && (latest === undefined || !hasForgotten()) ? 0 : 1;
}

/** Answers with what a handler gave, once it is there. */
function settle(given: unknown): void {
  try {
    answer(given);
  } catch (error) {
    fail(error);
  }
}

function answer(given: any): void {
  // The most common cases first: what follows takes longer to tell.
  if (given?.constructor === Response && given.body?.then === undefined) {
    if (given.message !== undefined || given.headers !== undefined) done = send(given);
    else {
      sendBody(given.status, given.body);
      done = true;
    }
    return;
  }
  if (given?.constructor === Promise) {
    host.react(given, settle, fail);
    return;
  }
  if (!(given instanceof Operation) && isThenable(given)) {
    given.then(settle, fail);
    return;
  }
  if (given instanceof globalThis.Response) {
    const stream = runner.stream(given);
    if (stream === undefined) {
      pass(given);
      done = true;
      return;
    }
    passHeaders(given, true);
    flow(given.status, stream);
    return;
  }
  const response = given instanceof Response ? given : plain(given);
  if (!(response.body instanceof Operation) && isThenable(response.body)) {
    response.body.then((body) => settle(new Response(response.status, body, undefined, response.headers)), fail);
    return;
  }
  done = send(response);
}

/** Begins the answer, and sends it chunk by chunk. */
function flow(status: number, chunks: Iterable<unknown> | AsyncIterable<unknown>): void {
  const n = host.response_begin(status);
  if (n < 0) refused(n, `begin an answer with status ${status}`);
  endless = "the stream of the answer never ends";
  sendChunks(chunks).then(() => {
    done = true;
  }, fail);
}

async function sendChunks(chunks: Iterable<unknown> | AsyncIterable<unknown>): Promise<void> {
  const isBody = chunks instanceof ReadableStream;
  for await (const chunk of chunks) {
    if (isBody && !(chunk instanceof Uint8Array)) {
      throw new TypeError("a body's stream must give Uint8Arrays: pipe text through a TextEncoderStream");
    }
    const bytes = typeof chunk === "string" ? chunk.toWellFormed() : chunk;
    if (typeof bytes !== "string" && !(bytes instanceof Uint8Array)) {
      throw new TypeError(`a chunk of the answer must be text or a Uint8Array, not ${bytes === null ? "null" : typeof bytes}`);
    }
    if (bytes.length > 0 && host.response_write(bytes) < 0) return; // the client is gone: the iterator ends
  }
}

// The headers that only the host sets.
const hostsOwn =
  /^(connection|transfer-encoding|content-length|date|server|trailer|upgrade|te|keep-alive|x-request-id|(proxy-|ratelimit).*)$/;

/** Answers with a Response of the Fetch Standard. Of what fetch gave only the content type is passed. */
function pass(response: globalThis.Response): void {
  const content = runner.take(response);
  const body = typeof content === "string" || content instanceof Uint8Array ? content : fromBase64(content.base64);
  passHeaders(response, body.length > 0);
  deliver(response.status, body.length > 0 ? body : "");
}

function passHeaders(response: globalThis.Response, hasBody: boolean): void {
  const made = response.url === "";
  var typed = false;
  for (const [name, value] of runner.headers(response)) {
    typed ||= name === "content-type";
    // Only on routes without credentials that the host checks.
    if (made && name === "www-authenticate") host.response_header(name, inBytes(value));
    else if (made ? !hostsOwn.test(name) : name === "content-type") setHeader(name, inBytes(value));
  }
  if (made && hasBody && !typed) setHeader("content-type", "application/octet-stream");
}

/** A value that is not an answer becomes the body of ok. */
function plain(value: unknown): Response {
  if (value === undefined) throw new Error("it returned nothing: return ok(…), noContent() or another helper's answer");
  return new Response(200, value);
}

/** The bytes of a value of Headers, whose characters they are; text as it is. */
function inBytes(value: string): string | Uint8Array {
  return /^[\0-\x7f]*$/.test(value) ? value : Uint8Array.from(value, (c) => c.charCodeAt(0));
}

function setHeader(name: string, value: string | Uint8Array): void {
  const n = host.response_header(name, value);
  if (n < 0) refused(n, `set header ${stringify(name)}`);
}

/** False: the answer has only begun. */
function send(response: Response): boolean {
  const { status, body, message, headers } = response;
  if (headers !== undefined) {
    for (const [name, value] of headers) setHeader(name, value);
  }
  if (typeof message === "object") {
    const { code, detail, ...members } = message as { code?: string; detail?: string };
    run("problem", { status, code, detail, members });
    return true;
  }
  if (message !== undefined) {
    const n = host.response_error(status, "", message);
    if (n < 0 && !(status >= 400 && status <= 599)) throw new AnswerError(`the status of an error must be from 400 to 599, not ${status}`);
    if (n < 0) refused(n, `answer with an error of status ${status}`);
    return true;
  }
  if (body instanceof Operation) {
    handOn(status, body);
    return true;
  }
  if (body instanceof Chunks) {
    flow(status, body.source);
    return false;
  }
  if (body instanceof FileBody) {
    body.send(status);
    return true;
  }
  if (typeof body === "string" && hasTextType(headers)) deliver(status, body.toWellFormed());
  else sendBody(status, body);
  return true;
}

/** Whether the content type is one whose text is not JSON. */
function hasTextType(headers: Response["headers"]): boolean {
  const type = headers?.find(([name]) => name.toLowerCase() === "content-type");
  return type !== undefined && !/[/+]json\s*(;|$)/i.test(type[1]);
}

function sendBody(status: number, body: any): void {
  // With var, as each use of let and const is checked.
  var made = body?.constructor;
  var n: number;
  if (made === Object || made === Array) {
    var sent = host.response_send(status, body as object);
    if (sent !== 0) sendAgain(status, body as object, sent);
    return;
  }
  var text = encode(status, body);
  if (text === undefined) throw new TypeError(`a ${typeof body} cannot be a body`);
  // As deliver does: the most common answers go this way, and a call takes long.
  n = host.response_send(status, text);
  if (n < 0) refused(n, `answer with status ${status} and ${text.length} characters`);
}

/** Goes on when the host has not sent a list or an object: it has refused it or, without a number, left it to JSON. */
function sendAgain(status: number, body: object, n: number | undefined): void {
  n ??= host.response_send(status, written(body, false));
  if (n < 0) refused(n, `answer with status ${status} and ${stringify(body).length} characters`);
}

function deliver(status: number, body: string | Uint8Array): void {
  var n = host.response_send(status, body);
  if (n < 0) refused(n, `answer with status ${status} and ${body.length} characters`);
}

function encode(status: number, body: unknown): string | Uint8Array {
  if (body === undefined) return status === 204 || status >= 300 ? "" : "null";
  if (typeof body !== "object" || body === null) return stringify(body);
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return body.byteLength > 0 ? bytesOf(body) : "";
  return written(body, true);
}

/** A list or an object as JSON. What JSON would make an empty object of is refused. */
function written(body: object, odd: boolean): string {
  var text = stringify(body);
  if (odd || text.includes("{}")) refuseEmptied(body);
  return text;
}

// Looks at each value once, however deep it lies: what a caller has sent may be among
// them, in any form. JSON has been made of the body, so it has no circle.
function refuseEmptied(body: object): void {
  // With var, as each use of let and const is checked.
  var open: any[] = [body];
  while (open.length > 0) {
    var value = open.pop();
    if (typeof value.toJSON === "function") continue;
    var callable = false;
    if (isArray(value)) {
      for (var i = 0; i < value.length; i++) if (typeof value[i] === "object" && value[i] !== null) open.push(value[i]);
    } else {
      for (var names = keys(value), i = 0; i < names.length; i++) {
        var member = value[names[i]];
        if (typeof member === "function") callable = true;
        else if (typeof member === "object" && member !== null) open.push(member);
      }
    }
    // Most are lists and objects of data alone, and noJSON takes long to tell.
    var prototype = getPrototypeOf(value);
    if (prototype === Array.prototype || (prototype === Object.prototype && !callable && !(Symbol.asyncIterator in value))) continue;
    var remedy = value instanceof Response ? ["an answer", "return it as it is"] : noJSON(value);
    if (remedy !== undefined) throw new TypeError(`${remedy[0]} cannot be ${value === body ? "" : "part of "}a body: ${remedy[1]}`);
  }
}

/** Answers with an operation's result, without reading it where that can be. */
function handOn(status: number, operation: Operation<unknown>): void {
  let part: number | undefined;
  let value: unknown;
  starts(operation);
  try {
    part = operation.leave();
    if (part === undefined) value = operation.perform();
  } catch (error) {
    if (error instanceof HostError && operation.at) runner.moved(error, operation.at.stack);
    throw error;
  }
  if (part === undefined) {
    send(new Response(status, value));
    return;
  }
  const n = host.response_send_result(status, part);
  if (n >= 0) return;
  if (errno(n) === "not_found") throw new HostError("not_found", "no row matches the conditions", "query");
  refused(n, `answer with status ${status} and the last result`);
}

class AnswerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AnswerError";
  }
}

/** A refused answer is an error of the handler, with any code. */
function refused(n: number, act: string): never {
  throw new AnswerError(`${act}: ${errno(n)}`);
}

// The answer to an error of an operation on rows or keys that the handler did not catch: it
// depends on what the caller may do. Any other error is 500, and only the log has it.
const answers: Record<string, [status: number, code: string]> = {
  not_found: [404, "not_found"],
  denied: [403, "forbidden"],
  conflict: [409, "conflict"],
  unavailable: [503, "unavailable"],
};

const callers = /^(query|get|count|insert|update|delete|webhooks\.verify|(apiKeys|sessions|jobs)\..*)$/;

function fail(error: unknown): void {
  if (done) { // the answer is sent
    runner.uncaught(error);
    return;
  }
  forget(); // the error may be the reason that a change was not awaited
  runner.timers = 0; // or that a timer still runs
  if (error instanceof Response || error instanceof globalThis.Response) {
    settle(error);
    return;
  }
  done = true;
  if (isOutOfMemory(error)) trap = true; // the host has seen it, and knows what to answer
  if (error instanceof BodyError) {
    host.response_error(400, "invalid_json", error.message);
    return;
  }
  if (error instanceof HostError && (error.op === undefined || callers.test(error.op))) {
    const known = answers[error.code];
    if (known) {
      host.response_error(known[0], known[1], error.message);
      return;
    }
  }
  failure = runner.report("exception", error);
  host.response_error(500, "handler_failed", "");
}

function isOutOfMemory(error: unknown): boolean {
  try {
    // Without memory for the error, null is thrown.
    return host.exhausted() !== 0 && (error === null || (error instanceof Error && error.name === "InternalError" && error.message === "out of memory"));
  } catch {
    return false; // its getters throw
  }
}

/** -1: trap. 0: it is over. n: wait n-1 milliseconds and go on. */
function finish(): number {
  if (done && failure === undefined && runner.unseen === 0 && runner.timers === 0 && !hasForgotten()) return 0;
  if (runner.unseen > 0 && runner.notify?.()) return 1;
  if (!done && runner.idle?.()) return 1;
  const pause = done ? undefined : runner.pause();
  if (!done && runner.await(pause)) return 1;
  if (pause !== undefined) return pause + 1;
  for (const reason of runner.lost().slice(0, 3)) runner.uncaught(reason, "unhandled rejection");
  for (const what of forgotten().slice(0, 3)) {
    host.log(2, `handler ${names[current]}: ${what} was never awaited, so nothing was written: add await`);
  }
  if (runner.timers > 0) host.log(2, `handler ${names[current]}: ${runner.trace(runner.timer())}`);
  if (!done) {
    done = true;
    failure = runner.report("exception", undefined, endless);
    host.response_error(500, "handler_failed", "");
  }
  if (trap) return -1; // stopped reports it
  if (failure !== undefined) host.log(4, failure);
  return 0;
}

// The engine stores the position of a frame when it calls a function or throws an error, and
// only then asks how to write the error's stack. What it throws now has a position that may
// be before or behind the loop that it is in, so it counts only if the frame has no other.
function interrupted(): void {
  const [, ...frames] = (runner.raw(new Error()) as string).split("\n"); // without this function
  if (/\bhandlers\.js:\d/.test(frames[0])) position ??= frames.join("\n");
  (Error as { prepareStackTrace?: unknown }).prepareStackTrace = (_: unknown, sites: object[]) => {
    position ??= sites.map(runner.line).join("\n");
  };
}

function stopped(): void {
  if (failure !== undefined) host.log(4, failure);
  if (trap) return; // that has the place where memory ran out
  (Error as { prepareStackTrace?: unknown }).prepareStackTrace = undefined;
  const at = runner.located(position ?? runner.raw(new Error()));
  if (at.length > 0) {
    host.log(4, runner.report("stopped", undefined, "", at));
    return;
  }
  // While the handler waits or an operation runs, the stack has no frame of it.
  const waiting = runner.waiting();
  const why = waiting ? waiting.name : last ? `in ${last.title}` : "";
  host.log(4, runner.report("stopped", waiting ?? last?.at, why));
}
