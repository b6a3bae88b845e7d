#!/usr/bin/env bash
# Measures the runner against bare fasthttp and writes docs/performance.md.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
mkdir -p bin
go build -o bin/bench ./tests/bench
bin/bench "$@"
