#!/usr/bin/env bash
# Prints the directory node_modules with the npm packages of tests/testdata/packages, which the
# tests run. They are fetched from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

list="$(dirname "$0")/../tests/testdata/packages/packages.txt"
mapfile -t packages < "$list"
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/packages-$(sha256sum "$list" | cut -c1-12)
npm_folder "$dir" "${packages[@]}"
echo "$dir/node_modules"
