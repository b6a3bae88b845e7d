// The Streams Standard, and the streams of the Encoding Standard, as globals.

import { expose } from "../define.ts";
import { ByobRequest } from "./bytes.ts";
import { LazyPromise, Queue } from "./common.ts";
import { ReadableByteStreamController, ReadableStreamBYOBRequest, ReadableStreamDefaultController } from "./controllers.ts";
import { Controller, Readable, Reader } from "./readable.ts";
import { ReadableStream } from "./readablestream.ts";
import { Read, ReadableStreamBYOBReader, ReadableStreamDefaultReader } from "./readers.ts";
import { ByteLengthQueuingStrategy, CountQueuingStrategy } from "./strategies.ts";
import { Tee } from "./tee.ts";
import { TextDecoderStream, TextEncoderStream } from "./text.ts";
import { Transform, TransformStream, TransformStreamDefaultController } from "./transform.ts";
import { Writable, WritableController, Writer } from "./writable.ts";
import { WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter } from "./writablestream.ts";

export function installStreams(): void {
  // So members that scripts add to Object.prototype do not change a stream's state.
  for (const inner of [ByobRequest, Controller, LazyPromise, Queue, Read, Readable, Reader, Tee, Transform, Writable, WritableController, Writer]) Object.setPrototypeOf(inner.prototype, null);
  expose("ReadableStream", ReadableStream);
  expose("ReadableStreamDefaultReader", ReadableStreamDefaultReader);
  expose("ReadableStreamBYOBReader", ReadableStreamBYOBReader);
  expose("ReadableStreamDefaultController", ReadableStreamDefaultController);
  expose("ReadableByteStreamController", ReadableByteStreamController);
  expose("ReadableStreamBYOBRequest", ReadableStreamBYOBRequest);
  expose("WritableStream", WritableStream);
  expose("WritableStreamDefaultWriter", WritableStreamDefaultWriter);
  expose("WritableStreamDefaultController", WritableStreamDefaultController);
  expose("TransformStream", TransformStream);
  expose("TransformStreamDefaultController", TransformStreamDefaultController);
  expose("ByteLengthQueuingStrategy", ByteLengthQueuingStrategy);
  expose("CountQueuingStrategy", CountQueuingStrategy);
  expose("TextEncoderStream", TextEncoderStream);
  expose("TextDecoderStream", TextDecoderStream);
}
