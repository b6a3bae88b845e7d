// Makes cases.json from cases.txt, and link.json from link.txt, with the parser of @bytecodealliance/jco 1.35:
//   npm install --prefix /tmp/jco @bytecodealliance/jco@1.35.0
//   node make.mjs /tmp/jco
// A case begins with a line ";; accepted: what" or ";; refused: what: message".
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { createHash } from 'node:crypto';
import { join } from 'node:path';

const { parse } = await import(pathToFileURL(join(process.argv[2], 'node_modules/@bytecodealliance/jco/dist/api.js')));
const here = new URL('.', import.meta.url).pathname;
for (const name of ['cases', 'link', 'run']) {
  const text = readFileSync(join(here, `${name}.txt`), 'utf8');
  const cases = [];
  for (const part of text.split(/^;; (?=accepted|refused|returns|traps)/m).slice(1)) {
    const [first, ...rest] = part.split('\n');
    try {
      const wasm = await parse(rest.join('\n'));
      cases.push({ what: first, wasm: Buffer.from(wasm).toString('base64') });
    } catch (e) {
      console.error(`${first}: ${String(e.payload ?? e).slice(0, 500)}`);
      process.exitCode = 1;
    }
  }
  writeFileSync(join(here, `${name}.json`), JSON.stringify({ of: createHash('sha256').update(text).digest('hex'), cases }, null, 1) + '\n');
}
