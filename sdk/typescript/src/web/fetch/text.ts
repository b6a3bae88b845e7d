// UTF-8 in bodies. The encoder and the decoders are made once, when the module is built.

let encoder: TextEncoder;
let decoder: TextDecoder;
let marked: TextDecoder;

/** TextEncoder and TextDecoder must be there. */
export function prepareText(): void {
  encoder = new TextEncoder();
  decoder = new TextDecoder();
  marked = new TextDecoder("utf-8", { ignoreBOM: true });
}

export const encode = (text: string): Uint8Array => encoder.encode(text);

/** UTF-8 decode (Encoding Standard, 6): a byte order mark is left out. */
export const decode = (bytes: Uint8Array): string => decoder.decode(bytes);

/** UTF-8 decode without BOM: it stays. */
export const decodeAll = (bytes: Uint8Array): string => marked.decode(bytes);
