import { PassThrough } from "node:stream";
import { buffer } from "node:stream/consumers";
import { PNG } from "pngjs";

export async function run() {
  const image = new PNG({ width: 5, height: 3 });
  for (let i = 0; i < image.data.length; i++) image.data[i] = (i * 7) & 255;
  const bytes = await buffer(image.pack().pipe(new PassThrough()));
  const read = await new Promise((done, failed) => new PNG().parse(bytes, (error, parsed) => (error ? failed(error) : done(parsed))));
  return [read.width, read.height, read.data.equals(image.data), bytes.toString("latin1", 1, 4)];
}
