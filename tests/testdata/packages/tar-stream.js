import tar from "tar-stream";
import { Readable } from "stream";
export async function run() {
  const pack = tar.pack();
  pack.entry({ name: "a.txt", mtime: new Date(0) }, "hello");
  pack.entry({ name: "dir/b.txt", mtime: new Date(0) }, "wörld");
  pack.finalize();
  const parts = [];
  for await (const part of pack) parts.push(part);
  const bytes = Buffer.concat(parts);
  const seen = [];
  const extract = tar.extract();
  Readable.from([bytes.subarray(0, 700), bytes.subarray(700)]).pipe(extract);
  for await (const entry of extract) {
    const text = [];
    for await (const part of entry) text.push(part);
    seen.push([entry.header.name, Buffer.concat(text).toString()]);
  }
  return [bytes.length, seen];
}
