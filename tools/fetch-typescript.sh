#!/usr/bin/env bash
# Prints the path of the TypeScript compiler that the tests use.
set -euo pipefail
. "$(dirname "$0")/get.sh"

npm_command typescript 7.0.2 tsc
