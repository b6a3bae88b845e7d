#!/usr/bin/env bash
# Prints the directory with the npm packages of the VS Code extension. They are fetched from npm once, into the user's cache.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

sum=$(cat editors/vscode/package.json editors/vscode/package-lock.json | sha256sum)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/vscode-packages-${sum:0:12}
npm_locked "$dir" editors/vscode
echo "$dir"
