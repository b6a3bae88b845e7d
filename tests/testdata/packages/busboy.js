import busboy from "busboy";
import { Readable } from "stream";
export async function run() {
  const body = ["--b", 'Content-Disposition: form-data; name="field"', "", "välue", "--b", 'Content-Disposition: form-data; name="file"; filename="a.txt"', "Content-Type: text/plain", "", "content of the file", "--b--", ""].join("\r\n");
  const seen = [];
  const parser = busboy({ headers: { "content-type": "multipart/form-data; boundary=b" } });
  parser.on("field", (name, value) => seen.push([name, value]));
  parser.on("file", (name, stream, info) => {
    const parts = [];
    stream.on("data", (part) => parts.push(part)).on("end", () => seen.push([name, info, Buffer.concat(parts).toString()]));
  });
  const closed = new Promise((done, failed) => parser.on("close", done).on("error", failed));
  Readable.from([Buffer.from(body.slice(0, 50)), Buffer.from(body.slice(50))]).pipe(parser);
  await closed;
  return seen;
}
