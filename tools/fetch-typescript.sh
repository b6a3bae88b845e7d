#!/usr/bin/env bash
# Prints the path of the TypeScript compiler that the tests use. It is fetched from npm once,
# into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=7.0.2
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/typescript-$version
npm_folder "$dir" "typescript@$version"
tsc=$dir/node_modules/.bin/tsc
[ -x "$tsc" ] || { say "$tsc is missing: remove $dir and try again"; exit 1; }
echo "$tsc"
