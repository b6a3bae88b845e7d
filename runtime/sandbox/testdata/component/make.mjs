// Makes components from modules in the text format, with the WIT files and tools of @bytecodealliance/jco 1.35:
// counter.wasm, streams.wasm and command.wasm of WASI 0.2, flow.wasm of WASI 0.3; instances.wasm, which is in the text
// format of components; and from handlers.wat handlers.wasm, mistyped.wasm, whose handler late has another type, and
// other-wit.wasm, which imports digest with another type.
//   npm install --prefix /tmp/jco @bytecodealliance/jco@1.35.0
//   node make.mjs /tmp/jco
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const jco = join(process.argv[2], 'node_modules/@bytecodealliance/jco');
const { parse, componentEmbed, componentNew } = await import(pathToFileURL(join(jco, 'dist/api.js')));
const here = new URL('.', import.meta.url).pathname;

async function make(name, version, items) {
  let wit = `package runner:${name};\nworld ${name} {\n${items.map(i => `  ${i}@${version};\n`).join('')}}\n`;
  for (const of of readdirSync(join(jco, 'lib/wit/builtin', version))) {
    const text = readFileSync(join(jco, 'lib/wit/builtin', version, of, 'package.wit'), 'utf8');
    const [head, ...rest] = text.replace(/^\s*@unstable\(.*\)$/gm, '').split('\n');
    wit += `${head.replace(';', ' {')}\n${rest.join('\n')}}\n`;
  }
  const core = await parse(readFileSync(join(here, `${name}.wat`), 'utf8'));
  const embedded = await componentEmbed({ witSource: wit, worldName: name, binary: core, metadata: [] });
  writeFileSync(join(here, `${name}.wasm`), await componentNew(embedded, []));
}

await make('counter', '0.2.12', ['import wasi:http/types', 'export wasi:http/incoming-handler']);
await make('streams', '0.2.12', ['import wasi:http/types', 'import wasi:clocks/monotonic-clock', 'import wasi:cli/stderr', 'export wasi:http/incoming-handler']);
await make('command', '0.2.12', ['import wasi:cli/environment', 'import wasi:cli/stdin', 'import wasi:cli/stdout', 'import wasi:cli/exit', 'export wasi:cli/run']);
await make('flow', '0.3.0', ['import wasi:http/types', 'import wasi:clocks/monotonic-clock', 'export wasi:http/handler']);
writeFileSync(join(here, 'instances.wasm'), await parse(readFileSync(join(here, 'instances.wat'), 'utf8')));

const runner = readFileSync(join(here, '../../../../sdk/wit/runner.wit'), 'utf8').replace(/^package (.*);$/m, 'package $1 {') + '}\n';
const handlers = await parse(readFileSync(join(here, 'handlers.wat'), 'utf8'));
const handler = 'func(request: request) -> result<response, error>';
for (const [name, late, app] of [
  ['handlers', handler, runner],
  ['mistyped', handler.replace('response, error', 'response, code'), runner],
  ['other-wit', handler, runner.replace('    operation: string,\n', '    act: string,\n')],
]) {
  const exports = ['echo', 'count-uses', 'digest-body', 'digest-2', 'wrong', 'outside', 'spin'].map(name => `  export ${name}: ${handler};\n`).join('');
  const world = `package runner:test;
world test {
  include runner:app/handlers@1.1.0;
  use runner:app/types@1.1.0.{request, response, error, code};
${exports}  export late: ${late};
}
${app}`;
  const embedded = await componentEmbed({ witSource: world, worldName: 'test', binary: handlers, metadata: [] });
  writeFileSync(join(here, `${name}.wasm`), await componentNew(embedded, []));
}
