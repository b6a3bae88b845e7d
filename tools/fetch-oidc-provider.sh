#!/usr/bin/env bash
# Prints the folder with an OpenID Connect provider, whose tokens the tests hold the
# runner to. It is got from npm unless it is there already, and kept outside of the tree.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=9.13.3
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/oidc-provider-$version
npm_folder "$dir" "oidc-provider@$version"
echo "$dir"
