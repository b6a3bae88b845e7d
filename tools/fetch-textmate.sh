#!/usr/bin/env bash
# Prints the directory with the engine that highlights text in VS Code, for the test of the grammar. It is fetched from npm
# once, into the user's cache.
set -euo pipefail
. "$(dirname "$0")/get.sh"

textmate=9.3.2
oniguruma=2.0.1
dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/textmate-$textmate-$oniguruma
npm_folder "$dir" "vscode-textmate@$textmate" "vscode-oniguruma@$oniguruma"
echo "$dir"
