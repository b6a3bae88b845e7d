#!/usr/bin/env bash
# Prints the path of the type checker of Python that the tests use. It needs Node.js alone.
set -euo pipefail
. "$(dirname "$0")/get.sh"

npm_command pyright 1.1.414 pyright
