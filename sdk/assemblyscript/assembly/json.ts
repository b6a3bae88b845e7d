// JSON beside json-as: what is checked before it parses, and what is written and
// found without a class for it.

import { JSON } from "json-as";
/** `null` on purpose: `where("paidAt", "=", nil)`. A condition accepts no other null. */
export const nil: JSON.Raw = new JSON.Raw("null");

/**
 * An object made on the spot, for values and answers that need no class:
 * `fields().set("status", "paid").set("total", 12)`. A name that is set twice stands
 * there twice, which the runner refuses.
 */
export class Fields {
  /** Distinguishes it from other classes at compile time. */
  readonly isFields: bool = true;
  private text: string = "";

  set<T>(name: string, value: T): Fields {
    this.text += (this.text.length > 0 ? "," : "") + JSON.stringify<string>(name) + ":" + encode<T>(value);
    return this;
  }

  /** A copy with one more member. */
  with<T>(name: string, value: T): Fields {
    const copy = new Fields();
    copy.text = this.text;
    return copy.set<T>(name, value);
  }

  /** The object as JSON. */
  toString(): string {
    return "{" + this.text + "}";
  }
}

/** Begins an object. */
export function fields(): Fields {
  return new Fields();
}

/** A value as JSON. */
export function encode<T>(value: T): string {
  if (isReference<T>()) {
    if (changetype<usize>(value) == 0) return "null";
    if (value instanceof Fields) return (value as Fields).toString();
    if (isDefined(value.toJSON)) return value.toJSON();
    if (value instanceof Array) {
      if (isDefined(value[0].isFields)) {
        const all: string[] = [];
        for (let i = 0; i < value.length; i++) all.push(value[i].toString());
        return "[" + all.join(",") + "]";
      }
      if (isDefined(value[0].toJSON)) {
        const all: string[] = [];
        for (let i = 0; i < value.length; i++) all.push(value[i].toJSON());
        return "[" + all.join(",") + "]";
      }
    }
  }
  return JSON.stringify<T>(value);
}

/** A part of a text, which is JSON but for it, that JSON has no form for. */
export class Odd {
  constructor(
    /** As `lines[2].price`; empty of the whole value. */
    readonly place: string,
    readonly what: string,
  ) {}
}

/** The first part of a text that JSON has no form for: json-as writes NaN as it is. */
export function oddOf(text: string): Odd | null {
  for (let at = changetype<usize>(text), end = at + (text.length << 1); at < end; at += 2) {
    const c = load<u16>(at);
    if (c == 0x4e || c == 0x49 || (c & 0xf800) == 0xd800) return findOdd(text); // N, I, a surrogate
  }
  return null;
}

function findOdd(text: string): Odd | null {
  const path: string[] = [];
  const items: i32[] = []; // of each level: the index in a list, -1 in an object
  let wanted = false; // a name is, in an object
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at);
    const top = items.length - 1;
    if (c == 0x22) {
      const end = past(text, at);
      if (wanted) path[top] = (top > 0 ? "." : "") + text.substring(at + 1, end - 1);
      if (!isWellFormed(text, at, end)) return new Odd(path.join(""), "text with half of a surrogate pair");
      wanted = false;
      at = end - 1;
    } else if (c == 0x7b || c == 0x5b) {
      wanted = c == 0x7b;
      items.push(wanted ? -1 : 0);
      path.push(wanted ? "" : "[0]");
    } else if (c == 0x7d || c == 0x5d) {
      wanted = false;
      items.pop();
      path.pop();
    } else if (c == 0x2c && top >= 0) {
      wanted = items[top] < 0;
      if (!wanted) path[top] = "[" + (++items[top]).toString() + "]";
    } else if (c == 0x4e || c == 0x49 || (c == 0x2d && text.charCodeAt(at + 1) == 0x49)) {
      return new Odd(path.join(""), text.substring(at, past(text, at))); // NaN, Infinity, -Infinity
    }
  }
  return null;
}

