#!/usr/bin/env bash
# Fuzzes a target: tools/fuzz.sh FuzzJSON 60s. If several packages have a target of this
# name, all of them run. Without a target it lists all, each with its package.
set -euo pipefail
cd "$(dirname "$0")/.."

targets() { # prints "target package" for each
  git ls-files -co --exclude-standard '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9]+' |
    sed -E 's|^(.*)/[^/]+:func (.*)|\2 \1|' | sort
}

if [ $# -eq 0 ] || [ -z "$1" ]; then
  targets | column -t
  exit
fi
packages=$(targets | awk -v target="$1" '$1 == target { print $2 }')
if [ -z "$packages" ]; then
  echo "fuzz: unknown target $1: run make fuzz to list them" >&2
  exit 2
fi
for package in $packages; do
  case $package in
    sdk/*) go=(go -C "$package" test) path=. ;; # a module of its own
    *) go=(tools/go.sh test) path=./$package ;;
  esac
  "${go[@]}" -vet=off -run '^$' -fuzz "^$1\$" -fuzztime "${2:-60s}" -fuzzminimizetime 5x "$path"
done
