#!/usr/bin/env bash
# Compares the runner with bare fasthttp, and the languages with each other, and
# writes docs/performance.md. The runner is built as a release is. A language without its compiler is
# reported as missing.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
mkdir -p bin
tools/go.sh build -trimpath -pgo=cmd/runner/release.pgo -o bin/runner-release ./cmd/runner
bin/runner-release build plugins/examples/inbox
tools/go.sh build -o bin/bench ./tests/bench
bin/bench -runner bin/runner-release "$@"