function isWellFormed(text: string, from: i32, to: i32): bool {
  for (let i = from; i < to; i++) {
    const c = text.charCodeAt(i);
    if ((c & 0xf800) != 0xd800) continue;
    if (c >= 0xdc00 || i + 1 == to || (text.charCodeAt(i + 1) & 0xfc00) != 0xdc00) return false;
    i++;
  }
  return true;
}

/** What an absent value is as a T. */
export function zero<T>(): T {
  if (isNullable<T>()) return changetype<T>(0);
  if (isString<T>()) return changetype<T>("");
  if (isReference<T>()) return JSON.parse<T>(isArray<T>() ? "[]" : "{}");
  return <T>0;
}

/**
 * The value of a JSON text, which is well-formed, as a T; an empty one and null are the
 * zero T. It is JSON.parse of json-as where that is right about escapes.
 */
export function parseJSON<T>(text: string): T {
  if (text.length == 0 || text == "null") return zero<T>();
  return JSON.parse<T>(plain(text));
}

/**
 * Why the value at a place of a JSON text, which is well-formed, is not a T, with its place in the T; empty if it
 * fits. json-as ignores a value of another kind. null fits every T: it is the zero T.
 */
// @ts-ignore: decorator
@global
export function __runnerUnfit<T>(text: string, at: i32): string {
  const c = text.charCodeAt(at);
  if (c == 0x6e) return "";
  if (isReference<T>()) {
    if (isString<T>()) return c == 0x22 ? "" : " must be text";
    if (isArray<T>()) return c == 0x5b ? unfitItems<valueof<NonNullable<T>>>(text, at) : " must be a list";
    if (isDefined(changetype<NonNullable<T>>(0).__unfit)) return c == 0x7b ? unfitMembers<NonNullable<T>>(text, at) : " must be an object";
    return "";
  }
  if (isBoolean<T>()) return c == 0x74 || c == 0x66 ? "" : " must be true or false";
  return c == 0x2d || (c >= 0x30 && c <= 0x39) ? "" : " must be a number";
}

function unfitItems<T>(text: string, at: i32): string {
  at = skip(text, at + 1);
  for (let i = 0; text.charCodeAt(at) != 0x5d; i++) {
    const wrong = __runnerUnfit<T>(text, at);
    if (wrong.length > 0) return "[" + i.toString() + "]" + within(wrong);
    at = skip(text, past(text, at));
    if (text.charCodeAt(at) == 0x2c) at = skip(text, at + 1);
  }
  return "";
}

/** The place of a part, to append to that of the whole. */
function within(wrong: string): string {
  return wrong.startsWith(" ") || wrong.startsWith("[") ? wrong : "." + wrong;
}

function unfitMembers<T>(text: string, at: i32): string {
  const like = changetype<T>(__new(offsetof<T>(), idof<T>())); // its method may be that of another class
  at = skip(text, at + 1);
  while (text.charCodeAt(at) != 0x7d) {
    const end = past(text, at);
    const name = text.substring(at + 1, end - 1);
    at = skip(text, skip(text, end) + 1);
    const wrong = like.__unfit(name, text, at);
    if (wrong.length > 0) return name + within(wrong);
    at = skip(text, past(text, at));
    if (text.charCodeAt(at) == 0x2c) at = skip(text, at + 1);
  }
  return "";
}

/**
 * A JSON text with other escapes for a slash and a backslash: json-as 1.6.0 makes a NUL
 * of the one, and takes a quote behind the other for an escaped one.
 */
function plain(text: string): string {
  const n = text.length;
  let at = text.indexOf("\\");
  if (at < 0) return text;
  const out = new Uint16Array(n * 3);
  let from = 0;
  let length = 0;
  while (at >= 0) {
    const escape = text.charCodeAt(at + 1);
    if (escape == 0x5c || escape == 0x2f) {
      length = append(out, length, text, from, at);
      length = escape == 0x2f ? append(out, length, "/", 0, 1) : append(out, length, "\\u005c", 0, 6);
      from = at + 2;
    }
    at = text.indexOf("\\", at + 2);
  }
  length = append(out, length, text, from, n);
  return String.UTF16.decodeUnsafe(out.dataStart, length << 1);
}

