#!/usr/bin/env bash
# Prints the folder with a validator of OpenAPI documents and one of JSON Schema, which
# the tests check documents with. They are got from npm unless they are there already,
# and kept outside of the tree.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=2.11.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/openapi-schema-validator-$version
npm_folder "$dir" "@seriousme/openapi-schema-validator@$version"
echo "$dir"
