#!/usr/bin/env bash
# Builds in bin/dist an archive for each platform, the extension of VS Code, SHA256SUMS, install.sh, and what Homebrew and
# Scoop read:
#
#   tools/dist.sh [linux/amd64 …]
#
# An archive has the static binary, the licences, the completions and what editors load; on Linux and macOS the man pages; on
# Linux units for systemd, and what Prometheus and Grafana load. The same commit, Go version and engine give the
# same bytes. A binary has the archive's name as its build ID: without one the linker writes no LC_UUID, and macOS 26
# starts no such binary. RUNNER_DIST_URL is where the archives of this version will be published.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/get.sh

[ -z "$(git status --porcelain)" ] || say "the working tree has changes: the version will say so"
tools/fetch-engine.sh
time=$(git log -1 --format=%ct)
version=$(git describe --tags --always)
out=bin/dist
url=${RUNNER_DIST_URL:-https://runner.example/dist/$version}
all=(linux/amd64 linux/arm64 darwin/arm64 darwin/amd64 windows/amd64)
targets=("$@")
[ $# -gt 0 ] || targets=("${all[@]}")
rm -rf "$out"
mkdir -p "$out"

# What is the same on every platform.
common=$(mktemp -d)
trap 'rm -rf "$common"' EXIT
tools/go.sh build -trimpath -pgo=cmd/runner/release.pgo -o "$common/runner" ./cmd/runner
mkdir -p "$common/files/completions" "$common/files/man" "$common/files/editors"
for shell in bash fish zsh; do "$common/runner" completion "$shell" > "$common/files/completions/runner.$shell"; done
"$common/runner" completion powershell > "$common/files/completions/runner.ps1"
tools/go.sh test ./cmd/runner -run '^TestManPages$' -count=1 -man "$common/files/man" -date "$time" > /dev/null
"$common/runner" version --notices > "$common/files/NOTICES"
cp LICENSE README.md runner.toml tools/dist/runner*.service tools/dist/runner-backup.timer "$common/files/"
cp -r editors/nvim editors/helix "$common/files/editors/"
cp docs/prometheus-rules.yml docs/grafana.json "$common/files/"

build() { # system, architecture, path of the binary
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 tools/go.sh build -trimpath -pgo=cmd/runner/release.pgo -ldflags="-s -w -buildid=$name" -o "$3" ./cmd/runner
}

for target in "${targets[@]}"; do
  system=${target%/*} arch=${target#*/}
  say "building for $target"
  name=runner-$version-$system-$arch
  dir=$common/$name
  mkdir "$dir"
  cp -r "$common"/files/{LICENSE,NOTICES,README.md,runner.toml,completions,editors} "$dir"
  case $system in
  linux) cp -r "$common"/files/{man,runner*.service,runner-backup.timer,prometheus-rules.yml,grafana.json} "$dir" ;;
  darwin) cp -r "$common/files/man" "$dir" ;;
  esac
  if [ "$system" = windows ]; then
    build "$system" "$arch" "$dir/runner.exe"
    (cd tools && go run ./zip "../$out/$name.zip" "$dir" "$time")
  else
    build "$system" "$arch" "$dir/runner"
    chmod -R u=rwX,go=rX "$dir"
    tar --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --format=ustar -C "$common" -c "$name" | gzip -9n > "$out/$name.tar.gz"
  fi
done
say "building the extension of VS Code"
tools/vsix.sh "$out/runner-$version.vsix"
(cd "$out" && sha256sum -- runner-* > SHA256SUMS)

# What package managers and the installer read. They name the archives, and where these are.
sum_of() { sed -n "s/ .*-$1\.\(tar\.gz\|zip\)\$//p" "$out/SHA256SUMS"; }
fill() { # template, file
  local text
  text=$(cat "tools/dist/$1")
  text=${text//@VERSION@/$version}
  text=${text//@URL@/$url}
  for target in "${all[@]}"; do
    text=${text//@SHA256 $target@/$(sum_of "${target/\//-}")}
  done
  printf '%s\n' "$text" > "$out/$2"
}
fill install.sh install.sh
chmod +x "$out/install.sh"
if [ "${#targets[@]}" -eq "${#all[@]}" ]; then
  fill homebrew.rb runner.rb
  fill scoop.json runner.json
fi
cat "$out/SHA256SUMS"
