// TextEncoderStream and TextDecoderStream (Encoding Standard, 8.4 and 8.5).

import { isDetached } from "./bytes.ts";
import { inner, share, stamp } from "./inner.ts";
import { Sides, transformer, TransformStream } from "./transform.ts";

class Encoding extends Sides {
  declare decoder: TextDecoder | undefined;
}

/** The state of such a stream; without a decoder it encodes. */
function coding(change: (chunk: any) => unknown, flush: () => unknown, decoder?: TextDecoder): Encoding {
  const { readable, writable } = transformer(change, flush);
  const sides = new Encoding(readable, writable);
  sides.decoder = decoder;
  return sides;
}

/** The decoder of a stream. */
function decoderOf(stream: unknown): TextDecoder {
  return inner(stream, Encoding).decoder ?? inner(undefined, Encoding).decoder!;
}

export class TextEncoderStream {
  constructor() {
    const encoder = new TextEncoder();
    let lead = ""; // a high surrogate at the end of the last chunk
    stamp(this, coding(
      (chunk) => {
        let text = lead + chunk;
        lead = "";
        if (/[\ud800-\udbff]$/.test(text)) {
          lead = text.slice(-1);
          text = text.slice(0, -1);
        }
        return text === "" ? undefined : encoder.encode(text);
      },
      () => (lead === "" ? undefined : encoder.encode(lead)),
    ));
  }
  get encoding(): string {
    inner(this, Encoding);
    return "utf-8";
  }
}

export class TextDecoderStream {
  constructor(label: string | undefined = undefined, options: any = undefined) {
    const decoder = new TextDecoder(label, options);
    stamp(this, coding(
      (chunk) => {
        if (chunk === undefined) throw new TypeError("TextDecoderStream: a chunk must be an ArrayBuffer or a view of one");
        const buffer = ArrayBuffer.isView(chunk) ? chunk.buffer : chunk;
        if (buffer instanceof ArrayBuffer && isDetached(buffer)) return undefined; // it has no bytes
        return decoder.decode(chunk, { stream: true }) || undefined;
      },
      () => decoder.decode() || undefined,
      decoder,
    ));
  }
  get encoding(): string {
    return decoderOf(this).encoding;
  }
  get fatal(): boolean {
    return decoderOf(this).fatal;
  }
  get ignoreBOM(): boolean {
    return decoderOf(this).ignoreBOM;
  }
}

share(TransformStream, TextEncoderStream, "readable", "writable");
share(TransformStream, TextDecoderStream, "readable", "writable");
