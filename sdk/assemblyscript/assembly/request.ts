// The request at hand. What it is made of is fetched from the host when it is asked
// for, so a handler pays for what it reads.

import { setParsing } from "./abort";
import { errnoName, request_read } from "./abi";
import { readForm, UploadedForm } from "./files";
import { end, failed } from "./host";
import { __runnerUnfit, parseJSON, malformed, utf8 } from "./json";
import { bytes, decode, pieces, Source, text } from "./memory";

/** Values by name: `req.params["id"]`. */
export class Values {
  constructor(
    private one: Source,
    private all: Source,
  ) {}

  /** The value of that name, of several the first; empty when there is none. */
  @operator("[]")
  get(name: string): string {
    const value = text(this.one, name);
    return value === null ? "" : value;
  }

  /** Whether there is one, if only an empty one. */
  has(name: string): bool {
    return text(this.one, name) !== null;
  }

  /** All names with their values, in order of arrival. */
  entries(): Map<string, string[]> {
    return pairs(this.all);
  }
}

/** Lists of values by name: `req.queryAll["tag"]`. */
export class ValueLists {
  constructor(private all: Source) {}

  /** All values of that name, in order. */
  @operator("[]")
  get(name: string): string[] {
    const all = pairs(this.all);
    return all.has(name) ? all.get(name) : [];
  }
}

/** The request at hand. */
export class RouteRequest {
  private raw: Uint8Array | null = null;
  private uploaded: UploadedForm | null = null;

  /** Path parameters by name, percent-decoded; those of the route are never empty. */
  readonly params: Values = new Values(Source.Param, Source.Params);
  /** Query values by name; of several the first. */
  readonly query: Values = new Values(Source.QueryValue, Source.Query);
  /** All query values by name, in order. */
  readonly queryAll: ValueLists = new ValueLists(Source.Query);
  /** Headers by name in lower case; repeated lines are joined with ", ". */
  readonly headers: Values = new Values(Source.Header, Source.Headers);

  /** The query as it was sent, without its "?". Signatures of URLs are made of it. */
  get rawQuery(): string {
    const all = pairs(Source.RawQuery);
    return all.has("") ? all.get("")[0] : "";
  }

  get method(): string {
    const value = text(Source.Method);
    return value === null ? "" : value;
  }

  /** The raw path, without the query. */
  get path(): string {
    const value = text(Source.Path);
    return value === null ? "" : value;
  }

  /** The exact body, for signatures. */
  get rawBody(): Uint8Array {
    const known = this.raw;
    if (known !== null) return known;
    const read = pieces(Source.Body);
    this.raw = read;
    return read;
  }

  /**
   * Reads the next bytes of the body into an array that is not empty, and returns how many; 0 at its end. On a route with
   * `stream:` the handler runs before the body has arrived, and `body:` may be larger than memory: read waits for the next
   * bytes. If the client is gone, sends too much or is too slow, it gets 400, 413 or 408, and the request ends. What was
   * read is gone, so the handler does not run again: if another request has changed what it has read from the store,
   * the client gets 409. Other members that read the body must not be used after the first part.
   */
  read(into: Uint8Array): i32 {
    const n = request_read(into.dataStart, into.byteLength);
    if (n < 0) failed("read the body of the request: " + errnoName(n));
    return n;
  }

  /** The body as text. One that is not UTF-8 answers 400 `invalid_json` and ends the request. */
  text(): string {
    const raw = this.rawBody;
    const last = raw.dataStart + raw.byteLength;
    for (let at = raw.dataStart; at < last; ) {
      const n = utf8(at, last);
      if (n == 0) end(400, "invalid_json", "read the body as text: it must be valid UTF-8");
      at += n;
    }
    return decode(raw);
  }

  /**
   * The JSON body as a T: a class with `@json`, an array, `JSON.Obj` and so on. An
   * empty body and `null` give a T as `{}` does, so that a check for a field finds it
   * missing. One that is not JSON, or does not fit T, answers 400 `invalid_json` and
   * ends the request; check `isJSON` first.
   */
  body<T>(): T {
    const raw = this.rawBody;
    if (isBlank(raw)) return parseJSON<T>("");
    const wrong = malformed(raw);
    if (wrong.length > 0) end(400, "invalid_json", "read the JSON body: " + wrong);
    const text = decode(raw).trim();
    const unfit = __runnerUnfit<T>(text, 0);
    if (unfit.length > 0) end(400, "invalid_json", "read the JSON body: " + (unfit.startsWith(" ") ? "it" : "") + unfit);
    setParsing(true);
    const value = parseJSON<T>(text);
    setParsing(false);
    return value;
  }

  /** What the client has uploaded, on a route with `upload: on`. Elsewhere the request ends with 500. */
  form(): UploadedForm {
    const known = this.uploaded;
    if (known !== null) return known;
    const read = readForm();
    this.uploaded = read;
    return read;
  }

  /** Whether the body is empty or well-formed JSON. */
  get isJSON(): bool {
    const raw = this.rawBody;
    return isBlank(raw) || malformed(raw).length == 0;
  }
}

function isBlank(raw: Uint8Array): bool {
  for (let i = 0; i < raw.length; i++) {
    const c = raw[i];
    if (c != 0x20 && c != 0x09 && c != 0x0a && c != 0x0d) return false;
  }
  return true;
}

/** Per pair the host writes two little-endian lengths and then both texts. */
function pairs(source: Source): Map<string, string[]> {
  const all = new Map<string, string[]>();
  const raw = bytes(source);
  let at = raw.dataStart;
  const end = at + raw.byteLength;
  while (at + 8 <= end) {
    const nameLength = load<u32>(at);
    const valueLength = load<u32>(at, 4);
    const name = String.UTF8.decodeUnsafe(at + 8, nameLength);
    const value = String.UTF8.decodeUnsafe(at + 8 + nameLength, valueLength);
    if (all.has(name)) all.get(name).push(value);
    else all.set(name, [value]);
    at += 8 + nameLength + valueLength;
  }
  return all;
}
