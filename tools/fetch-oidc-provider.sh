#!/usr/bin/env bash
# Prints the directory of the OpenID Connect provider that the tests use. It is fetched from
# npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=9.13.3
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/oidc-provider-$version
npm_folder "$dir" "oidc-provider@$version"
echo "$dir"