function append(out: Uint16Array, length: i32, text: string, from: i32, to: i32): i32 {
  memory.copy(out.dataStart + (length << 1), changetype<usize>(text) + (from << 1), (to - from) << 1);
  return length + to - from;
}

/** A member of an object that is well-formed, as JSON; empty when it is not there. */
export function member(object: string, name: string): string {
  let at = skip(object, 0) + 1;
  while (true) {
    at = skip(object, at);
    if (at >= object.length || object.charCodeAt(at) != 0x22) return "";
    const end = past(object, at);
    const found = end - at - 2 == name.length && object.substr(at + 1, name.length) == name;
    const from = skip(object, skip(object, end) + 1);
    const to = past(object, from);
    if (found) return object.substring(from, to);
    at = skip(object, to) + 1;
  }
}

function skip(text: string, at: i32): i32 {
  while (at < text.length && blank(text.charCodeAt(at))) at++;
  return at;
}

@inline
function blank(c: i32): bool {
  return c == 0x20 || c == 0x0a || c == 0x0d || c == 0x09;
}

/** Where the value that begins at a place ends. */
function past(text: string, at: i32): i32 {
  let depth = 0;
  let quoted = false;
  for (const n = text.length; at < n; at++) {
    const c = text.charCodeAt(at);
    if (quoted) {
      if (c == 0x5c) at++;
      else if (c == 0x22) {
        quoted = false;
        if (depth == 0) return at + 1;
      }
    } else if (c == 0x22) {
      quoted = true;
    } else if (c == 0x7b || c == 0x5b) {
      depth++;
    } else if (c == 0x7d || c == 0x5d) {
      if (depth == 0) return at; // of what it stands in
      if (--depth == 0) return at + 1;
    } else if (depth == 0 && (c == 0x2c || blank(c))) {
      return at;
    }
  }
  return at;
}

// As deep as values may nest.
const deepest = 64;

/** How many bytes the UTF-8 of a character has (RFC 3629); 0 when it is none. */
export function utf8(at: usize, end: usize): i32 {
  const c: i32 = load<u8>(at);
  if (c < 0x80) return 1;
  const n = c >= 0xc2 && c < 0xe0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (n == 0 || <usize>n > end - at) return 0;
  for (let i = 1; i < n; i++) if ((load<u8>(at + i) & 0xc0) != 0x80) return 0;
  const second: i32 = load<u8>(at, 1);
  if (c == 0xe0 && second < 0xa0) return 0; // longer than it must be
  if (c == 0xed && second > 0x9f) return 0; // a surrogate
  if (c == 0xf0 && second < 0x90) return 0;
  if (c == 0xf4 && second > 0x8f) return 0; // more than there are
  return n;
}

/**
 * Returns why a text is not JSON (RFC 8259), empty if it is.
 * json-as takes well-formed texts for granted.
 */
export function malformed(bytes: Uint8Array): string {
  const end = bytes.dataStart + bytes.byteLength;
  const at = new Check(bytes.dataStart, end).document();
  if (at == 0) return "";
  if (at == end) return "unexpected end";
  if (at > end) return "nested more than " + deepest.toString() + " levels deep";
  return "unexpected byte at offset " + (at - bytes.dataStart).toString();
}

/** A look at a text, byte by byte. */
@final
class Check {
  private open: StaticArray<u8> = new StaticArray<u8>(deepest);

  constructor(
    private at: usize,
    private end: usize,
  ) {}

