#!/usr/bin/env bash
# Prints the path of TypeScript's compiler, which the tests check types with. It is
# got from npm unless it is there already, and kept outside of the tree.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=7.0.2
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/typescript-$version
npm_folder "$dir" "typescript@$version"
tsc=$dir/node_modules/.bin/tsc
[ -x "$tsc" ] || { say "$tsc is not there: remove $dir and try again"; exit 1; }
echo "$tsc"
