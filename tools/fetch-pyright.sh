#!/usr/bin/env bash
# Prints the path of the type checker of Python that the tests use. It is fetched from npm once,
# into the user's cache, and needs Node.js alone.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=1.1.414
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/pyright-$version
npm_folder "$dir" "pyright@$version"
pyright=$dir/node_modules/.bin/pyright
[ -x "$pyright" ] || { say "$pyright is missing: remove $dir and try again"; exit 1; }
echo "$pyright"
