// The controllers of readable streams, as sources see them (Streams Standard, 4.6 to 4.8).

import { wholeNumber } from "./common.ts";
import { ByobRequest, ByteController, isDetached } from "./bytes.ts";
import { inner, made, share, stamp } from "./inner.ts";
import { Controller, DefaultController, State } from "./readable.ts";

/** Checks that a view has bytes, and that its buffer was not transferred. */
export function usable(view: unknown, what: string, empty = false): ArrayBufferView {
  if (!ArrayBuffer.isView(view)) throw new TypeError(`${what} must be a view of an ArrayBuffer`);
  // Web IDL, 3.2.26: a source could shorten it between two reads.
  if ((view.buffer as { resizable?: boolean }).resizable) throw new TypeError(`${what} has a buffer that can be resized`);
  if (isDetached(view.buffer)) throw new TypeError(`${what} has a buffer that was transferred before`);
  if (view.byteLength === 0 && !empty) throw new TypeError(`${what} must not be empty`);
  return view;
}

/** The controller of a stream that is open. */
function open(of: unknown): Controller {
  const controller = inner(of, Controller);
  if (!controller.open()) throw new TypeError(`the stream is ${controller.stream.state === State.errored ? "errored" : "closed"}`);
  return controller;
}

export class ReadableStreamDefaultController {
  // Without declared parameters, as all constructors that scripts cannot call.
  constructor(...given: unknown[]) {
    stamp(this, made(given[0], DefaultController));
  }
  get desiredSize(): number | null {
    return inner(this, Controller).desired();
  }
  close(): void {
    open(this).close();
  }
  enqueue(chunk: unknown = undefined): void {
    inner(this, DefaultController);
    open(this).enqueue(chunk);
  }
  error(error: unknown = undefined): void {
    inner(this, Controller).error(error);
  }
}

export class ReadableByteStreamController {
  constructor(...given: unknown[]) {
    stamp(this, made(given[0], ByteController));
  }
  get byobRequest(): ReadableStreamBYOBRequest | null {
    const request = inner(this, ByteController).byobRequest();
    return request && ((request.seen ??= new ReadableStreamBYOBRequest(request)) as ReadableStreamBYOBRequest);
  }
  enqueue(chunk: unknown): void {
    inner(this, ByteController);
    usable(chunk, "enqueue: the chunk");
    open(this).enqueue(chunk);
  }
}

share(ReadableStreamDefaultController, ReadableByteStreamController, "desiredSize", "close", "error");

export class ReadableStreamBYOBRequest {
  constructor(...given: unknown[]) {
    stamp(this, made(given[0], ByobRequest));
  }
  get view(): Uint8Array | null {
    return inner(this, ByobRequest).view;
  }
  respond(bytesWritten: number): void {
    const request = inner(this, ByobRequest);
    if (arguments.length === 0) throw new TypeError("respond: bytesWritten is missing");
    const written = wholeNumber(bytesWritten, "respond: bytesWritten");
    const controller = current(request);
    usable(request.view, "respond: the view of the request", true);
    controller.respond(written);
  }
  respondWithNewView(view: unknown): void {
    const request = inner(this, ByobRequest);
    if (!ArrayBuffer.isView(view)) throw new TypeError("respondWithNewView: the argument must be a view of an ArrayBuffer");
    const controller = current(request);
    controller.respondWithNewView(usable(view, "respondWithNewView: the view", true));
  }
}

/** The controller of a request. */
function current({ controller }: ByobRequest): ByteController {
  if (!controller) throw new TypeError("the request was answered before, or its stream was cancelled");
  return controller;
}
