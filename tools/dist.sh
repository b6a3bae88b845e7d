#!/usr/bin/env bash
# Builds a tarball for each platform, and SHA256SUMS, in bin/dist: the static binary, the
# licences, the man pages, the completions, units for systemd, and what Prometheus and Grafana load. The
# same commit, Go version and engine give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

[ -z "$(git status --porcelain)" ] || say "the working tree has changes: the version will say so"
tools/fetch-engine.sh
time=$(git log -1 --format=%ct)
version=$(git describe --tags --always)
out=bin/dist
rm -rf "$out"
mkdir -p "$out"

# What is the same on every platform.
common=$(mktemp -d)
trap 'rm -rf "$common"' EXIT
tools/go.sh build -trimpath -pgo=cmd/runner/release.pgo -o "$common/runner" ./cmd/runner
mkdir -p "$common/files/completions" "$common/files/man"
for shell in bash fish zsh; do "$common/runner" completion "$shell" > "$common/files/completions/runner.$shell"; done
tools/go.sh test ./cmd/runner -run '^TestManPages$' -count=1 -man "$common/files/man" -date "$time" > /dev/null
"$common/runner" version --notices > "$common/files/NOTICES"
cp LICENSE README.md runner.toml tools/dist/runner*.service tools/dist/runner-backup.timer "$common/files/"
cp docs/prometheus-rules.yml docs/grafana.json "$common/files/"

for arch in amd64 arm64; do
  name=runner-$version-linux-$arch
  dir=$common/$name
  cp -r "$common/files" "$dir"
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch tools/go.sh build -trimpath -pgo=cmd/runner/release.pgo -ldflags='-s -w -buildid=' -o "$dir/runner" ./cmd/runner
  chmod -R u=rwX,go=rX "$dir"
  tar --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --format=ustar -C "$common" -c "$name" | gzip -9n > "$out/$name.tar.gz"
done
(cd "$out" && sha256sum -- *.tar.gz > SHA256SUMS && cat SHA256SUMS)
