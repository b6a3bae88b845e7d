#!/usr/bin/env bash
# Prints the path of workerd, the server of Cloudflare Workers, which `make bench` compares
# with. It is fetched from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

version=1.20261117.1
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/workerd-$version
npm_folder "$dir" "@cloudflare/workerd-linux-64@$version"
echo "$dir/node_modules/@cloudflare/workerd-linux-64/bin/workerd"
