// Makes the components counter.wasm and instances.wasm from counter.wat and instances.wat, with the WIT files and tools of @bytecodealliance/jco 1.35:
//   npm install --prefix /tmp/jco @bytecodealliance/jco@1.35.0
//   node make.mjs /tmp/jco
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const jco = join(process.argv[2], 'node_modules/@bytecodealliance/jco');
const { parse, componentEmbed, componentNew } = await import(pathToFileURL(join(jco, 'dist/api.js')));
const here = new URL('.', import.meta.url).pathname;
let wit = `package runner:counter;
world counter {
  import wasi:http/types@0.2.12;
  export wasi:http/incoming-handler@0.2.12;
}
`;
for (const name of readdirSync(join(jco, 'lib/wit/builtin/0.2.12'))) {
  const text = readFileSync(join(jco, 'lib/wit/builtin/0.2.12', name, 'package.wit'), 'utf8');
  const [head, ...rest] = text.replace(/^\s*@unstable\(.*\)$/gm, '').split('\n');
  wit += `${head.replace(';', ' {')}\n${rest.join('\n')}}\n`;
}
const core = await parse(readFileSync(join(here, 'counter.wat'), 'utf8'));
const embedded = await componentEmbed({ witSource: wit, worldName: 'counter', binary: core, metadata: [] });
writeFileSync(join(here, 'counter.wasm'), await componentNew(embedded, []));
writeFileSync(join(here, 'instances.wasm'), await parse(readFileSync(join(here, 'instances.wat'), 'utf8')));
