#!/usr/bin/env bash
# Prints the path of TypeScript's compiler, which the tests check types with. It is
# got from npm unless it is there already, and kept outside of the tree.
set -euo pipefail

version=7.0.2
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/typescript-$version
tsc=$dir/node_modules/.bin/tsc

if ! [ -x "$tsc" ]; then
  command -v npm >/dev/null || { echo "tools/fetch-typescript.sh: npm is not installed, and TypeScript comes from it: install Node.js" >&2; exit 1; }
  mkdir -p "$(dirname "$dir")"
  new=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$new" "typescript@$version" >&2
  mv -T "$new" "$dir" 2>/dev/null || [ -x "$tsc" ] # or somebody else was faster
fi
echo "$tsc"
