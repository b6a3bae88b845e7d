// Files: those of rows, those that a client has uploaded, and those that the handler makes.

import { known, result, run } from "./host.ts";
import { Response as Answer } from "./response.ts";
import { fromBase64, toBase64 } from "./web/encoding.ts";

// What one operation reads or writes, in bytes. Written bytes are sent as base64.
const readPart = 1 << 20;
const writePart = 768 << 10;

/** A file that is stored. Objects that the host gives become such. */
export class StoredFile {
  declare readonly id: string;
  declare readonly name: string;
  declare readonly type: string;
  declare readonly size: number;
  declare readonly sha256: string;

  async bytes(): Promise<Uint8Array> {
    const bytes = new Uint8Array(this.size);
    for (let at = 0; at < bytes.length; ) {
      const part = read(this.id, at);
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }
  stream(): ReadableStream<Uint8Array> {
    const { id, size } = this;
    let at = 0;
    return new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (at < size) {
            const part = read(id, at);
            at += part.length;
            controller.enqueue(part);
          }
          if (at >= size) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  }
}

/** Reads the next part of a file. */
function read(id: string, offset: number): Uint8Array {
  run("file.read", { id, offset, length: readPart });
  const { data } = result();
  return typeof data === "string" ? new TextEncoder().encode(data) : fromBase64(data.base64);
}

const { setPrototypeOf } = Object;
const { isArray } = Array;

const isStored = (value: any): boolean =>
  typeof value.sha256 === "string" && typeof value.id === "string" && typeof value.name === "string" && typeof value.type === "string" && typeof value.size === "number";

/**
 * Gives files in rows, and in the rows that they include, their methods. All rows of a result have the same fields, so
 * those with a number or a text in the first row are not looked at.
 */
export function withFiles<T>(rows: T): T {
  if (isArray(rows) && rows.length > 0) {
    // With var, as each use of let and const is checked.
    var first: any = rows[0];
    for (var name in first) if (typeof first[name] === "object") column(rows, name);
  }
  return rows;
}

function column(rows: any[], name: string): void {
  for (var i = 0; i < rows.length; i++) {
    var value = rows[i]?.[name];
    // All rows have the field. A list in a JSON value may be of anything: without the end here, it could take quadratic time.
    if (value === undefined || typeof value === "function") return;
    if (value === null || typeof value !== "object") continue;
    if (isArray(value)) {
      if (value.length > 0 && value[0] !== null && typeof value[0] === "object") withFiles(value);
    } else if (isStored(value)) setPrototypeOf(value, StoredFile.prototype);
    else withFiles([value]);
  }
}

/** What a client has uploaded. */
export class UploadedForm {
  readonly fields: readonly (readonly [string, string])[];
  readonly files: readonly UploadedFile[];
  constructor({ fields, files }: { fields: [string, string][]; files: UploadedFile[] }) {
    this.fields = fields;
    this.files = files;
    for (const file of files) {
      setPrototypeOf(file, StoredFile.prototype);
      // A file has the same members in each JSON.
      Object.defineProperty(file, "field", { enumerable: false });
      Object.defineProperty(file, "declared", { enumerable: false });
    }
  }
  get(name: string): string | undefined {
    return this.fields.find((field) => field[0] === name)?.[1];
  }
  getAll(name: string): string[] {
    return this.fields.filter((field) => field[0] === name).map((field) => field[1]);
  }
  file(name = ""): UploadedFile | undefined {
    return this.files.find((file) => file.field === name);
  }
}

interface UploadedFile extends StoredFile {
  readonly field: string;
  readonly declared: string;
}

/** Reads the form of the request. */
export function form(): UploadedForm {
  run("request.form", {});
  return new UploadedForm(result());
}

type Contents = string | ArrayBuffer | ArrayBufferView | Blob | ReadableStream<Uint8Array> | Response;

interface FileOptions {
  name?: string;
  type?: string;
}

interface SendOptions {
  status?: number;
  disposition?: "inline" | "attachment";
  name?: string;
  cache?: string;
}

/** The body of an answer that is a stored file. */
export class FileBody {
  declare readonly id: string;
  declare readonly options: SendOptions;

  constructor(id: string, options: SendOptions) {
    this.id = id;
    this.options = options;
  }

  send(status: number): void {
    run("file.send", { id: this.id, ...this.options, status });
    result();
  }
}

/** Answers with a stored file, or makes a file, which is kept if a row that is committed has it. */
export function file(stored: StoredFile, options?: SendOptions): Answer;
export function file(contents: Contents, options?: FileOptions): Promise<StoredFile>;
export function file(contents: StoredFile | Contents, options: FileOptions | SendOptions = {}): Answer | Promise<StoredFile> {
  if (!(contents instanceof StoredFile)) return make(contents, options as FileOptions);
  known("file", options, "status", "disposition", "name", "cache");
  const { status = 200, ...others } = options as SendOptions;
  return new Answer(status, new FileBody(contents.id, others), undefined, []);
}

interface SignOptions {
  expires: string | number;
  disposition?: "inline" | "attachment";
  name?: string;
}

/** Returns the path of a link that reads a file of a row without credentials, until it expires. */
export async function sign(stored: StoredFile, options: SignOptions): Promise<string> {
  if (!(stored instanceof StoredFile)) throw new TypeError("sign: it takes the file of a row");
  known("sign", options, "expires", "disposition", "name");
  run("file.sign", { ...options, id: stored.id, expires: secondsOf(options.expires) });
  return result().url;
}

const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400 };

/** The seconds of a time such as "10m"; numbers are seconds. */
function secondsOf(time: string | number): number {
  if (typeof time === "number") return time;
  const parts = /^(\d+)([smhd])$/.exec(time);
  if (!parts) throw new TypeError(`sign: expires must be a time such as "10m", or a number of seconds`);
  return Number(parts[1]) * units[parts[2]!]!;
}

async function make(contents: Contents, options: FileOptions): Promise<StoredFile> {
  known("file", options, "name", "type");
  let { name, type } = options;
  let from: unknown = contents;
  if (from instanceof Response) {
    type ??= from.headers.get("content-type") ?? undefined;
    from = from.body ?? "";
  } else if (from instanceof Blob) {
    name ??= from instanceof File ? from.name : undefined;
    type ??= from.type;
    from = await from.bytes();
  }
  const about = { name: name ?? "file", ...(type ? { type } : {}) };
  if (typeof from === "string") {
    if (from.length <= writePart / 3 && from.isWellFormed()) {
      run("file.create", { ...about, data: from });
      return made();
    }
    from = new TextEncoder().encode(from);
  }
  if (from instanceof ReadableStream) return streamed(about, from);
  const bytes = bytesOf(from);
  if (bytes.length > writePart) return streamed(about, [bytes]);
  run("file.create", { ...about, data: { base64: toBase64(bytes) } });
  return made();
}

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw new TypeError("file: the contents are text, bytes, a Blob, a stream or a Response");
}

/** Makes a file of parts, of which one at a time is in memory. */
async function streamed(about: object, parts: AsyncIterable<unknown> | Iterable<unknown>): Promise<StoredFile> {
  run("file.open", about);
  const { writer } = result();
  for await (const part of parts as AsyncIterable<unknown>) {
    const bytes = typeof part === "string" ? new TextEncoder().encode(part) : bytesOf(part);
    for (let at = 0; at < bytes.length; at += writePart) {
      run("file.write", { writer, data: { base64: toBase64(bytes.subarray(at, at + writePart)) } });
      result();
    }
  }
  run("file.end", { writer });
  return made();
}

const made = (): StoredFile => setPrototypeOf(result(), StoredFile.prototype);
