#!/usr/bin/env bash
# Makes hostabi/wasi/app.wasm: the types of runner:app (sdk/wit/runner.wit), as a component that imports
# all of it and a handler, and does nothing. Run it after go generate has changed the WIT file.
set -euo pipefail

jco=$("$(dirname "$0")/fetch-jco.sh")
root=$(cd "$(dirname "$0")/.." && pwd)

script=$(mktemp --suffix=.mjs)
trap 'rm -f "$script"' EXIT
cat > "$script" <<'JS'
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
const [jco, root] = process.argv.slice(2);
const { componentEmbed, componentNew, parse, print } = await import(`${jco}/dist/api.js`);

const text = readFileSync(`${root}/sdk/wit/runner.wit`, 'utf8');
const [, version] = text.match(/^package runner:app@(.*);$/m);
const wit = `package runner:host;
world app {
  include runner:app/handlers@${version};
  use runner:app/types@${version}.{request, response, error};
  import handler: func(request: request) -> result<response, error>;
}
${text.replace(/^package (.*);$/m, 'package $1 {')}}
`;
const core = await componentEmbed({ dummy: true, witSource: wit, worldName: 'app', metadata: [] });
const whole = await print(await componentNew(core, []));
const types = whole.slice(0, whole.indexOf('\n  (core module')); // without the code of the dummy
const of = createHash('sha256').update(text).digest('hex'); // a test compares it
writeFileSync(`${root}/hostabi/wasi/app.wasm`, await parse(`${types}\n  (@custom "of" "${of}")\n)\n`));
JS
node "$script" "$jco" "$root"
echo "tools/app-types.sh: wrote $root/hostabi/wasi/app.wasm"
