#!/usr/bin/env bash
# Records where the runner spends its time under load, in cmd/runner/release.pgo. The Go compiler
# optimizes released binaries by it. To be run after changes of the path of requests.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
tools/fetch-engine.sh
profiles=$(mktemp -d)
trap 'rm -rf "$profiles"' EXIT
tools/go.sh build -trimpath -tags=patched,profile -o bin/runner-profile ./cmd/runner
tools/go.sh build -o bin/bench ./tests/bench
RUNNER_PROFILES=$profiles bin/bench -servers -rounds 3 -runner bin/runner-profile
go tool pprof -proto -output cmd/runner/release.pgo "$profiles"/*.pprof
