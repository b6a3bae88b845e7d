// node:stream/web and node:stream/consumers.

import { Buffer } from "./buffer.ts";

const {
  ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableByteStreamController, ReadableStreamDefaultController,
  WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream, TransformStreamDefaultController,
  ByteLengthQueuingStrategy, CountQueuingStrategy, TextEncoderStream, TextDecoderStream, CompressionStream, DecompressionStream,
} = globalThis as any;

export default {
  ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableByteStreamController, ReadableStreamDefaultController,
  WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream, TransformStreamDefaultController,
  ByteLengthQueuingStrategy, CountQueuingStrategy, TextEncoderStream, TextDecoderStream, CompressionStream, DecompressionStream,
};

/** Collects a stream, an iterator or a list of chunks. */
async function collect(source: any): Promise<any> {
  const parts: any[] = [];
  for await (const part of source) parts.push(typeof part === "string" ? Buffer.from(part) : part);
  return Buffer.concat(parts);
}

const text = async (source: any): Promise<string> => new TextDecoder().decode(await collect(source));

export const consumers = {
  buffer: collect,
  text,
  json: async (source: any) => JSON.parse(await text(source)),
  arrayBuffer: async (source: any) => (await collect(source)).buffer,
  blob: async (source: any) => new Blob([await collect(source)]),
};
