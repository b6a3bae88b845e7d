#!/usr/bin/env bash
# Prints the directory of the npm package @bytecodealliance/jco, which makes components in the tests and has the WIT files of
# WASI. It is fetched from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=1.35.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/jco-$version
npm_folder "$dir" "@bytecodealliance/jco@$version"
echo "$dir/node_modules/@bytecodealliance/jco"
