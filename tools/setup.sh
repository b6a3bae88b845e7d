#!/usr/bin/env bash
# Installs what the tests need besides Go, make and curl: packages of Debian 12, then
# packages of npm. It skips what is installed.
set -euo pipefail
. "$(dirname "$0")/get.sh"

# One process at a time installs.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests
mkdir -p "$cache"
exec 9> "$cache/setup.lock"
if command -v flock > /dev/null; then
  flock -n 9 || { say "another process installs already: waiting for it"; flock 9; }
fi

missing=()
lacks() { command -v "$1" >/dev/null || missing+=("${@:2}"); } # a command, and its packages
lacks git git
lacks wat2wasm wabt
lacks nim nim
lacks wrk wrk
lacks chromium-headless-shell chromium-headless-shell
lacks node nodejs # 18 or later
lacks npm npm
lacks openssl openssl
lacks systemd-analyze systemd # it checks the units; it is not started
lacks nvim neovim # the editor that uses the language server
lacks python3 python3 # another Python, which answers as handlers must
lacks pip3 python3-pip
# For the race detector, and for tests of C that run on this machine.
lacks gcc gcc libc6-dev
# C and C++ for WebAssembly, and sanitizers.
c=(clang-22 lld-22 wasi-libc libclang-rt-22-dev-wasm32 libc++-22-dev-wasm32 libc++abi-22-dev-wasm32 libclang-rt-22-dev)
dpkg -s "${c[@]}" >/dev/null 2>&1 || missing+=("${c[@]}")
# Rust with its libraries for WebAssembly, and the crates that the SDK depends on.
rust=(rustc cargo libstd-rust-dev-wasm32 lld-14 librust-serde-dev librust-serde-derive-dev librust-serde-json-dev
  librust-chrono-dev librust-getrandom-dev librust-rand-dev librust-uuid-dev) # what tests use as handlers do
dpkg -s "${rust[@]}" >/dev/null 2>&1 || missing+=("${rust[@]}")
# Libraries of the proxies that tools/fetch-proxies.sh fetches.
proxies=(liblua5.3-0 libopentracing-c-wrapper0 libpcre2-8-0)
dpkg -s "${proxies[@]}" >/dev/null 2>&1 || missing+=("${proxies[@]}")

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || { say "apt-get is missing: install these packages (names of Debian 12): ${missing[*]}"; exit 1; }
  echo "installing ${missing[*]}"
  wait=(-o DPkg::Lock::Timeout=600) # another process may be installing
  retry as_root apt-get update -qq 9>&- || say "could not update the package lists; using the present ones"
  retry as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${wait[@]}" -y -qq --no-install-recommends "${missing[@]}" 9>&- >/dev/null ||
    { say "apt-get could not install ${missing[*]}: install them by hand (names of Debian 12)"; exit 1; }
fi

"$(dirname "$0")/assemblyscript.sh"
