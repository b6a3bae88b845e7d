#!/usr/bin/env bash
# Prints the folder with an OpenID Connect provider, whose tokens the tests hold the
# runner to. It is got from npm unless it is there already, and kept outside of the tree.
set -euo pipefail

version=9.13.3
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/oidc-provider-$version

if ! [ -d "$dir" ]; then
  command -v npm >/dev/null || { echo "tools/fetch-oidc-provider.sh: npm is not installed, and the provider comes from it: install Node.js" >&2; exit 1; }
  mkdir -p "$(dirname "$dir")"
  new=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$new" "oidc-provider@$version" >&2
  mv -T "$new" "$dir" 2>/dev/null || [ -d "$dir" ] # or somebody else was faster
fi
echo "$dir"
