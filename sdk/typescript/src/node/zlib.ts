// node:zlib: the host compresses, as for CompressionStream.

import { HostError } from "../host.ts";
import { Compressor } from "../web/compressor.ts";
import { bytesOf } from "../web/encoding.ts";
import { Buffer } from "./buffer.ts";
import { coded, needFunction, outOfRange, wrongType } from "./errors.ts";
import { Transform } from "./stream.ts";
import { define, inherit } from "./streambase.ts";

interface Options {
  maxOutputLength?: number;
}

/** How many bytes a stream gives the host at least: a request can only call it so many times. */
const leastBytes = 1 << 14;

/** Errors of malformed input are those of zlib. */
class ZlibCompressor extends Compressor {
  override write(bytes: Uint8Array, end: boolean, output: (piece: any) => void): void {
    try {
      super.write(bytes, end, (piece) => output(Buffer.from(piece.buffer)));
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== "invalid") throw error;
      const truncated = /ends too early/.test(error.message);
      throw Object.assign(coded(Error, truncated ? "Z_BUF_ERROR" : "Z_DATA_ERROR", truncated ? "unexpected end of file" : "incorrect data"), { errno: truncated ? -5 : -3 });
    }
  }
}

function bytesFrom(data: any): Uint8Array {
  if (typeof data === "string") return Buffer.from(data);
  if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) return bytesOf(data);
  throw wrongType("buffer", "of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer", data);
}

/** The format of compressed data, for unzip. */
const formatOf = (bytes: Uint8Array): string => (bytes[0] === 0x1f && bytes[1] === 0x8b ? "gzip" : "deflate");

function whole(format: string | undefined, decompress: boolean, data: any, options?: Options): any {
  const bytes = bytesFrom(data);
  const work = new ZlibCompressor(format ?? formatOf(bytes), decompress);
  const parts: any[] = [];
  let length = 0;
  work.write(bytes, true, (piece) => {
    length += piece.length;
    if (length > (options?.maxOutputLength ?? Infinity)) {
      work.close();
      throw coded(RangeError, "ERR_BUFFER_TOO_LARGE", `Cannot create a Buffer larger than ${options!.maxOutputLength} bytes`);
    }
    parts.push(piece);
  });
  return parts.length === 1 ? parts[0] : Buffer.concat(parts);
}

/** What a stream has collected for the host. */
interface Collected {
  work?: ZlibCompressor;
  parts: Uint8Array[];
  length: number;
}
const collected = new WeakMap<object, Collected>();

/**
 * The class of streams that compress or decompress what is written to them. Packages call it on objects of their own,
 * and override its methods.
 */
function classOf(name: string, format: string | undefined, decompress: boolean): any {
  const made = {
    [name]: function (this: any, options?: any): any {
      if (!(this instanceof made)) return new made(options);
      collected.set(this, { parts: [], length: 0 });
      (Transform as any).call(this, options);
    },
  }[name] as any;
  inherit(made, Transform);
  const give = (stream: any, end: boolean, done: (error?: unknown) => void) => {
    const state = collected.get(stream)!;
    try {
      const bytes = Buffer.concat(state.parts);
      [state.parts, state.length] = [[], 0];
      state.work ??= new ZlibCompressor(format ?? formatOf(bytes), decompress);
      state.work.write(bytes, end, (piece) => stream.push(piece));
    } catch (error) {
      return done(error);
    }
    done();
  };
  define(made.prototype, {
    _transform(this: any, chunk: Uint8Array, _encoding: string, done: () => void) {
      const state = collected.get(this)!;
      state.parts.push(chunk);
      state.length += chunk.length;
      if (state.length < leastBytes) done();
      else give(this, false, done);
    },
    _flush(this: any, done: () => void) {
      give(this, true, done);
    },
    _destroy(this: any, error: unknown, done: (error: unknown) => void) {
      if (error) collected.get(this)!.work?.close();
      done(error);
    },
    close(this: any, back?: () => void) {
      if (back) this.once("close", back);
      this.destroy();
    },
  });
  return made;
}

/** CRC-32 (ISO 3309), of a string or bytes. */
function crc32(data: any, value = 0): number {
  if (!(value >= 0 && value <= 0xffffffff)) throw outOfRange("value", ">= 0 && <= 4294967295", value);
  let crc = ~value;
  for (const byte of bytesFrom(data)) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

const zlib: any = {
  crc32,
  constants: {
    Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_DATA_ERROR: -3, Z_BUF_ERROR: -5,
    Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_DEFAULT_STRATEGY: 0,
    BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2, BROTLI_PARAM_MODE: 0, BROTLI_PARAM_QUALITY: 1, BROTLI_PARAM_SIZE_HINT: 5,
    BROTLI_MODE_GENERIC: 0, BROTLI_MODE_TEXT: 1,
  },
};
for (const [name, format, decompress] of [
  ["gzip", "gzip", false], ["gunzip", "gzip", true], ["deflate", "deflate", false], ["inflate", "deflate", true], ["deflateRaw", "deflate-raw", false],
  ["inflateRaw", "deflate-raw", true], ["brotliCompress", "brotli", false], ["brotliDecompress", "brotli", true], ["unzip", undefined, true],
] as const) {
  zlib[`${name}Sync`] = (data: any, options?: Options) => whole(format, decompress, data, options);
  zlib[name] = (data: any, options: any, back?: any) => {
    if (typeof options === "function") [options, back] = [undefined, options];
    needFunction("callback", back);
    const bytes = bytesFrom(data);
    queueMicrotask(() => {
      let outcome: unknown[];
      try {
        outcome = [null, whole(format, decompress, bytes, options)];
      } catch (error) {
        outcome = [error];
      }
      back(...outcome);
    });
  };
  const className = `${name[0].toUpperCase()}${name.slice(1)}`;
  zlib[className] = classOf(className, format, decompress);
  zlib[`create${className}`] = (options?: any) => new zlib[className](options);
}

export default zlib;
