#!/usr/bin/env bash
# Puts the compiler of AssemblyScript, which is an npm package of 100 MB, where the
# tests' guests and the examples find it: once in the user's cache, and from there
# as links into the folder node_modules of each.
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=assemblyscript@0.28.20
json=json-as@1.6.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/${compiler/@/-}-${json/@/-}

if [ ! -e "$cache/complete" ]; then
  command -v npm >/dev/null || { echo "tools/assemblyscript.sh: npm is not installed, and $compiler comes from it: install Node.js" >&2; exit 1; }
  echo "installing $compiler and $json"
  mkdir -p "$(dirname "$cache")"
  dir=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$dir"' EXIT
  echo '{"private": true}' > "$dir/package.json"
  npm install --prefix "$dir" --silent --no-audit --no-fund --no-package-lock --ignore-scripts --save-exact "$compiler" "$json" >/dev/null
  touch "$dir/complete"
  rm -rf "$cache"
  mv -T "$dir" "$cache"
fi

for manifest in tests/{conformance,bench}/guests/as/handlers/*/package.json plugins/examples/*/handlers/*/package.json; do
  grep -q '"assemblyscript"' "$manifest" 2>/dev/null || continue
  modules=$(dirname "$manifest")/node_modules
  mkdir -p "$modules/@runner" "$modules/.bin"
  for package in assemblyscript json-as xjb-as; do ln -sfn "$cache/node_modules/$package" "$modules/$package"; done
  ln -sfn "$PWD/sdk/assemblyscript" "$modules/@runner/assemblyscript"
  ln -sfn ../assemblyscript/bin/asc.js "$modules/.bin/asc"
done
