// Blob and File (File API, 3 and 4).

import { bytesOf } from "../encoding.ts";
import { dictionary, isObject, oneOf, sequence, takes, usv } from "../idl.ts";
import { join, streamOf } from "../streams/body.ts";
import { type ReadableStream } from "../streams/readablestream.ts";
import { decode, encode } from "./text.ts";

export type BlobPart = string | ArrayBuffer | ArrayBufferView | Blob;

interface BlobOptions {
  type?: string;
  endings?: "transparent" | "native";
}

// Private members of Blob for this folder: its bytes, which must not be changed, and a Blob that shares such bytes.
export let bytesOfBlob: (blob: Blob) => Uint8Array;
let blobOf: (bytes: Uint8Array, type: string) => Blob;

const empty = new Uint8Array(0);
const typeOf = (given: unknown): string => {
  const type = `${given as string}`;
  return /^[ -~]*$/.test(type) ? type.toLowerCase() : "";
};

export class Blob {
  #bytes: Uint8Array = empty;
  #type = "";

  static {
    bytesOfBlob = (blob) => blob.#bytes;
    blobOf = (bytes, type) => {
      const blob = new Blob();
      blob.#bytes = bytes;
      blob.#type = type;
      return blob;
    };
  }

  constructor(parts?: Iterable<BlobPart>, options?: BlobOptions) {
    const given = parts === undefined ? [] : partsOf(parts);
    if (options === undefined && given.length === 0) return;
    const { endings, type = "" } = dictionary(options, "Blob");
    const native = oneOf(endings, "transparent native", "Blob: endings") === "native";
    this.#type = typeOf(type);
    this.#bytes = join(
      given.map((part) => {
        if (typeof part === "string") return encode(native ? part.replace(/\r\n?/g, "\n") : part);
        return part instanceof Blob ? part.#bytes : bytesOf(part);
      }),
    );
  }
  get size(): number {
    return this.#bytes.length;
  }
  get type(): string {
    return this.#type;
  }
  slice(start?: number, end?: number, type: string = ""): Blob {
    const bytes = this.#bytes;
    return blobOf(bytes.subarray(clamped(start, 0), clamped(end, bytes.length)), typeOf(type));
  }
  async text(): Promise<string> {
    return decode(this.#bytes);
  }
  async bytes(): Promise<Uint8Array> {
    return this.#bytes.slice();
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#bytes.slice().buffer as ArrayBuffer;
  }
  stream(): ReadableStream {
    const bytes = this.#bytes;
    return streamOf(() => bytes.slice());
  }
}

export class File extends Blob {
  #name: string;
  #lastModified: number;

  constructor(parts: Iterable<BlobPart>, name: string, options?: BlobOptions & { lastModified?: number }) {
    takes(2, arguments, "File");
    const given = partsOf(parts);
    const text = usv(name);
    super(given, options);
    const { lastModified } = dictionary(options, "File");
    this.#name = text;
    this.#lastModified = lastModified === undefined ? Date.now() : Math.trunc(+lastModified) || 0;
  }
  get name(): string {
    return this.#name;
  }
  get lastModified(): number {
    return this.#lastModified;
  }
}

/** The parts of a Blob: text, bytes and Blobs. */
function partsOf(given: unknown): BlobPart[] {
  const all = isObject(given) ? sequence(given) : undefined;
  if (all === undefined) throw new TypeError("Blob: the parts must be a list");
  const parts: BlobPart[] = [];
  for (const part of all) {
    parts.push(part instanceof Blob || part instanceof ArrayBuffer || ArrayBuffer.isView(part) ? part : usv(part));
  }
  return parts;
}

/** An index (long long with [Clamp]): the nearest whole number; halves are rounded to the even one. */
function clamped(given: unknown, otherwise: number): number {
  if (given === undefined) return otherwise;
  const index = +(given as number);
  const near = Math.round(index);
  return near - index === 0.5 && near % 2 !== 0 ? near - 1 : near;
}
