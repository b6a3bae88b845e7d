#!/usr/bin/env bash
# Prints the directory of the npm package hono that the tests build. It is fetched from npm
# once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=4.13.19
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/hono-$version
npm_folder "$dir" "hono@$version"
echo "$dir/node_modules/hono"
