#!/usr/bin/env bash
# Builds tests and the runner for arm64, and runs them under qemu-aarch64: the packages that
# rewrite and run modules, and black-box tests of two example apps. Emulated code is slow, so
# the tests run in their short form. tools/setup.sh does not install qemu, as other targets
# do not need it. The black-box tests run one after the other, because a handler has a limit
# of wall-clock time for its initialization.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

export RUNNER_TEST_EMULATOR=qemu-aarch64-static
missing=()
command -v "$RUNNER_TEST_EMULATOR" > /dev/null || missing+=(qemu-user-static)
command -v wat2wasm > /dev/null || missing+=(wabt)
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get > /dev/null || { say "install these packages (names of Debian 12): ${missing[*]}"; exit 1; }
  retry as_root apt-get update -qq || say "could not update the package lists; using the present ones"
  retry as_root env DEBIAN_FRONTEND=noninteractive apt-get install -o DPkg::Lock::Timeout=600 -y -qq --no-install-recommends "${missing[@]}" > /dev/null
fi
tools/fetch-engine.sh

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
failed=0
for dir in $(tools/go.sh list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./internal/wasm/... ./internal/wazerofix ./runtime/capture ./runtime/pages ./runtime/sandbox ./hostabi ./hostabi/abi/... ./hostabi/sentvalue); do
  CGO_ENABLED=0 GOARCH=arm64 tools/go.sh test -c -vet=off -o "$bin/test" "$dir"
  say "$dir"
  (cd "$dir" && "$RUNNER_TEST_EMULATOR" "$bin/test" -test.short -test.timeout 20m) || failed=1
done
say "tests/rows"
# The limit below is for the tests, and building may take as long on a busy machine.
CGO_ENABLED=0 GOARCH=arm64 tools/go.sh build -o bin/test/runner-arm64 ./cmd/runner
RUNNER_TEST_GOARCH=arm64 tools/go.sh test -vet=off -timeout 20m -parallel 1 ./tests/rows -run '^(TestTheOrdersExampleKeepsItsRules|TestTheTrackerExampleIsolatesTenants)$' || failed=1
exit $failed
