#!/usr/bin/env bash
# Makes hostabi/wasi/wasi.wasm: the types of all interfaces of WASI 0.2 and 0.3, as a component that imports
# them and does nothing. They come from the WIT files in the npm package @bytecodealliance/jco
# (Apache-2.0 WITH LLVM-exception), features that are marked as unstable included.
set -euo pipefail

versions=(0.2.12 0.3.0)
jco=$("$(dirname "$0")/fetch-jco.sh")
out=$(cd "$(dirname "$0")/.." && pwd)/hostabi/wasi/wasi.wasm

script=$(mktemp --suffix=.mjs)
trap 'rm -f "$script"' EXIT
cat > "$script" <<'JS'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
const [jco, out, ...versions] = process.argv.slice(2);
const { componentEmbed, componentNew, parse, print } = await import(`${jco}/dist/api.js`);

// The interfaces of wasi:http, and those that components export.
const names = {
  '0.2': ['http/types', 'http/outgoing-handler', 'http/incoming-handler', 'cli/run'],
  '0.3': ['http/types', 'http/client', 'http/handler', 'cli/run'],
};
let world = '';
let packages = '';
for (const wasi of versions) {
  world += `  include wasi:cli/imports@${wasi};\n`;
  for (const name of names[wasi.slice(0, 3)]) world += `  import wasi:${name}@${wasi};\n`;
  for (const name of readdirSync(`${jco}/lib/wit/builtin/${wasi}`)) {
    const text = readFileSync(`${jco}/lib/wit/builtin/${wasi}/${name}/package.wit`, 'utf8');
    const [head, ...rest] = text.replace(/^\s*@unstable\(.*\)$/gm, '').split('\n');
    packages += `${head.replace(';', ' {')}\n${rest.join('\n')}}\n`;
  }
}
const wit = `package runner:host;\nworld wasi {\n${world}}\n${packages}`;
const core = await componentEmbed({ dummy: true, witSource: wit, worldName: 'wasi', metadata: [] });
const whole = await print(await componentNew(core, []));
const types = whole.slice(0, whole.indexOf('\n  (core module')); // without the code of the dummy
writeFileSync(out, await parse(`${types}\n)\n`));
JS
node "$script" "$jco" "$out" "${versions[@]}"
echo "tools/wasi-types.sh: wrote $out"
