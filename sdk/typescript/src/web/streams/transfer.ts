// The transfer of streams by structuredClone (Streams Standard, 4.2.5, 5.2.5 and 6.2.4). Both ends are in one program, so
// a transform that clones the chunks replaces the two message ports of the standard.

import { DOMException } from "../exception.ts";
import { runner } from "../../host.ts";
import { has } from "./inner.ts";
import { pipe, pipeOptions } from "./pipe.ts";
import { type Readable } from "./readable.ts";
import { innerReadable, isReadable, ReadableStream } from "./readablestream.ts";
import { Sides, type Transform, transformer, TransformStream } from "./transform.ts";
import { Writable } from "./writable.ts";
import { innerWritable, WritableStream } from "./writablestream.ts";

const copying = (): Transform => transformer((chunk) => runner.clone(chunk, [])[0]);

/** A new stream in place of the transferred one, and the function that begins to pipe between them; undefined if the value is not a stream. */
export function transferStream(value: any): { receiver: object; move(): void } | undefined {
  if (isReadable(value)) {
    const { readable, writable } = copying();
    return { receiver: new ReadableStream(readable), move: () => moved(innerReadable(value), writable) };
  }
  if (has(value, Writable)) {
    const { readable, writable } = copying();
    return { receiver: new WritableStream(writable), move: () => moved(readable, innerWritable(value)) };
  }
  if (!(value instanceof TransformStream)) return undefined;
  const reads = copying();
  const writes = copying();
  const from = innerReadable(value.readable);
  const to = innerWritable(value.writable);
  return {
    receiver: new TransformStream(new Sides(reads.readable, writes.writable)),
    move: () => {
      unlocked(from, to);
      moved(from, reads.writable);
      moved(writes.readable, to);
    },
  };
}

function unlocked(from: Readable, to: Writable): void {
  if (from.reader || to.writer) throw new DOMException("structuredClone: a stream that is locked cannot be transferred", "DataCloneError");
}

function moved(from: Readable, to: Writable): void {
  unlocked(from, to);
  pipe(from, to, pipeOptions(undefined), true);
}
