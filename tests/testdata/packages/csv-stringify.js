import { stringify } from "csv-stringify";
import { stringify as sync } from "csv-stringify/sync";
export async function run() {
  const text = await new Promise((done, failed) => stringify([["a", 'q"q'], [1, null]], { header: true, columns: ["x", "y"] }, (error, out) => (error ? failed(error) : done(out))));
  return [text, sync([{ a: 1, b: "x,y" }], { header: true, quoted: true })];
}
