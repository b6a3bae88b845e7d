#!/usr/bin/env bash
# Compares the runner with bare fasthttp, and the languages with each other, and
# writes docs/performance.md. A language without its compiler is reported as missing.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
bin/runner build plugins/examples/inbox
mkdir -p bin
tools/go.sh build -o bin/bench ./tests/bench
bin/bench "$@"
