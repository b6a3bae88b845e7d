// Compression by the host: see compression.open in docs/abi/operations.md.

import { result, run } from "../host.ts";
import { fromBase64, pieceBytes, toBase64 } from "./encoding.ts";

/** One compression or decompression. A method throws the HostError of the operation, after which write begins anew. */
export class Compressor {
  readonly #format: string;
  readonly #decompress: boolean;
  #stream: number | undefined; // the host's, from the first write to the end

  constructor(format: string, decompress: boolean) {
    this.#format = format;
    this.#decompress = decompress;
  }
  #ask(op: string, args: object): any {
    try {
      run(op, args);
      return result();
    } catch (error) {
      this.#stream = undefined; // the host has closed it
      throw error;
    }
  }
  /** Passes bytes to the host, and each piece of its output to a function. With end, no bytes follow. */
  write(bytes: Uint8Array, end: boolean, output: (piece: Uint8Array<ArrayBuffer>) => void): void {
    let last = false;
    for (let at = 0; at < bytes.length || (end && !last); at += pieceBytes) {
      last = end && at + pieceBytes >= bytes.length;
      this.#stream ??= this.#ask("compression.open", { format: this.#format, decompress: this.#decompress }).stream;
      const stream = this.#stream;
      let args: object = { stream, data: { base64: toBase64(bytes.subarray(at, at + pieceBytes)) }, end: last };
      for (let more = true; more; args = { stream, end: last }) {
        const answer = this.#ask("compression.write", args);
        const piece = fromBase64(answer.data.base64);
        if (piece.length > 0) output(piece);
        more = answer.more;
      }
    }
    if (last) this.#stream = undefined;
  }
  /** Frees the host's stream before its end. */
  close(): void {
    if (this.#stream !== undefined) this.#ask("compression.close", { stream: this.#stream });
    this.#stream = undefined;
  }
}
