#!/bin/sh
# Installs the runner @VERSION@ for this user: downloads the archive for this machine, checks its SHA-256, and puts the
# binary into ~/.local/bin.
#
#   sh install.sh [--to <directory>] [--from <URL or directory of the archives>]
set -eu
version='@VERSION@'
from='@URL@'
to=$HOME/.local/bin

fail() { echo "install.sh: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
  --to) [ $# -ge 2 ] || fail "--to needs a directory"; to=$2; shift 2 ;;
  --from) [ $# -ge 2 ] || fail "--from needs a URL or a directory"; from=$2; shift 2 ;;
  *) fail "the argument $1 is unknown: use --to <directory> or --from <URL or directory>" ;;
  esac
done

case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin ;;
*) fail "there is no binary for $(uname -s): on Windows use Scoop, or unpack the zip archive" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no binary for $(uname -m): build the runner from its source" ;;
esac

# The sum is a part of this script, so whoever can change the archive alone cannot change what is installed.
case $system/$arch in
linux/amd64) sum='@SHA256 linux/amd64@' ;;
linux/arm64) sum='@SHA256 linux/arm64@' ;;
darwin/arm64) sum='@SHA256 darwin/arm64@' ;;
darwin/amd64) sum='@SHA256 darwin/amd64@' ;;
esac
[ -n "$sum" ] || fail "there is no binary of $version for $system/$arch"

name=runner-$version-$system-$arch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -d "$from" ]; then
  cp "$from/$name.tar.gz" "$work/" || fail "cannot read $from/$name.tar.gz"
else
  command -v curl >/dev/null || fail "curl is missing: install it"
  curl -fsSL --proto '=https,file' -o "$work/$name.tar.gz" "$from/$name.tar.gz" || fail "cannot download $from/$name.tar.gz"
fi
if command -v sha256sum >/dev/null; then
  have=$(sha256sum "$work/$name.tar.gz")
else
  have=$(shasum -a 256 "$work/$name.tar.gz")
fi
[ "${have%% *}" = "$sum" ] || fail "$name.tar.gz has another SHA-256 than it must have: nothing was installed; download it again"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$to" || fail "cannot create $to: choose another directory with --to"
cp "$work/$name/runner" "$to/runner.new" && chmod 755 "$to/runner.new" && mv -f "$to/runner.new" "$to/runner" ||
  fail "cannot write $to/runner: choose another directory with --to"
echo "installed $to/runner ($version)"
case :$PATH: in
*":$to:"*) ;;
*) echo "add it to the PATH of your shell: export PATH=\"$to:\$PATH\"" ;;
esac
