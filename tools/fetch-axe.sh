#!/usr/bin/env bash
# Prints the directory of the npm package axe-core, which finds what keeps people from using a page, such as an input
# without a label. It is fetched from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=4.14.1
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/axe-core-$version
npm_folder "$dir" "axe-core@$version"
echo "$dir/node_modules/axe-core"
