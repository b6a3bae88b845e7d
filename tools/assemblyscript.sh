#!/usr/bin/env bash
# Installs the AssemblyScript compiler, an npm package of 100 MB, in the user's cache, and
# links it into node_modules of the tests' guests and the examples.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

compiler=assemblyscript@0.28.20
json=json-as@1.6.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/${compiler/@/-}-${json/@/-}

npm_folder "$cache" "$compiler" "$json"

for manifest in tests/{conformance,bench}/guests/as/handlers/*/package.json tests/languages/testdata/*/handlers/*/package.json plugins/examples/*/handlers/*/package.json; do
  grep -q '"assemblyscript"' "$manifest" 2>/dev/null || continue
  modules=$(dirname "$manifest")/node_modules
  mkdir -p "$modules/@runner" "$modules/.bin"
  for package in assemblyscript json-as xjb-as; do ln -sfn "$cache/node_modules/$package" "$modules/$package"; done
  ln -sfn "$PWD/sdk/assemblyscript" "$modules/@runner/assemblyscript"
  ln -sfn ../assemblyscript/bin/asc.js "$modules/.bin/asc"
done
