import { parse } from "csv-parse";
import { parse as sync } from "csv-parse/sync";
export async function run() {
  const seen = [];
  const parser = parse({ delimiter: ";", columns: true });
  parser.write("a;b\n1;");
  parser.end('"x;\ny"\n');
  for await (const row of parser) seen.push(row);
  return [seen, sync("a,b\n1,é\n", { columns: true, cast: true }), (() => { try { sync("a,b\n1\n"); } catch (e) { return e.code; } })()];
}
