#!/usr/bin/env bash
# Runs wazero's own tests of the compiler and of WebAssembly's specification, with our patches and
# without: tools/test-wazero.sh, or GOARCH=arm64 tools/test-wazero.sh under qemu-aarch64, which takes an
# hour. Two tests are left out there: one starts its own program again, which qemu cannot, and one compiles
# for longer than its limit.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/go.sh list -m > /dev/null # makes bin/modules
published=$(go list -m -f '{{.Dir}}' github.com/tetratelabs/wazero)
packages=(./internal/engine/wazevo/... ./internal/integration_test/spectest/... ./internal/integration_test/engine)
failed=0
for module in "$PWD/bin/modules/wazero" "$published"; do
  if [ "${GOARCH:-}" = arm64 ]; then
    for dir in $(go -C "$module" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "${packages[@]}"); do
      test=$(mktemp)
      CGO_ENABLED=0 go -C "$dir" test -c -vet=off -o "$test" .
      echo "$dir"
      (cd "$dir" && qemu-aarch64-static "$test" -test.skip 'huge_binary|filecache' -test.timeout 60m) || failed=1
      rm -f "$test"
    done
  else
    go -C "$module" test -vet=off -timeout 60m "${packages[@]}" || failed=1
  fi
done
exit $failed
