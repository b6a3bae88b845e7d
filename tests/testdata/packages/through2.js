import through from "through2";
export async function run() {
  const stream = through(function (chunk, _encoding, done) { this.push(String(chunk).toUpperCase()); done(); }, (done) => done());
  stream.write("a");
  stream.end("b");
  const parts = [];
  for await (const part of stream) parts.push(String(part));
  return parts.join("");
}
