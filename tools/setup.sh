#!/usr/bin/env bash
# Installs what the tests need beside Go, make and curl, where it is missing.
set -euo pipefail

missing=()
command -v wat2wasm >/dev/null || missing+=(wabt)
command -v wrk >/dev/null || missing+=(wrk)
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
echo "installing ${missing[*]}"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
