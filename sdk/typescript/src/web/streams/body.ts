// Streams as bodies: what Request, Response and Blob need of them (Fetch Standard, 2.2.4; Streams Standard, 9).

import { runner, withoutPlace } from "../../host.ts";
import { bytesOf } from "../encoding.ts";
import { deferred, settled, upon } from "./common.ts";
import { ByteController, byteStream } from "./bytes.ts";
import { read, Readable, Reader, State } from "./readable.ts";
import { innerReadable, ReadableStream } from "./readablestream.ts";
import { tee } from "./tee.ts";

/** A stream of bytes in memory. Most are taken as a whole, so the controller is made when it is first used. */
class Bytes extends Readable {
  declare readonly bytes: () => Uint8Array;
  declare made: ByteController | undefined;

  constructor(bytes: () => Uint8Array) {
    super();
    this.bytes = bytes;
    this.made = undefined;
  }
}
Object.defineProperty(Bytes.prototype, "controller", {
  get(this: Bytes): ByteController {
    if (!this.made) byteStream(() => given(this.made!, this.bytes()), undefined, 0, this);
    return this.made!;
  },
  set(this: Bytes, made: ByteController) {
    this.made = made;
  },
});

function given(controller: ByteController, chunk: Uint8Array): Promise<undefined> {
  if (chunk.length > 0) controller.enqueue(chunk);
  controller.end();
  return settled;
}

/** Bytes of a body that arrives, and whether they are the last. Without a prototype, as Whole. */
export interface Part extends Whole {
  end: boolean;
}

/** A stream of bytes that the host still receives. Nothing is read ahead. */
class Arriving extends Readable {
  /** Reads what has come, or all of the rest. */
  declare readonly next: (whole: boolean) => Promise<Part>;

  constructor(next: (whole: boolean) => Promise<Part>, close: () => void) {
    super();
    this.next = next;
    const given = ({ bytes, end }: Part): void => {
      const controller = this.controller as ByteController;
      if (bytes.length > 0) controller.enqueue(bytes);
      if (end) controller.end();
    };
    const cancel = (): Promise<unknown> => {
      close();
      return settled;
    };
    byteStream(() => upon(next(false), given), cancel, 0, this);
  }
}

/** A stream of bytes that the host still receives, and what makes it fail. */
export function streamOfParts(next: (whole: boolean) => Promise<Part>, close: () => void): [ReadableStream, (reason: unknown) => void] {
  const of = new Arriving(next, close);
  return [new ReadableStream(of), (reason) => of.controller.error(reason)];
}

// The reader of a stream whose bytes were taken.
const taker = new Reader(new Readable());

/** A stream of bytes in memory, in one chunk. The function is called when they are read, and the reader owns its result. */
export const streamOf = (bytes: () => Uint8Array): ReadableStream => new ReadableStream(new Bytes(bytes));

export const isLocked = (stream: ReadableStream): boolean => innerReadable(stream).reader !== undefined;

/** Whether it was read or cancelled. */
export const isDisturbed = (stream: ReadableStream): boolean => innerReadable(stream).disturbed;

/** The bytes of a stream that streamOf has made, without a promise; undefined for others, and if it is in use. The stream is read and locked then. */
export function takeBytes(stream: ReadableStream): Uint8Array | undefined {
  const of = innerReadable(stream);
  if (!(of instanceof Bytes) || of.made || of.disturbed || of.reader) return undefined;
  of.disturbed = true;
  of.state = State.closed;
  of.reader = taker;
  return of.bytes();
}

/** A result of readBytes. It has no prototype, so that a method then of Object.prototype is not called with it. */
export interface Whole {
  bytes: Uint8Array;
}

/** All bytes of a stream, which is locked then. A chunk that is not a Uint8Array is a TypeError. */
export function readBytes(stream: ReadableStream): Promise<Whole> {
  const of = innerReadable(stream);
  if (of instanceof Arriving && of.state === State.readable && !of.disturbed && !of.reader) {
    of.disturbed = true;
    of.state = State.closed;
    of.reader = taker;
    return of.next(true);
  }
  const reader = new Reader(of);
  const { promise, resolve, reject } = deferred();
  const chunks: Uint8Array[] = [];
  let here = false; // a chunk has come before read has returned
  const next = (): void => {
    do {
      here = false;
      let returned = false;
      read(reader, {
        chunk(chunk) {
          if (!(chunk instanceof Uint8Array)) return reject(withoutPlace(() => new TypeError("a body's stream must give Uint8Arrays: pipe text through a TextEncoderStream")));
          try {
            chunks.push(new Uint8Array(bytesOf(chunk))); // as the source may fill its buffer again
          } catch (error) {
            return reject(error); // without memory; the source must not get it
          }
          if (returned) next();
          else here = true;
        },
        close: () => resolve({ __proto__: null, bytes: chunks.length === 1 ? chunks[0] : join(chunks) }),
        error: reject,
      });
      returned = true;
    } while (here);
  };
  next();
  return promise;
}

/** All parts in one new array. */
export function join(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Two streams of the same chunks, for clone. The second one gets copies. */
export function teeBody(stream: ReadableStream): [ReadableStream, ReadableStream] {
  const [one, two] = tee(innerReadable(stream), (chunk) => runner.clone(chunk, [])[0]);
  return [new ReadableStream(one), new ReadableStream(two)];
}
