#!/usr/bin/env bash
# Installs what the tests need beside Go, make and curl, where it is missing: packages
# of Debian 12 first, and then from npm what stands on them.
set -euo pipefail

missing=()
lacks() { command -v "$1" >/dev/null || missing+=("${@:2}"); } # a command, and the packages that have it
lacks git git
lacks wat2wasm wabt
lacks wrk wrk
lacks chromium-headless-shell chromium-headless-shell
lacks node nodejs # 18 or later
lacks npm npm
# For the race detector, and tests of C on this machine.
lacks gcc gcc libc6-dev
# C and C++ for WebAssembly, and sanitizers.
c=(clang-22 lld-22 wasi-libc libclang-rt-22-dev-wasm32 libc++-22-dev-wasm32 libc++abi-22-dev-wasm32 libclang-rt-22-dev)
dpkg -s "${c[@]}" >/dev/null 2>&1 || missing+=("${c[@]}")
# Rust with the library for WebAssembly, and the crates that the SDK stands on.
rust=(rustc cargo libstd-rust-dev-wasm32 lld-14 librust-serde-dev librust-serde-derive-dev librust-serde-json-dev)
dpkg -s "${rust[@]}" >/dev/null 2>&1 || missing+=("${rust[@]}")

if [ ${#missing[@]} -gt 0 ]; then
  sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  echo "installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

"$(dirname "$0")/assemblyscript.sh"