  /** The position of the first error, 0 if there is none, and after the end if it is too deep. */
  document(): usize {
    let depth = 0;
    while (true) {
      // A value is wanted here.
      let c = this.next();
      if (c == 0x7b || c == 0x5b) {
        if (depth == deepest) return this.end + 1;
        this.open[depth++] = <u8>c;
        this.at++;
        const first = this.next();
        if (first != c + 2) {
          if (c == 0x7b && !this.key()) return this.at;
          continue;
        }
        this.at++; // it is empty
        depth--;
      } else if (!this.scalar(c)) {
        return this.at;
      }
      // A value is over here.
      while (true) {
        c = this.next();
        if (depth == 0) return c < 0 ? 0 : this.at;
        const opened: i32 = this.open[depth - 1];
        if (c == opened + 2) {
          this.at++;
          depth--;
          continue;
        }
        if (c != 0x2c) return this.at;
        this.at++;
        if (opened == 0x7b && !this.key()) return this.at;
        break;
      }
    }
  }

  /** The next byte that is not a blank, -1 at the end. */
  private next(): i32 {
    while (this.at < this.end) {
      const c = load<u8>(this.at);
      if (!blank(c)) return c;
      this.at++;
    }
    return -1;
  }

  private key(): bool {
    if (this.next() != 0x22 || !this.text()) return false;
    if (this.next() != 0x3a) return false;
    this.at++;
    return true;
  }

  private scalar(c: i32): bool {
    switch (c) {
      case 0x22: return this.text();
      case 0x74: return this.word(0x65757274, 4); // true
      case 0x6e: return this.word(0x6c6c756e, 4); // null
      case 0x66: return this.word(0x736c6166, 4) && this.word(0x65, 1); // fals e
    }
    return this.number();
  }

  private word(want: u32, length: i32): bool {
    for (let i = 0; i < length; i++, want >>= 8) {
      if (this.at == this.end || load<u8>(this.at) != <u8>want) return false;
      this.at++;
    }
    return true;
  }

  private text(): bool {
    this.at++;
    while (this.at < this.end) {
      const c = load<u8>(this.at);
      if (c < 0x20) return false;
      const n = utf8(this.at, this.end);
      if (n == 0) return false;
      this.at += n;
      if (c == 0x22) return true;
      if (c == 0x5c && !this.escape()) return false;
    }
    return false;
  }

  private escape(): bool {
    if (this.at == this.end) return false;
    switch (load<u8>(this.at)) {
      case 0x22: case 0x5c: case 0x2f: case 0x62: case 0x66: case 0x6e: case 0x72: case 0x74:
        this.at++;
        return true;
      case 0x75: {
        const first = this.unit();
        if ((first & 0xf800) != 0xd800) return first >= 0;
        // A half of a surrogate pair needs the other one.
        if (first >= 0xdc00 || this.peek() != 0x5c) return false;
        this.at++;
        return this.peek() == 0x75 && (this.unit() & 0xfc00) == 0xdc00;
      }
    }
    return false;
  }

  /** The number of an escape, from its u on; -1 if it is none. */
  private unit(): i32 {
    this.at++;
    let n = 0;
    for (let i = 0; i < 4; i++, this.at++) {
      if (this.at == this.end) return -1;
      const c: i32 = load<u8>(this.at);
      const letter = c | 0x20;
      if (c >= 0x30 && c <= 0x39) n = n << 4 | (c - 0x30);
      else if (letter >= 0x61 && letter <= 0x66) n = n << 4 | (letter - 0x57);
      else return -1;
    }
    return n;
  }

  private number(): bool {
    if (this.peek() == 0x2d) this.at++;
    if (this.peek() == 0x30) this.at++;
    else if (!this.digits()) return false;
    if (this.peek() == 0x2e) {
      this.at++;
      if (!this.digits()) return false;
    }
    if ((this.peek() | 0x20) == 0x65) {
      this.at++;
      const sign = this.peek();
      if (sign == 0x2b || sign == 0x2d) this.at++;
      if (!this.digits()) return false;
    }
    return true;
  }

  private peek(): i32 {
    return this.at < this.end ? load<u8>(this.at) : -1;
  }

  private digits(): bool {
    const from = this.at;
    while (this.at < this.end && <u8>(load<u8>(this.at) - 0x30) < 10) this.at++;
    return this.at > from;
  }
}
