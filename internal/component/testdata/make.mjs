// Makes cases.json from cases.txt, and link.json from link.txt, with the parser of @bytecodealliance/jco 1.35:
//   npm install --prefix /tmp/jco @bytecodealliance/jco@1.35.0
//   node make.mjs /tmp/jco
// A case begins with a line ";; accepted: what" or ";; refused: what: message". Those of run.txt begin with
// ";; returns number: what" or ";; traps: message: what", and have what the code does that jco makes of them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { createHash } from 'node:crypto';
import { join } from 'node:path';

const { parse, transpile } = await import(pathToFileURL(join(process.argv[2], 'node_modules/@bytecodealliance/jco/dist/api.js')));

// run calls the function "run" of a component in Node.js.
async function run(wasm) {
  const dir = mkdtempSync(join(process.argv[2], 'run-')) // where Node.js finds the packages of jco;
  try {
    const { files } = await transpile(wasm, { name: 'c' });
    for (const [name, content] of Object.entries(files)) {
      if (!name.includes('/')) writeFileSync(join(dir, name), content);
    }
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
    return `returns ${(await import(pathToFileURL(join(dir, 'c.js')))).run()}`;
  } catch (e) {
    return `fails: ${String(e.message ?? e).split('\n')[0].replaceAll(dir, '')}`;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const here = new URL('.', import.meta.url).pathname;
for (const name of ['cases', 'link', 'run']) {
  const text = readFileSync(join(here, `${name}.txt`), 'utf8');
  const cases = [];
  for (const part of text.split(/^;; (?=accepted|refused|returns|traps)/m).slice(1)) {
    const [first, ...rest] = part.split('\n');
    try {
      const wasm = await parse(rest.join('\n'));
      cases.push({ what: first, wasm: Buffer.from(wasm).toString('base64'), jco: name === 'run' ? await run(wasm) : undefined });
    } catch (e) {
      console.error(`${first}: ${String(e.payload ?? e).slice(0, 500)}`);
      process.exitCode = 1;
    }
  }
  writeFileSync(join(here, `${name}.json`), JSON.stringify({ of: createHash('sha256').update(text).digest('hex'), cases }, null, 1) + '\n');
}
