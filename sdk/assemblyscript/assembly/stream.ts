// Answers in parts, sent while the handler runs.

import { errnoName, response_begin, response_write } from "./abi";
import { failed } from "./host";
import { Response } from "./response";
import { accepted, setHeader } from "./serve";

/** An answer in parts. */
export class Stream {
  private head: Response;

  constructor(status: i32) {
    this.head = new Response(status);
    this.head.parts = true;
  }

  /** Adds a header line. It must be called before begin. */
  withHeader(name: string, value: string): Stream {
    this.head.withHeader(name, value);
    return this;
  }

  /**
   * Commits the transaction of the request and sends the head. If the transaction conflicts, begin does not return,
   * and the handler runs again. After it each operation is a transaction of its own. If the handler fails then, or
   * returns an error, the answer is broken off, and the client can see that: it gets no end of the body, and of events
   * one of type "error" before, with the code.
   */
  begin(): Stream {
    const head = this.head;
    for (let i = 0; i < head.names.length; i++) setHeader(head.names[i], head.values[i]);
    accepted(response_begin(head.status), "begin an answer with status " + head.status.toString());
    return this;
  }

  /**
   * Sends a string or a Uint8Array at once, and waits for a slow client. False means that the client takes no more. The
   * handler has about a second to end then.
   */
  write<T>(part: T): bool {
    if (part instanceof Uint8Array) return sent(part.dataStart, part.byteLength);
    if (!isString<T>()) ERROR("a part is a string or a Uint8Array");
    const bytes = String.UTF8.encode(changetype<string>(part));
    return sent(changetype<usize>(bytes), bytes.byteLength);
  }

  /** Sends a server-sent event as write does. */
  event(event: Event): bool {
    return this.write(event.toString());
  }

  /** What the handler returns. */
  end(): Response {
    return this.head;
  }
}

function sent(at: usize, length: i32): bool {
  const n = response_write(at, length);
  if (n < 0 && errnoName(n) == "unavailable") return false;
  accepted(n, "write " + length.toString() + " bytes of the answer");
  return true;
}

/**
 * Answers in parts:
 *
 *     const out = stream().withHeader("content-type", "text/csv").begin();
 *     for (let i = 0; i < lines.length; i++) {
 *       if (!out.write(lines[i])) break;
 *     }
 *     return out.end();
 */
export function stream(status: i32 = 200): Stream {
  return new Stream(status);
}

/** Answers with server-sent events, which `event` sends. */
export function events(): Stream {
  return new Stream(200).withHeader("content-type", "text/event-stream");
}

/** A server-sent event. What is not set is left out. */
export class Event {
  private type: string = "";
  private lastId: string = "";
  private milliseconds: i64 = 0;

  /** The data may have several lines. */
  constructor(private data: string = "") {}

  /** Sets the type. Browsers call an event without one "message". A line end or a zero byte in it fails the request. */
  event(type: string): Event {
    this.type = oneLine(type);
    return this;
  }

  /** Sets what the client sends in the header "last-event-id" when it connects again. A line end or a zero byte in it fails the request. */
  id(id: string): Event {
    this.lastId = oneLine(id);
    return this;
  }

  /** Sets how many milliseconds the client waits before it connects again. */
  retry(milliseconds: i64): Event {
    this.milliseconds = milliseconds;
    return this;
  }

  toString(): string {
    let text = "";
    if (this.type.length > 0) text += "event: " + this.type + "\n";
    if (this.lastId.length > 0) text += "id: " + this.lastId + "\n";
    if (this.milliseconds > 0) text += "retry: " + this.milliseconds.toString() + "\n";
    if (this.data.length > 0 || this.type.length > 0) {
      // else the client would see an empty message
      const lines = this.data.replaceAll("\r\n", "\n").replaceAll("\r", "\n").split("\n");
      for (let i = 0; i < lines.length; i++) text += "data: " + lines[i] + "\n";
    }
    return text + "\n";
  }
}

function oneLine(value: string): string {
  if (value.includes("\r") || value.includes("\n") || value.includes("\0")) failed("the type or the id of an event has a line end or a zero byte");
  return value;
}
