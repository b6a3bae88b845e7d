// CompressionStream and DecompressionStream (Compression Standard). This script is optional: see
// develop/toolchain/typescript/parts.go.

import { Compressor } from "./compressor.ts";
import { bytesOf } from "./encoding.ts";
import { expose } from "./define.ts";
import { HostError, unplaced } from "../host.ts";

const { TransformStream } = globalThis;
const formats = ["brotli", "deflate", "deflate-raw", "gzip"];

/** A stream that compresses its chunks, or decompresses them. */
function transform(name: string, format: string, decompress: boolean): TransformStream {
  if (!formats.includes(format)) throw new TypeError(`${name}: the format must be ${formats.join(", ")}, not ${JSON.stringify(format)}`);
  const compressor = new Compressor(format, decompress);
  function write(bytes: Uint8Array, end: boolean, controller: TransformStreamDefaultController): void {
    try {
      compressor.write(bytes, end, (piece) => controller.enqueue(piece));
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== "invalid") throw error;
      throw new TypeError(`${name}: ${error.message.replace(/^[\w.]+: /, "")} (${format})`);
    }
  }
  function tried(does: () => void): Promise<never> | undefined {
    try {
      does();
      return undefined;
    } catch (error) {
      return Promise.reject(unplaced(error));
    }
  }
  return new TransformStream({
    transform: (chunk: any, controller) =>
      tried(() => {
        if (typeof chunk === "string") throw new TypeError(`${name}: a chunk must be bytes: pipe text through a TextEncoderStream`);
        const bytes = bytesOf(chunk);
        if (!(bytes.buffer instanceof ArrayBuffer)) throw new TypeError(`${name}: a chunk cannot be in a SharedArrayBuffer`);
        write(bytes, false, controller);
      }),
    flush: (controller) => tried(() => write(new Uint8Array(0), true, controller)),
    cancel: () => compressor.close(),
  });
}

class CompressionStream {
  #stream: TransformStream;
  constructor(format: string) {
    this.#stream = transform("CompressionStream", `${format}`, false);
  }
  get readable(): ReadableStream {
    return this.#stream.readable;
  }
  get writable(): WritableStream {
    return this.#stream.writable;
  }
}

class DecompressionStream {
  #stream: TransformStream;
  constructor(format: string) {
    this.#stream = transform("DecompressionStream", `${format}`, true);
  }
  get readable(): ReadableStream {
    return this.#stream.readable;
  }
  get writable(): WritableStream {
    return this.#stream.writable;
  }
}

expose("CompressionStream", CompressionStream);
expose("DecompressionStream", DecompressionStream);
