#!/usr/bin/env bash
# Measures the runner against bare fasthttp, and languages against each other, and
# writes docs/performance.md. A language without its compiler is a row that says so.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
bin/runner build plugins/examples/inbox
mkdir -p bin
go build -o bin/bench ./tests/bench
bin/bench "$@"
