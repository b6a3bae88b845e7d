import { createParser } from "eventsource-parser";

export async function run() {
  const seen = [];
  const parser = createParser({ onEvent: (e) => seen.push(e), onRetry: (n) => seen.push(["retry", n]), onComment: (c) => seen.push(["comment", c]), onError: (e) => seen.push([e.name, e.type]) });
  for (const piece of [": note\n", "id: 1\nevent: greet", "ing\ndata: a\nda", "ta: b\n\nretry: 5\n", "unknown: x\n", "data: \u20ac\r\n\r\n"]) parser.feed(piece);
  return seen;
}
