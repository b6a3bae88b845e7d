#!/usr/bin/env bash
# Prints the directory of the validators of OpenAPI documents and JSON Schema that the tests
# use. They are fetched from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=2.11.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/openapi-schema-validator-$version
npm_folder "$dir" "@seriousme/openapi-schema-validator@$version"
echo "$dir"
