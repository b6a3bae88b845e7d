// Bodies (Fetch Standard, 2.2.4 and 5.3). The bytes of most are in memory: a stream is made of them only when .body is
// read.

import { type AbortSignal } from "../abort.ts";
import { bytesOf, fromBase64, toBase64 } from "../encoding.ts";
import { unplaced } from "../../host.ts";
import { usv } from "../idl.ts";
import { Blob, bytesOfBlob } from "./blob.ts";
import { FormData } from "./formdata.ts";
import { type Headers } from "./headers.ts";
import { incoming } from "./incoming.ts";
import { contentType, writeMIME } from "./mime.ts";
import { multipart, readForm } from "./multipart.ts";
import { decode, encode } from "./text.ts";
import { isDisturbed, isLocked, readBytes, streamOf, takeBytes, teeBody, type Whole } from "../streams/body.ts";
import { upon } from "../streams/common.ts";
import { isReadable, type ReadableStream } from "../streams/readablestream.ts";
import { TransformStream } from "../streams/transform.ts";

/** The whole content of a body: text, bytes, or bytes in the form of the host's operations. */
export type Content = string | Uint8Array | { base64: string };

export class Body {
  /** Null: it is in the stream, or was taken before. */
  content: Content | null;
  stream: ReadableStream | null;
  used = false;
  /** Other objects share the bytes, so a reader must get a copy. */
  shared: boolean;
  /** Returns the whole content of a body that the host has, until it is read. Its stream is read as it comes. */
  whole: (() => Uint8Array) | null = null;
  /** The signal of the fetch that returned the body: once it is aborted, the body cannot be read. */
  signal: AbortSignal | null = null;

  constructor(content: Content | null, shared = false, stream: ReadableStream | null = null) {
    this.content = content;
    this.shared = shared;
    this.stream = stream;
  }
}

/** The body of the request that a client has sent. */
export function bodyOf(whole: () => Uint8Array): Body {
  const body = new Body(null);
  body.whole = whole;
  return body;
}

/** Takes the content of a body that is in memory, or that the host has. */
function takeContent(body: Body): Content | null {
  const { content, whole } = body;
  body.content = body.whole = null;
  return whole ? whole() : content;
}

export const bytesIn = (content: Content): Uint8Array => {
  if (typeof content === "string") return encode(content);
  return content instanceof Uint8Array ? content : fromBase64(content.base64);
};

/** The content in the form that the operation fetch takes. */
export const forHost = (content: Content): Content => (content instanceof Uint8Array ? { base64: toBase64(content) } : content);

