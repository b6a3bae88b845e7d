#!/usr/bin/env bash
# Prints the directory of the tests of web-platform-tests for URLs, which the tests run. They
# are in the Go module below, which is fetched once and checked against its sum.
set -euo pipefail
. "$(dirname "$0")/get.sh"

module=github.com/nlnwa/whatwg-url@v0.6.2
sum=h1:jU61lU2ig4LANydbEJmA2nPrtCGiKdtgT0rmMd2VZ/Q=

fetch() { (cd / && GOFLAGS= go mod download -json "$module"); }
answer=$(retry fetch) || { say "go could not fetch $module: check the network"; exit 1; }
field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" <<< "$answer"; }
[ "$(field Sum)" = "$sum" ] || { say "$module does not have the sum $sum"; exit 1; }
echo "$(field Dir)/testdata"
