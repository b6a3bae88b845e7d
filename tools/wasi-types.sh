#!/usr/bin/env bash
# Makes hostabi/wasi/wasi.wasm: the types of all interfaces of WASI 0.2, as a component that imports
# them and does nothing. They come from the WIT files in the npm package @bytecodealliance/jco
# (Apache-2.0 WITH LLVM-exception), features that are marked as unstable included.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=1.35.0
wasi=0.2.12
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/jco-$version
npm_folder "$dir" "@bytecodealliance/jco@$version"
out=$(cd "$(dirname "$0")/.." && pwd)/hostabi/wasi/wasi.wasm

script=$(mktemp --suffix=.mjs)
trap 'rm -f "$script"' EXIT
cat > "$script" <<'JS'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
const [jco, wasi, out] = process.argv.slice(2);
const { componentEmbed, componentNew, parse, print } = await import(`${jco}/dist/api.js`);

const names = ['http/types', 'http/outgoing-handler', 'http/incoming-handler', 'cli/run'];
const imports = names.map(name => `  import wasi:${name}@${wasi};\n`).join('');
let wit = `package runner:host;\nworld wasi {\n  include wasi:cli/imports@${wasi};\n${imports}}\n`;
for (const name of readdirSync(`${jco}/lib/wit/builtin/${wasi}`)) {
  const text = readFileSync(`${jco}/lib/wit/builtin/${wasi}/${name}/package.wit`, 'utf8');
  const [head, ...rest] = text.replace(/^\s*@unstable\(.*\)$/gm, '').split('\n');
  wit += `${head.replace(';', ' {')}\n${rest.join('\n')}}\n`;
}
const core = await componentEmbed({ dummy: true, witSource: wit, worldName: 'wasi', metadata: [] });
const whole = await print(await componentNew(core, []));
const types = whole.slice(0, whole.indexOf('\n  (core module')); // without the code of the dummy
writeFileSync(out, await parse(`${types}\n)\n`));
JS
node "$script" "$dir/node_modules/@bytecodealliance/jco" "$wasi" "$out"
echo "tools/wasi-types.sh: wrote $out"