/** Makes a body of a BodyInit, with its content type ("extract", Fetch Standard, 5.2). */
export function extract(given: unknown, keepalive = false): { body: Body; type?: string } {
  if (isReadable(given)) {
    const body = new Body(null, false, given);
    usable(body);
    if (keepalive) throw new TypeError("a request with keepalive cannot have a stream as body");
    return { body };
  }
  if (given instanceof Blob) return { body: new Body(bytesOfBlob(given), true), type: given.type || undefined };
  if (given instanceof ArrayBuffer || ArrayBuffer.isView(given)) return { body: new Body(bytesOf(given).slice()) };
  if (given instanceof FormData) {
    const { bytes, type } = multipart(given);
    return { body: new Body(bytes), type };
  }
  if (given instanceof URLSearchParams) return { body: new Body(String(given)), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  const text = usv(given);
  // An object without a toString of its own was certainly not meant to be sent as "[object Object]".
  if (typeof given === "object" && text.startsWith("[object ")) {
    throw new TypeError("a body must be a string, bytes, a Blob, FormData, URLSearchParams or a ReadableStream: use JSON.stringify for an object, and ReadableStream.from for an iterator");
  }
  return { body: new Body(text), type: "text/plain;charset=UTF-8" };
}

export const isUsed = (body: Body | null): boolean => body !== null && (body.stream ? isDisturbed(body.stream) : body.used);

/** Throws if the body was read, or its stream has a reader. */
export function usable(body: Body | null): void {
  if (isUsed(body)) throw new TypeError("the body was read before");
  if (body?.stream && isLocked(body.stream)) throw new TypeError("the body's stream is locked: it has a reader");
}

/** The stream of a body. Bytes in memory are one chunk. */
function streamIn(body: Body): ReadableStream {
  if (body.stream) return body.stream;
  const { content, shared, used, whole } = body;
  if (whole) {
    body.whole = null;
    return (body.stream = incoming() as unknown as ReadableStream);
  }
  const stream = streamOf(() => (used ? new Uint8Array(0) : ownBytes(content!, shared)));
  body.stream = stream;
  body.content = null;
  if (used) takeBytes(stream);
  return stream;
}

/** The bytes of a body for a reader, which may change them. */
const ownBytes = (content: Content, shared: boolean): Uint8Array => (shared && content instanceof Uint8Array ? content.slice() : bytesIn(content));

/** Takes the whole content of a body, once. It is a promise if a stream must be read. */
export function take(body: Body | null): Content | Promise<Whole> {
  if (body === null) return "";
  body.signal?.throwIfAborted();
  usable(body);
  if (body.stream) return takeBytes(body.stream) ?? readBytes(body.stream);
  body.used = true;
  return takeContent(body)!;
}

/** Moves the content of a body to a new one. The old one is used then. */
export function moved(body: Body): Body {
  usable(body);
  const { stream, shared, whole } = body;
  if (whole) {
    body.used = true;
    body.whole = null;
    return bodyOf(whole);
  }
  const bytes = stream && takeBytes(stream);
  if (!stream || bytes) return new Body(bytes ?? (take(body) as Content), shared && !stream);
  return new Body(null, false, stream.pipeThrough(new TransformStream()));
}

/** A second body with the same content, for clone. */
export function copy(body: Body | null): Body | null {
  usable(body);
  if (body === null) return null;
  if (body.stream) {
    const [one, two] = teeBody(body.stream);
    body.stream = one;
    return new Body(null, false, two);
  }
  if (body.whole) body.content = takeContent(body);
  body.shared = true;
  const again = new Body(body.content, true);
  again.signal = body.signal;
  return again;
}

/** Reads the stream of a body, and calls done with a body of its bytes. Undefined: done was called, or the body has no stream to read. */
export function gather(body: Body | null, done: (whole: Body) => void): Promise<void> | undefined {
  if (!body?.stream || isDisturbed(body.stream) || isLocked(body.stream)) return undefined;
  const content = take(body);
  if (content instanceof Promise) return content.then(({ bytes }) => done(new Body(bytes)));
  done(new Body(content));
  return undefined;
}

/** The stream of a body, to read its chunks; undefined if the body is there as a whole. */
export function flowing(body: Body | null, done: (whole: Body) => void): ReadableStream | undefined {
  if (!body?.stream || isDisturbed(body.stream) || isLocked(body.stream)) return undefined;
  const bytes = takeBytes(body.stream);
  if (bytes) done(new Body(bytes));
  return bytes ? undefined : body.stream;
}

const textOf = (content: Content): string => (typeof content === "string" ? content.replace(/^\ufeff/, "") : decode(bytesIn(content)));

/** Gives an interface the members of Body. */
export function includeBody<T>({ prototype }: { prototype: T }, bodyOf: (message: T) => Body | null, headersOf: (message: T) => Headers): void {
  const typeOf = (message: unknown): string | null => headersOf(message as T).get("content-type");
  /** Takes the body, and returns what make returns for it. */
  const read = async <R>(message: unknown, make: (content: Content, shared: boolean) => R): Promise<R> => {
    const body = bodyOf(message as T);
    const shared = body !== null && body.shared && !body.stream;
    const content = take(body);
    if (!(content instanceof Promise)) return make(content, shared);
    return upon(content, ({ bytes }) => {
      try {
        return make(bytes, false);
      } catch (error) {
        return Promise.reject(unplaced(error));
      }
    });
  };
  class Members {
    get body(): ReadableStream | null {
      const body = bodyOf(this as unknown as T);
      return body && streamIn(body);
    }
    get bodyUsed(): boolean {
      return isUsed(bodyOf(this as unknown as T));
    }
    text(): Promise<string> {
      return read(this, textOf);
    }
    json(): Promise<any> {
      return read(this, (content) => JSON.parse(textOf(content)));
    }
    bytes(): Promise<Uint8Array> {
      return read(this, ownBytes);
    }
    arrayBuffer(): Promise<ArrayBuffer> {
      return read(this, (content, shared) => {
        const all = ownBytes(content, shared);
        return (all.buffer.byteLength === all.length ? all : all.slice()).buffer as ArrayBuffer;
      });
    }
    blob(): Promise<Blob> {
      return read(this, (content) => {
        const type = contentType(typeOf(this));
        return new Blob([bytesIn(content)], { type: type ? writeMIME(type) : "" });
      });
    }
    formData(): Promise<FormData> {
      return read(this, (content) => readForm(bytesIn(content), typeOf(this)));
    }
  }
  for (const key of Object.getOwnPropertyNames(Members.prototype)) {
    if (key !== "constructor") Object.defineProperty(prototype, key, Object.getOwnPropertyDescriptor(Members.prototype, key)!);
  }
}
