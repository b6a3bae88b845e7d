// Files: those of rows, those that a client has uploaded, and those that the handler makes.

import { call, fail, HostError, Outcome } from "./host";
import { fields, Fields, member, parseJSON } from "./json";
import { base64, octets, put } from "./octets";
import { Response } from "./response";

// How many bytes an operation reads and writes. What is written is sent as base64, but for short texts: escapes make a
// text up to six times as long.
const readPart = 1 << 20;
const writePart = 768 << 10;
const writeText = writePart / 4;

/**
 * A file: the value of a field of type `file`, or one that the request has uploaded or made. A row has it as
 * `photo: StoredFile | null`, and gets it when it is inserted or updated with the file. Only the id counts then.
 */
@json
export class StoredFile {
  id: string = "";
  /** A text for people, never a path. */
  name: string = "";
  /** The media type without parameters. It is found from the bytes. */
  type: string = "";
  /** In bytes. */
  size: i64 = 0;
  /** The digest of the bytes, in hexadecimal digits. */
  sha256: string = "";

  /** All bytes. */
  bytes(): Uint8Array {
    if (this.size > <i64>i32.MAX_VALUE) throw new RangeError("the file is larger than memory: read it in parts");
    const all = new Uint8Array(<i32>this.size);
    for (let at = 0; at < all.length; ) {
      const part = readBytes(this.id, at, readPart);
      if (part.length == 0 || part.length > all.length - at) fail(new HostError("internal", "the file has another size", "file.read"));
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  /** All bytes as text. Those that are not UTF-8 become U+FFFD. */
  text(): string {
    return String.UTF8.decode(this.bytes().buffer);
  }

  /** Reads bytes from an offset on into an array that is not empty, at most 1 MiB, and returns how many; 0 behind the end. */
  read(into: Uint8Array, offset: i64): i32 {
    const length = min(into.length, readPart);
    const part = readBytes(this.id, offset, length);
    into.set(part);
    return part.length;
  }

  /**
   * Makes a link to the file of a row: a path that works without credentials for so many seconds, as long as the row has this
   * file. The disposition and the name are as in SendOptions; empty: none.
   */
  sign(seconds: i32, disposition: string = "", name: string = ""): string {
    const args = fields().set("id", this.id).set("expires", seconds);
    if (disposition.length > 0) args.set("disposition", disposition);
    if (name.length > 0) args.set("name", name);
    return parseJSON<string>(call("file.sign", args.toString()).member("url"));
  }
}

function readBytes(id: string, offset: i64, length: i32): Uint8Array {
  return octets(call("file.read", fields().set("id", id).set("offset", offset).set("length", length).toString()).member("data"));
}

/** A file of a form. */
export class UploadedFile {
  constructor(
    /** The name of its field; empty for a body that is one file. */
    readonly field: string,
    /** The media type that the client has declared; empty: none. */
    readonly declared: string,
    readonly file: StoredFile,
  ) {}
}

/** A text of a form. */
export class FormField {
  constructor(
    readonly name: string,
    readonly value: string,
  ) {}
}

/** What a client has uploaded. Its files are gone after the request unless a row that is committed has them. */
export class UploadedForm {
  /** The texts, in the order of the body. */
  readonly fields: FormField[] = [];
  readonly files: UploadedFile[] = [];

  /** The first text of that name; empty without one. */
  get(name: string): string {
    const all = this.getAll(name);
    return all.length > 0 ? all[0] : "";
  }
  /** Whether there is a text of that name, if only an empty one. */
  has(name: string): bool {
    return this.getAll(name).length > 0;
  }
  /** All texts of that name, in order. */
  getAll(name: string): string[] {
    const all: string[] = [];
    for (let i = 0; i < this.fields.length; i++) if (this.fields[i].name == name) all.push(this.fields[i].value);
    return all;
  }
  /** The first file of that field, or null. The name of a body that is one file is empty. */
  file(field: string = ""): StoredFile | null {
    for (let i = 0; i < this.files.length; i++) if (this.files[i].field == field) return this.files[i].file;
    return null;
  }
}

@json
class FileOfForm {
  field: string = "";
  declared: string = "";
  id: string = "";
  name: string = "";
  type: string = "";
  size: i64 = 0;
  sha256: string = "";
}

/** Reads the form of the request. */
export function readForm(): UploadedForm {
  const result = call("request.form");
  const form = new UploadedForm();
  const texts = parseJSON<string[][]>(result.member("fields"));
  for (let i = 0; i < texts.length; i++) form.fields.push(new FormField(texts[i][0], texts[i][1]));
  const files = parseJSON<FileOfForm[]>(result.member("files"));
  for (let i = 0; i < files.length; i++) {
    const from = files[i];
    const file = new StoredFile();
    file.id = from.id;
    file.name = from.name;
    file.type = from.type;
    file.size = from.size;
    file.sha256 = from.sha256;
    form.files.push(new UploadedFile(from.field, from.declared, file));
  }
  return form;
}

/**
 * Makes a file of a string or a Uint8Array, which a row can have. It is gone after the request unless a row that is
 * committed has it. The type is found from the bytes; `type` names that of a text or of unknown bytes more closely:
 * `createFile("# Notes", "notes.md", "text/markdown")`.
 */
export function createFile<T>(contents: T, name: string = "file", type: string = ""): StoredFile {
  const bytes = bytesOf<T>(contents);
  if (bytes.length > writePart) {
    const writer = new FileWriter(name, type);
    writer.write(bytes);
    return writer.end();
  }
  const about = aboutFile(name, type);
  if (isString<T>() && bytes.length <= writeText) put<T>(about, "data", contents);
  else put<Uint8Array>(about, "data", bytes);
  return made(call("file.create", about.toString()));
}

/**
 * Makes a file in parts. Each is sent at once: write more than a few bytes.
 *
 *     const out = new FileWriter("orders.csv", "text/csv");
 *     for (let i = 0; i < parts.length; i++) out.write(parts[i]);
 *     const orders = out.end();
 */
export class FileWriter {
  private writer: i64;

  constructor(name: string, type: string = "") {
    this.writer = parseJSON<i64>(call("file.open", aboutFile(name, type).toString()).member("writer"));
  }

  /** Writes a string or a Uint8Array. */
  write<T>(part: T): void {
    const bytes = bytesOf<T>(part);
    for (let at = 0; at < bytes.length; at += writePart) {
      const data = fields().set("base64", base64(bytes.subarray(at, min(at + writePart, bytes.length))));
      call("file.write", fields().set("writer", this.writer).set("data", data).toString());
    }
  }

  /** Ends the file. */
  end(): StoredFile {
    return made(call("file.end", fields().set("writer", this.writer).toString()));
  }
}

function bytesOf<T>(contents: T): Uint8Array {
  if (contents instanceof Uint8Array) return contents as Uint8Array;
  if (!isString<T>()) ERROR("the contents of a file are a string or a Uint8Array");
  return Uint8Array.wrap(String.UTF8.encode(changetype<string>(contents)));
}

function aboutFile(name: string, type: string): Fields {
  const about = fields().set("name", name);
  return type.length > 0 ? about.set("type", type) : about;
}

function made(result: Outcome): StoredFile {
  return result.as<StoredFile>();
}

/** How a file is sent: `new SendOptions().disposition("attachment").name("copy.txt")`. What is not set is chosen by the runner. */
export class SendOptions {
  readonly args: Fields = fields();
  code: i32 = 200;

  /** The status; by default 200. */
  status(status: i32): SendOptions {
    this.code = status;
    return this;
  }
  /**
   * `inline`, which shows the file in the browser, or `attachment`, which saves it. By default types are shown that a browser
   * shows without running them, such as pictures.
   */
  disposition(disposition: string): SendOptions {
    this.args.set("disposition", disposition);
    return this;
  }
  /** Replaces the name of the file. */
  name(name: string): SendOptions {
    this.args.set("name", name);
    return this;
  }
  /** The Cache-Control of the answer; by default that of the route. */
  cache(cache: string): SendOptions {
    this.args.set("cache", cache);
    return this;
  }
}

/**
 * Answers with a file, or with the part of it that the request asks for. Its bytes do not come to the handler. What the handler
 * has written is committed first. Only the answer to a request can be a file.
 */
export function sendFile(file: StoredFile, options: SendOptions = new SendOptions()): Response {
  const response = new Response(options.code);
  response.file = options.args.with("id", file.id).set("status", options.code).toString();
  return response;
}
