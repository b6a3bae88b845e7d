#!/usr/bin/env bash
# Prints the folder with a validator of OpenAPI documents and one of JSON Schema, which
# the tests check documents with. They are got from npm unless they are there already,
# and kept outside of the tree.
set -euo pipefail

version=2.11.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/openapi-schema-validator-$version

if ! [ -d "$dir" ]; then
  command -v npm >/dev/null || { echo "tools/fetch-openapi-validator.sh: npm is not installed, and the validator comes from it: install Node.js" >&2; exit 1; }
  mkdir -p "$(dirname "$dir")"
  new=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$new" "@seriousme/openapi-schema-validator@$version" >&2
  mv -T "$new" "$dir" 2>/dev/null || [ -d "$dir" ] # or somebody else was faster
fi
echo "$dir"
