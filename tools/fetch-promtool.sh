#!/usr/bin/env bash
# Prints the path of promtool, with which the tests check the metrics. It is in the package
# prometheus of Debian 12, which is unpacked once in the user's cache, and not installed.
set -euo pipefail
. "$(dirname "$0")/get.sh"

dir=${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/prometheus
deb_folder "$dir" "" prometheus
echo "$dir/usr/bin/promtool"
