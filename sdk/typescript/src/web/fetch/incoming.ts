// The body of the request that a client has sent, as it comes.

import { errno, runner, withoutPlace } from "../../host.ts";
import { type Part, streamOfParts } from "../streams/body.ts";

/** A stream of the body. If nothing of it was read, all of it can be read at once. */
export const incoming = (): ReadableStream<Uint8Array> => streamOfParts(next, () => {})[0] as unknown as ReadableStream<Uint8Array>;

const reasons: Record<string, string> = {
  too_large: "it is larger than the route allows",
  deadline: "it arrives too slowly",
  unavailable: "the client has ended the connection, or what it sends is not valid",
  invalid: "another stream has read a part of it",
};

// The host waits for the bytes, so nothing else goes on meanwhile.
async function next(whole: boolean): Promise<Part> {
  const bytes = whole ? runner.host.request_body_bytes(0) : runner.host.request_read();
  if (typeof bytes !== "number") return { __proto__: null, bytes, end: whole || bytes.length === 0 } as Part;
  const code = errno(bytes);
  throw withoutPlace(() => new TypeError(`the body of the request cannot be read: ${reasons[code] ?? code}`));
}
